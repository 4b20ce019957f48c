"""Adversarial probes: the small change of an input that flips a network, and how nearly linear a network is."""

from reluctant.adversarial.flip import flip_sign
from reluctant.adversarial.flip_search import Flip
from reluctant.adversarial.linearity import LocalLinearity, local_linearity, predicted_change

__all__ = ["Flip", "LocalLinearity", "flip_sign", "local_linearity", "predicted_change"]
