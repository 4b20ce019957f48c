"""Any depth and width: creases of the next layer are followed across those of the known layers."""

from reluctant.extraction.any_depth.completion import Completion
from reluctant.extraction.any_depth.in_box import DeepInBounds, DeepInBox
from reluctant.extraction.any_depth.layer import LayerLimits
from reluctant.extraction.any_depth.method import AnyDepth

__all__ = ["AnyDepth", "Completion", "DeepInBounds", "DeepInBox", "LayerLimits"]
