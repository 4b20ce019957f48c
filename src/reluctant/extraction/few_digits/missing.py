"""A neuron that a fit lacks: the hinge that explains most of what the fit leaves.

Its crease is looked for through points that misfit, so that it does not matter on which scale the points lie: a
neuron that a line hardly shows, or that it took for a part of another, turns fast once the line is left.
"""

from __future__ import annotations

import numpy as np

from reluctant.extraction.few_digits.subspace_fit import (
    MOST,
    Points,
    bounded_square,
    linear_columns,
    misfit,
    settled,
)
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["WORTH", "with_missing_neurons"]

TINY = float(np.finfo(np.float64).tiny)
CREASES, TRIES = 1500, 3  # tried, and how often without success
CHANCE = 0.1  # of the squares that noise leaves: where there is no more, no neuron is missing
UNUSUAL = 3.0  # usual misfits: what a point counts at most where nearly all misfit
WORTH = MOST**2  # squares that a neuron has to explain: more than a point that is none of its business
FLAT = 1e-3  # of a hinge of norm one: where the fit itself explains all but this, nothing new is told


def with_missing_neurons(network: ReLUNetwork, points: Points, most: int, rng: np.random.Generator) -> ReLUNetwork:
    """The fit with up to so many neurons more, as long as each explains more than chance would."""
    network, failed = settled(network, points), 0
    while failed < TRIES and most > 0:
        bound = max(MOST, UNUSUAL * float(np.median(misfit(network, points))))
        before = bounded_square(network, points, bound)
        if before < (1 + CHANCE) * len(points):
            break
        more = _with_best_hinge(network, points, bound, rng)
        more = network if more is None else settled(more, points)
        if bounded_square(more, points, bound) > before - bound**2:
            failed += 1
            continue
        network, most, failed = more, most - 1, 0
    return network


def _with_best_hinge(
    network: ReLUNetwork, points: Points, bound: float, rng: np.random.Generator
) -> ReLUNetwork | None:
    """The network with one neuron more, not yet fitted; None if no crease explains anything."""
    residual = (points.f - network(points.y)) * points.weight[:, None]
    normals, offsets = _creases_through(points, np.minimum(misfit(network, points), bound), rng)
    known = np.linalg.qr(linear_columns(network, points)[0])[0]
    gains = _explained(_new_columns(normals, offsets, points, known), residual, bound)
    best = int(np.argmax(gains))
    if not gains[best] > 0:
        return None
    (w, a), (b, c) = network.weights, network.biases
    weights = [np.vstack([w, normals[best]]), np.column_stack([a, np.zeros(len(a))])]
    return ReLUNetwork(weights, [np.append(b, offsets[best]), c], network.skip)


def _new_columns(normals: FloatArray, offsets: FloatArray, points: Points, known: FloatArray) -> FloatArray:
    """What hinges (n, candidates) have besides the known columns, of norm one; zero where that is nothing."""
    hinges = np.maximum(points.y @ normals.T + offsets, 0) * points.weight[:, None]
    hinges /= np.maximum(np.linalg.norm(hinges, axis=0), TINY)
    hinges -= known @ (known.T @ hinges)
    left = np.linalg.norm(hinges, axis=0)
    return np.asarray(np.where(left > FLAT, hinges / np.maximum(left, FLAT), 0))


def _explained(columns: FloatArray, residual: FloatArray, bound: float) -> FloatArray:
    """How much of the bounded squares (n, m) each column explains."""
    bounded = np.clip(residual, -bound, bound)
    before = (bounded**2).sum()
    after = np.zeros(columns.shape[1])
    for output, amount in zip(residual.T, (columns.T @ bounded).T, strict=True):
        after += np.minimum((output[:, None] - columns * amount) ** 2, bound**2).sum(axis=0)
    return np.asarray(before - after)


def _creases_through(points: Points, size: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Unit normals (n, k) and offsets (n,) of hyperplanes through a point that misfits and others near it."""
    n, k = points.y.shape
    share = size**2
    order = np.argsort(points.y[:, 0])
    first = rng.choice(n, CREASES, p=share[order] / share.sum())
    apart = np.exp(rng.uniform(0, np.log(n), (CREASES, k - 1))).astype(int) * rng.choice([-1, 1], (CREASES, k - 1))
    others = np.clip(first[:, None] + apart, 0, n - 1)
    middle = points.y[order[first]]
    edges = points.y[order[others]] - middle[:, None, :]
    normals = np.linalg.svd(edges)[2][:, -1, :]
    return normals, -(normals * middle).sum(axis=1)
