"""Several hidden layers from gradients: creases of whole lines, matched layer by layer."""

from reluctant.extraction.deep_gradients.method import GradientLayers

__all__ = ["GradientLayers"]
