"""A network under study: its hyperplanes, and how it stands against what was asked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.orientation import orient
from reluctant.geometry import DistanceNoise
from reluctant.learning.checks import Checked, Drawn, check_closely, check_network
from reluctant.learning.hyperplanes import Hyperplanes
from reluctant.learning.pruning import prune
from reluctant.learning.regression import draw_sample, fit_outputs
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Counting

__all__ = ["Model", "closely_checked", "fitted_model", "model_of", "oriented", "oriented_model"]

SAME = 1e-2  # of the error: a network that differs by less, or by noise, is the same
ROUNDINGS = 4.0  # of the largest term that an answer is the sum of


@dataclass(frozen=True)
class Model:
    """A network, the hyperplanes it bends along, and its check."""

    network: ReLUNetwork
    planes: Hyperplanes
    checked: Checked

    def good_for(self, eps: float) -> bool:
        """True if the error is at most eps, at the upper end of its interval."""
        return self.checked.accuracy.high <= eps

    def better_than(self, other: Model | None) -> bool:
        """True if its error is the smaller one."""
        return other is None or self.checked.accuracy.error < other.checked.accuracy.error


def model_of(
    oracle: Counting, network: ReLUNetwork, drawn: Drawn, noise: DistanceNoise, rng: np.random.Generator
) -> Model:
    """A network found elsewhere. Cost: 256 rows."""
    checked = check_network(oracle, network, drawn, noise, rng)
    return Model(network, Hyperplanes.of(network, checked.typical), checked)


def fitted_model(
    oracle: Counting, planes: Hyperplanes, drawn: Drawn, noise: DistanceNoise, rng: np.random.Generator
) -> Model:
    """The best network with these hyperplanes, or those of them that are needed.

    Cost: 256 rows, 1.5 for each unknown, and 4 a hyperplane.
    """
    with oracle.stage("outputs"):
        sample = draw_sample(oracle.query, planes, noise, rng)
    planes = prune(planes, sample)
    network = fit_outputs(planes, sample)
    return Model(network, planes, check_network(oracle, network, drawn, noise, rng))


def oriented(network: ReLUNetwork, rows: FloatArray, allowed: float) -> ReLUNetwork:
    """The network without its skip term, if that changes answers to `rows` by no more than `allowed` and roundings.

    In a cluster every digit counts. A network without neurons is an affine one.
    """
    if network.skip is None or network.depth != 2:
        return network
    if not network.widths[1]:
        return ReLUNetwork([network.skip], [network.biases[1]])
    answers = network(rows)
    terms = network.preactivations(rows)[0] * np.abs(network.weights[1]).max(axis=0)
    allowed += ROUNDINGS * unit_roundoff(np.float64) * float(np.abs(terms).max(initial=0))
    for other in (ReLUNetwork(network.weights, network.biases), orient(network)):
        if np.abs(other(rows) - answers).max() <= allowed:
            return other
    return network


def oriented_model(
    oracle: Counting, model: Model, drawn: Drawn, noise: DistanceNoise, rng: np.random.Generator
) -> Model:
    """The same, oriented if that can be had without loss, and checked at new points. Cost: 256 rows."""
    accuracy = model.checked.accuracy
    allowed = SAME * float(np.sqrt(accuracy.error * accuracy.variance)) + noise.near
    network = oriented(model.network, model.checked.rows, allowed)
    return Model(network, model.planes, check_network(oracle, network, drawn, noise, rng))


def closely_checked(
    oracle: Counting, model: Model, drawn: Drawn, noise: DistanceNoise, rng: np.random.Generator, eps: float
) -> Model:
    """The same, its error measured where it is, if it is close to eps. Cost: up to 768 rows."""
    return replace(model, checked=check_closely(oracle, model.network, model.checked, drawn, noise, rng, eps))
