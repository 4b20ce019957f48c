"""Adversarial probes: the small change of an input that flips a network, and how nearly linear it is there."""

from reluctant.adversarial.decomposition import LayerScales, bottlenecks, gradient_terms, layer_scales
from reluctant.adversarial.flip import flip_sign
from reluctant.adversarial.linearity import LocalLinearity, local_linearity, predicted_change
from reluctant.adversarial.perturbation import PerturbationLaw, minimal_perturbation, perturbation_law
from reluctant.adversarial.random_networks import random_network
from reluctant.adversarial.result import Flip
from reluctant.adversarial.sphere import (
    OutputSpread,
    angle_recursion,
    layer_angles,
    next_angle,
    output_spread,
    sphere_points,
)

__all__ = [
    "Flip",
    "LayerScales",
    "LocalLinearity",
    "OutputSpread",
    "PerturbationLaw",
    "angle_recursion",
    "bottlenecks",
    "flip_sign",
    "gradient_terms",
    "layer_angles",
    "layer_scales",
    "local_linearity",
    "minimal_perturbation",
    "next_angle",
    "output_spread",
    "perturbation_law",
    "predicted_change",
    "random_network",
    "sphere_points",
]
