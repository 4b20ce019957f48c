"""Fit of a network with one hidden layer to noisy values in few dimensions: variable projection.

Output weights and the affine term are linear, so they are eliminated by an orthogonal factorisation at every step;
the step itself moves weights and biases of the neurons (Kaufman's Gauss–Newton), in units in which every column has
norm one. Normal equations for the linear part, or columns of unlike size, leave a few points misfit that look just
like a missing neuron. Huber weights let a few points misfit without pulling at the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["HUBER", "MOST", "RANK", "Points", "bounded_square", "fit_network", "linear_columns", "misfit", "settled"]

TRIES = 6  # of one step, each with ten times the damping
REFUSED_DAMPING, LEAST_DAMPING = 1e-9, 1e-13
HUBER = 5.0  # usual misfits, from which on a point counts less
PATIENT, SETTLED, SETTLED_DAMPING = 12, 3e-3, 1e-8
MOST = 20.0  # deviations that a point counts at most, where neurons are judged
RANK = 1e-11  # of a column of norm one: below, a neuron is not told from the others
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Points:
    """Coordinates (n, k), values (n, m), one over the noise (n,)."""

    y: FloatArray
    f: FloatArray
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.y)

    def __add__(self, more: Points) -> Points:
        pairs = ((self.y, more.y), (self.f, more.f), (self.weight, more.weight))
        return Points(*(np.concatenate(pair) for pair in pairs))

    def chosen(self, which: slice | IntArray | BoolArray) -> Points:
        """These points only."""
        return Points(self.y[which], self.f[which], self.weight[which])


def misfit(network: ReLUNetwork, points: Points) -> FloatArray:
    """How far each point (n,) is from the network, in deviations of its noise: root mean square of its outputs."""
    residual = (points.f - network(points.y)) * points.weight[:, None]
    return np.asarray(np.sqrt((residual**2).mean(axis=1)))


def bounded_square(network: ReLUNetwork, points: Points, most: float = MOST) -> float:
    """Sum of squares of misfits, in which a point that is not explained at all counts as one by `most` deviations."""
    return float((np.minimum(misfit(network, points), most) ** 2).sum())


def fit_network(
    network: ReLUNetwork,
    points: Points,
    *,
    steps: int,
    damping: float = 1e-6,
    huber: float | None = None,
    enough: float = 1e-3,
) -> ReLUNetwork:
    """The network near this one that fits the points best.

    huber: misfit, in units of the usual one, from which on a point counts less. enough: the fit ends when a step
    lowers the sum of squares by less than this part.
    """
    w, b = _unit_normals(network.weights[0], network.biases[0])
    best = _with_best_outputs(w, b, points)
    for _ in range(steps):
        merit, weighed = _robust(best, points, huber)
        best = _with_best_outputs(best.weights[0], best.biases[0], weighed)
        before = merit(best)
        moved, damping = _improved(best, weighed, merit, before, damping)
        if moved is None:
            break
        best = moved
        if merit(best) > (1 - enough) * before:
            break
    return _norm_in_weights(best)


def settled(network: ReLUNetwork, points: Points) -> ReLUNetwork:
    """The fit where a few points may not be explained, with patience."""
    return fit_network(network, points, steps=PATIENT, damping=SETTLED_DAMPING, huber=HUBER, enough=SETTLED)


def _robust(network: ReLUNetwork, points: Points, huber: float | None) -> tuple[Callable[[ReLUNetwork], float], Points]:
    """What a fit is judged by, and the points weighed so that its gradient is that of weighted squares."""
    if huber is None:
        return (lambda found: float((misfit(found, points) ** 2).sum())), points
    size = misfit(network, points)
    limit = huber * max(1.0, float(np.median(size)))

    def merit(found: ReLUNetwork) -> float:
        size = misfit(found, points)
        return float(np.where(size < limit, size**2, 2 * limit * size - limit**2).sum())

    softer = np.sqrt(limit / np.maximum(size, limit))
    return merit, Points(points.y, points.f, points.weight * softer)


def _improved(
    network: ReLUNetwork, points: Points, merit: Callable[[ReLUNetwork], float], before: float, damping: float
) -> tuple[ReLUNetwork | None, float]:
    (w, _), (b, _) = network.weights, network.biases
    solve = _step_equations(network, points)
    for _ in range(TRIES):
        try:
            step = solve(damping)
        except np.linalg.LinAlgError:
            damping = max(10 * damping, REFUSED_DAMPING)
            continue
        moved = _with_best_outputs(*_unit_normals(w + step[:, :-1], b + step[:, -1]), points)
        if merit(moved) < before:
            return moved, max(damping / 10, LEAST_DAMPING)
        damping = max(10 * damping, REFUSED_DAMPING)
    return None, damping


def _step_equations(network: ReLUNetwork, points: Points) -> Callable[[float], FloatArray]:
    """Steps (h, k + 1) of weights and biases by damping; the outputs follow them."""
    (w, a), n = network.weights, len(points)
    h, k = w.shape
    with_ones = np.column_stack([points.y, np.ones(n)]) * points.weight[:, None]
    units = np.maximum(np.linalg.norm(with_ones, axis=0), TINY)
    active = network.preactivations(points.y)[0] > 0
    jacobian = (active[:, :, None] * (with_ones / units)[:, None, :]).reshape(n, h * (k + 1))
    q = np.linalg.qr(linear_columns(network, points)[0])[0]
    jacobian -= q @ (q.T @ jacobian)
    residual = (points.f - network(points.y)) * points.weight[:, None]
    neurons = np.repeat(np.arange(h), k + 1)
    normal = (jacobian.T @ jacobian) * (a.T @ a)[np.ix_(neurons, neurons)]
    gradient = ((jacobian.T @ residual) * a.T[neurons]).sum(axis=1)
    scale = 1 / np.sqrt(np.maximum(np.diag(normal), TINY))
    normal *= scale[:, None] * scale

    def solve(damping: float) -> FloatArray:
        damped = normal.copy()
        damped[np.diag_indices_from(damped)] = 1 + damping
        factor = scipy.linalg.cho_factor(damped, overwrite_a=True, check_finite=False)
        step = scale * scipy.linalg.cho_solve(factor, scale * gradient, check_finite=False)
        return np.asarray(step.reshape(h, k + 1) / units)

    return solve


def _with_best_outputs(w: FloatArray, b: FloatArray, points: Points) -> ReLUNetwork:
    """Output weights, constants and affine term for a given hidden layer."""
    linear, sizes = _linear_part(w, b, points)
    q, r = np.linalg.qr(linear)
    diagonal = np.diag_indices_from(r)
    r[diagonal] += np.where(np.abs(r[diagonal]) < RANK, RANK, 0)
    wanted = q.T @ (points.f * points.weight[:, None])
    found = scipy.linalg.solve_triangular(r, wanted, check_finite=False) / sizes[:, None]
    h = len(b)
    return ReLUNetwork([w, found[:h].T], [b, found[-1]], found[h:-1].T)


def linear_columns(network: ReLUNetwork, points: Points) -> tuple[FloatArray, FloatArray]:
    """Weighted columns (n, h + k + 1) of norm one that outputs are combined of, and their norms before."""
    return _linear_part(network.weights[0], network.biases[0], points)


def _linear_part(w: FloatArray, b: FloatArray, points: Points) -> tuple[FloatArray, FloatArray]:
    """Weighted columns (n, h + k + 1) of norm one that the outputs are combined of, and their norms before."""
    hidden = np.maximum(points.y @ w.T + b, 0)
    linear = np.column_stack([hidden, points.y, np.ones(len(points))]) * points.weight[:, None]
    sizes = np.linalg.norm(linear, axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)  # a neuron that is never on where points are
    return linear / sizes, sizes


def _unit_normals(w: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    sizes = np.linalg.norm(w, axis=1)
    return w / sizes[:, None], b / sizes


def _norm_in_weights(network: ReLUNetwork) -> ReLUNetwork:
    """The same function with output weights of norm one."""
    (w, a), (b, c) = network.weights, network.biases
    sizes = np.maximum(np.linalg.norm(a, axis=0), TINY)
    return ReLUNetwork([w * sizes[:, None], a / sizes], [b * sizes, c], network.skip)
