"""Next stage inside a box: from the lines of a star into the subspace between them, a little farther with every pass.

After each pass everything is fitted anew. Points that stay unexplained are a neuron that no line met, or two that a
line took for one: another star may do better.
"""

from __future__ import annotations

import numpy as np

from reluctant.extraction.failures import StageFailed
from reluctant.extraction.few_digits.growth import ask_in
from reluctant.extraction.few_digits.inside import InsideView
from reluctant.extraction.few_digits.star import Star, read_star
from reluctant.extraction.few_digits.subspace import Known, questioned, random_points
from reluctant.extraction.few_digits.subspace_fit import Points, fit_network, misfit
from reluctant.extraction.few_digits.view import View
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["grow_star"]

OFFSETS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # from the lines, in sizes of an input
PER_NEURON = 8  # points of a pass
ON_LINES, FEWEST_ON_LINES = 16, 600  # samples a neuron and line
MISFIT, MISFITS = 6.0, 0.03  # deviations, and share of the points of a pass that may have more
STEPS, HUBER, DAMPING, ENOUGH = 8, 5.0, 1e-8, 3e-2


def grow_star(view: InsideView, directions: int, rng: np.random.Generator) -> tuple[View, Known]:
    """Read a star of so many lines, then the network in its subspace. Cost: about 70 rows a neuron, 80 a line more."""
    star = read_star(view, directions, rng)
    return star.view, _grown(star, rng)


def _grown(star: Star, rng: np.random.Generator) -> Known:
    points, network = _some_samples(star, rng), star.network
    with star.view.oracle.stage("growth"):
        for offset in OFFSETS:
            new = ask_in(star.view, star.frame, _beside_lines(star, offset, rng))
            points += new
            network = fit_network(network, points, steps=STEPS, damping=DAMPING, huber=HUBER, enough=ENOUGH)
            _check(network, new)
    with star.view.oracle.stage("subspace"):
        points += random_points(star.view, star.frame, network.widths[1], rng)
        return questioned(star.view, star.frame, network, points, rng)


def _some_samples(star: Star, rng: np.random.Generator) -> Points:
    points, h = star.points, star.network.widths[1]
    return points.chosen(rng.permutation(len(points))[: max(ON_LINES * h, FEWEST_ON_LINES) * len(star.lines)])


def _beside_lines(star: Star, offset: float, rng: np.random.Generator) -> FloatArray:
    """Points beside the lines, as far as this; the farthest are anywhere in the box."""
    k, n = len(star.frame.basis), PER_NEURON * star.network.widths[1]
    axis, on = rng.integers(k, size=n), np.zeros((n, k))
    reaches = np.array([np.abs(line.data.t).max() for line in star.lines])
    on[np.arange(n), axis] = rng.uniform(-1, 1, n) * reaches[axis]
    return star.view.pulled_in(star.frame, on + offset * star.view.size * rng.standard_normal((n, k)))


def _check(network: ReLUNetwork, new: Points) -> None:
    share = float(np.mean(misfit(network, new) > MISFIT))
    if share > MISFITS:
        raise StageFailed("growth", "points off the lines are not explained", number=share, limit=MISFITS)
