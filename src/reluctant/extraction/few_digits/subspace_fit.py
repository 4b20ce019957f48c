"""Fit of one hidden layer to noisy values in few dimensions, by variable projection.

Output weights and the affine term are linear, so they are eliminated by an orthogonal factorisation at every step;
the step itself moves weights and biases of the neurons (Kaufman's Gauss–Newton), in units in which every column has
norm one. Normal equations for the linear part, or columns of unlike size, leave a few points misfit that look just
like a missing neuron. Huber weights let a few points misfit without pulling at the rest. Neurons that a fit does
not need are dropped; one that it lacks is the hinge that explains most of what the fit leaves, its crease laid
through points that misfit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from reluctant.fitting.least_squares import Damping, Linearisation, StepRules, least_squares
from reluctant.geometry.lines import Batch, IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray

HUBER = 5.0  # usual misfits, from which on a point counts less
MOST_DEVIATIONS = 20.0  # deviations that a point counts at most, where neurons are judged
FLAT_HINGE = 1e-3  # of a hinge of norm one: where the fit itself explains all but this, it adds nothing
COLUMN_RANK = 1e-11  # of a column of norm one: below, a neuron depends on the others


@dataclass(frozen=True)
class Points(Batch):
    """Coordinates (n, k), values (n, m), one over the noise (n,)."""

    y: FloatArray
    f: FloatArray
    weight: FloatArray


def misfit(network: ReLUNetwork, points: Points) -> FloatArray:
    """How far each point (n,) is from the network, in deviations of its noise: root mean square of its outputs."""
    residual = (points.f - network(points.y)) * points.weight[:, None]
    return np.asarray(np.sqrt((residual**2).mean(axis=1)))


def bounded_square(network: ReLUNetwork, points: Points, most: float = MOST_DEVIATIONS) -> float:
    """Sum of squares of misfits, in which a point that is not explained at all counts as one by `most` deviations."""
    return float((np.minimum(misfit(network, points), most) ** 2).sum())


def fit_to_points(
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
    step_tries = 6  # of one step, each with ten times the damping
    refused_damping, least_damping = 1e-9, 1e-13
    w, b = _unit_normals(network.weights[0], network.biases[0])
    policy = Damping(damping, least=least_damping, refused=refused_damping, singular=refused_damping, tries=step_tries)
    rules = StepRules(steps, policy, enough=lambda before, after: after > (1 - enough) * before)
    start = _with_best_outputs(w, b, points)
    return _norm_in_weights(least_squares(start, lambda at: _linearised(at, points, huber), rules).state)


def fit_hyperplanes(normals: FloatArray, offsets: FloatArray, points: Points) -> ReLUNetwork:
    """The fit that starts from creases at these hyperplanes, unit normals (h, k) and offsets (h,)."""
    return settled_fit(_with_best_outputs(normals, offsets, points), points)


def settled_fit(network: ReLUNetwork, points: Points) -> ReLUNetwork:
    """The fit where a few points may not be explained, with patience."""
    patient, settled_gain, settled_damping = 12, 3e-3, 1e-8
    return fit_to_points(network, points, steps=patient, damping=settled_damping, huber=HUBER, enough=settled_gain)


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


def _linearised(network: ReLUNetwork, points: Points, huber: float | None) -> Linearisation[ReLUNetwork, FloatArray]:
    """Equations at this hidden layer, with the outputs that fit the weighed points best."""
    merit, weighed = _robust(network, points, huber)
    w, b = network.weights[0], network.biases[0]
    centre = _with_best_outputs(w, b, weighed)

    def move(step: FloatArray) -> tuple[ReLUNetwork, float]:
        moved = _with_best_outputs(*_unit_normals(w + step[:, :-1], b + step[:, -1]), weighed)
        return moved, merit(moved)

    return Linearisation(centre, merit(centre), _step_equations(centre, weighed), move)


def _step_equations(network: ReLUNetwork, points: Points) -> Callable[[float], FloatArray]:
    """Steps (h, k + 1) of weights and biases by damping; the outputs follow them."""
    (w, a), n = network.weights, len(points)
    h, k = w.shape
    with_ones = np.column_stack([points.y, np.ones(n)]) * points.weight[:, None]
    units = np.maximum(np.linalg.norm(with_ones, axis=0), DOUBLE.tiny)
    active = network.preactivations(points.y)[0] > 0
    jacobian = (active[:, :, None] * (with_ones / units)[:, None, :]).reshape(n, h * (k + 1))
    residual = (points.f - network(points.y)) * points.weight[:, None]
    neurons = np.repeat(np.arange(h), k + 1)
    normal = _besides(jacobian, linear_columns(network, points)[0])
    if len(a) > 1:
        normal *= (a.T @ a)[np.ix_(neurons, neurons)]
    else:
        normal *= np.outer(a[0][neurons], a[0][neurons])
    gradient = ((jacobian.T @ residual) * a.T[neurons]).sum(axis=1)
    squares = np.diag(normal)
    determined = squares > DOUBLE.tiny
    scale = np.where(determined, 1 / np.sqrt(np.where(determined, squares, 1.0)), 0.0)
    normal *= scale[:, None] * scale

    def solve(damping: float) -> FloatArray:
        damped = normal.copy()
        damped[np.diag_indices_from(damped)] = 1 + damping
        factor = scipy.linalg.cho_factor(damped, overwrite_a=True, check_finite=False)
        step = scale * scipy.linalg.cho_solve(factor, scale * gradient, check_finite=False)
        return np.asarray(step.reshape(h, k + 1) / units)

    return solve


def _besides(jacobian: FloatArray, linear: FloatArray) -> FloatArray:
    """Products of the columns of a Jacobian, each without its part along the linear columns."""
    r = _triangle(np.asarray(np.linalg.qr(linear, mode="r")))
    along = scipy.linalg.solve_triangular(r, linear.T @ jacobian, trans="T", check_finite=False)
    return np.asarray(jacobian.T @ jacobian - along.T @ along)


def _triangle(r: FloatArray) -> FloatArray:
    """A triangular factor with no entry of its diagonal too small."""
    diagonal = np.diag_indices_from(r)
    r[diagonal] += np.where(np.abs(r[diagonal]) < COLUMN_RANK, COLUMN_RANK, 0)
    return r


def _with_best_outputs(w: FloatArray, b: FloatArray, points: Points) -> ReLUNetwork:
    """Output weights, constants and affine term for a given hidden layer."""
    linear, sizes = _linear_part(w, b, points)
    columns = linear.shape[1]
    # The triangle of columns and answers together holds both sides of the equations, and costs half as much as Q.
    both = np.asarray(np.linalg.qr(np.column_stack([linear, points.f * points.weight[:, None]]), mode="r"))
    r, wanted = _triangle(both[:columns, :columns]), both[:columns, columns:]
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
    sizes = np.maximum(np.linalg.norm(a, axis=0), DOUBLE.tiny)
    return ReLUNetwork([w * sizes[:, None], a / sizes], [b * sizes, c], network.skip)


def without_idle_neurons(
    network: ReLUNetwork,
    points: Points,
    *,
    huber: float | None = None,
    least: float = 60.0,
    fewest: int = 1,
) -> ReLUNetwork:
    """The fit without neurons that explain less than these squares, but with no fewer than `fewest`."""
    idle_share = 0.003  # of the sum of squares: a neuron that explains less is none
    steps = 8
    square = bounded_square(network, points)
    most = square + max(idle_share * square, least)
    while network.widths[1] > fewest:
        tries = (
            fit_to_points(_without_neuron(network, k), points, steps=steps, huber=huber)
            for k in _weak_neurons(network, points)
        )
        fewer = next((found for found in tries if bounded_square(found, points) < most), None)
        if fewer is None:
            break
        network = fewer
    return network


def _weak_neurons(network: ReLUNetwork, points: Points) -> IntArray:
    """Neurons whose loss the others make up for best, as far as linear outputs can."""
    worth_a_try, tries = 3000.0, 3  # squares lost before anything else is fitted anew: a neuron above is needed
    columns, sizes = linear_columns(network, points)
    r = _triangle(np.asarray(np.linalg.qr(columns, mode="r")))
    inverse = scipy.linalg.solve_triangular(r, np.eye(len(r)), check_finite=False)
    h = network.widths[1]
    loss = (network.weights[1] ** 2).sum(axis=0) * sizes[:h] ** 2 / (inverse[:h] ** 2).sum(axis=1)
    order = np.argsort(loss)[:tries]
    return np.asarray(order[loss[order] < worth_a_try])


def _without_neuron(network: ReLUNetwork, neuron: int) -> ReLUNetwork:
    (w, a), (b, c) = network.weights, network.biases
    weights = [np.delete(w, neuron, axis=0), np.delete(a, neuron, axis=1)]
    return ReLUNetwork(weights, [np.delete(b, neuron), c], network.skip)


WORTH_A_NEURON = MOST_DEVIATIONS**2  # sum of squares that a neuron has to explain: more than one outlier leaves


def with_missing_neurons(network: ReLUNetwork, points: Points, most: int, rng: np.random.Generator) -> ReLUNetwork:
    """The fit with up to so many neurons more, as long as each explains more than chance would."""
    chance_share = 0.1  # of the squares that noise leaves: where there is no more, no neuron is missing
    unusual = 3.0  # usual misfits: what a point counts at most where nearly all misfit
    tries = 3  # in a row without success
    network, failed = settled_fit(network, points), 0
    while failed < tries and most > 0:
        bound = max(MOST_DEVIATIONS, unusual * float(np.median(misfit(network, points))))
        before = bounded_square(network, points, bound)
        if before < (1 + chance_share) * len(points):
            break
        more = _with_best_hinge(network, points, bound, rng)
        more = network if more is None else settled_fit(more, points)
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
    hinges = _HingeColumns.of(normals, offsets, points, known)
    likely = hinges.likely(np.clip(residual, -bound, bound))
    gains = _explained_squares(hinges.besides(likely), residual, bound)
    if not gains.max() > 0:
        return None
    best = likely[int(np.argmax(gains))]
    (w, a), (b, c) = network.weights, network.biases
    weights = [np.vstack([w, normals[best]]), np.column_stack([a, np.zeros(len(a))])]
    return ReLUNetwork(weights, [np.append(b, offsets[best]), c], network.skip)


@dataclass(frozen=True)
class _HingeColumns:
    """Hinges (n, candidates) of norm one, known orthonormal columns (n, k), the hinges' parts along these (k, …)."""

    hinges: FloatArray
    known: FloatArray
    along: FloatArray

    @classmethod
    def of(cls, normals: FloatArray, offsets: FloatArray, points: Points, known: FloatArray) -> _HingeColumns:
        hinges = np.maximum(points.y @ normals.T + offsets, 0) * points.weight[:, None]
        hinges /= np.maximum(np.linalg.norm(hinges, axis=0), DOUBLE.tiny)
        return cls(hinges, known, known.T @ hinges)

    def likely(self, residual: FloatArray) -> IntArray:
        """Those that explain the most of these residuals (n, m)."""
        most = 60
        left = np.sqrt(np.maximum(1 - (self.along**2).sum(axis=0), 0))
        amounts = self.hinges.T @ residual - self.along.T @ (self.known.T @ residual)
        explained = np.where(left > FLAT_HINGE, (amounts**2).sum(axis=1) / np.maximum(left, FLAT_HINGE) ** 2, 0)
        return np.argsort(-explained)[:most]

    def besides(self, which: IntArray) -> FloatArray:
        """What these hinges have besides the known columns, of norm one; zero where that is nothing."""
        rest = self.hinges[:, which] - self.known @ self.along[:, which]
        left = np.linalg.norm(rest, axis=0)
        return np.asarray(np.where(left > FLAT_HINGE, rest / np.maximum(left, FLAT_HINGE), 0))


def _explained_squares(columns: FloatArray, residual: FloatArray, bound: float) -> FloatArray:
    """How much of the bounded squares (n, m) each column explains."""
    bounded = np.clip(residual, -bound, bound)
    before = (bounded**2).sum()
    after = np.zeros(columns.shape[1])
    for output, amount in zip(residual.T, (columns.T @ bounded).T, strict=True):
        after += np.minimum((output[:, None] - columns * amount) ** 2, bound**2).sum(axis=0)
    return np.asarray(before - after)


def _creases_through(points: Points, size: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Unit normals (n, k) and offsets (n,) of hyperplanes through a point that misfits and others near it."""
    tried = 1500
    n, k = points.y.shape
    share = size**2
    order = np.argsort(points.y[:, 0])
    first = rng.choice(n, tried, p=share[order] / share.sum())
    apart = np.exp(rng.uniform(0, np.log(n), (tried, k - 1))).astype(int) * rng.choice([-1, 1], (tried, k - 1))
    others = np.clip(first[:, None] + apart, 0, n - 1)
    middle = points.y[order[first]]
    edges = points.y[order[others]] - middle[:, None, :]
    normals = np.linalg.svd(edges)[2][:, -1, :]
    return normals, -(normals * middle).sum(axis=1)
