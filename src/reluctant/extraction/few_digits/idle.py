"""Neurons that a fit does not need: knots that were noise, two for one, those that another has replaced."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from reluctant.extraction.few_digits.subspace_fit import RANK, Points, bounded_square, fit_network, linear_columns
from reluctant.geometry.samples import IntArray
from reluctant.networks import ReLUNetwork

__all__ = ["without_idle_neurons"]

IDLE, IDLE_SQUARES = 0.003, 60.0  # of the sum of squares, and squares: a neuron whose loss leaves no more is none
WORTH_A_TRY = 3000.0  # squares lost before anything else is fitted anew: what costs more is needed
STEPS, TRIES = 8, 3


def without_idle_neurons(
    network: ReLUNetwork,
    points: Points,
    *,
    huber: float | None = None,
    least: float = IDLE_SQUARES,
    fewest: int = 1,
) -> ReLUNetwork:
    """The fit without neurons that explain less than these squares, but with no fewer than `fewest`."""
    square = bounded_square(network, points)
    most = square + max(IDLE * square, least)
    while network.widths[1] > fewest:
        tries = (fit_network(_without(network, k), points, steps=STEPS, huber=huber) for k in _weak(network, points))
        fewer = next((found for found in tries if bounded_square(found, points) < most), None)
        if fewer is None:
            break
        network = fewer
    return network


def _weak(network: ReLUNetwork, points: Points) -> IntArray:
    """Neurons whose loss the others make up for best, as far as linear outputs can."""
    columns, sizes = linear_columns(network, points)
    r = np.asarray(np.linalg.qr(columns)[1])
    diagonal = np.diag_indices_from(r)
    r[diagonal] += np.where(np.abs(r[diagonal]) < RANK, RANK, 0)
    inverse = scipy.linalg.solve_triangular(r, np.eye(len(r)), check_finite=False)
    h = network.widths[1]
    loss = (network.weights[1] ** 2).sum(axis=0) * sizes[:h] ** 2 / (inverse[:h] ** 2).sum(axis=1)
    order = np.argsort(loss)[:TRIES]
    return np.asarray(order[loss[order] < WORTH_A_TRY])


def _without(network: ReLUNetwork, neuron: int) -> ReLUNetwork:
    (w, a), (b, c) = network.weights, network.biases
    weights = [np.delete(w, neuron, axis=0), np.delete(a, neuron, axis=1)]
    return ReLUNetwork(weights, [np.delete(b, neuron), c], network.skip)
