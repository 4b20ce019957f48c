"""Extraction: the exact weights of a network from its answers."""

from reluctant.extraction.any_depth import AnyDepth, Completion, LayerLimits
from reluctant.extraction.any_position import AnyPosition
from reluctant.extraction.bounded import Bounded
from reluctant.extraction.deep_few_digits import FewDigitsDeep
from reluctant.extraction.deep_gradients import GradientLayers
from reluctant.extraction.depth_three import DepthThree
from reluctant.extraction.depth_two import DepthTwo
from reluctant.extraction.few_digits import FewDigits
from reluctant.extraction.from_labels import FromLabels, verify_labels
from reluctant.extraction.method import Candidate, Method, StageFailed
from reluctant.extraction.recovery import extract
from reluctant.extraction.rounded_probabilities import RoundedProbabilities

__all__ = [
    "AnyDepth",
    "AnyPosition",
    "Bounded",
    "Candidate",
    "Completion",
    "DepthThree",
    "DepthTwo",
    "FewDigits",
    "FewDigitsDeep",
    "FromLabels",
    "GradientLayers",
    "LayerLimits",
    "Method",
    "RoundedProbabilities",
    "StageFailed",
    "extract",
    "verify_labels",
]
