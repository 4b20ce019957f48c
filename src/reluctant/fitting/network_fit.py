"""`polish`: the Gauss–Newton fit of all parameters of a network to its answers.

`polish` weighs each answer by its noise, so the residuals after the fit say whether the network explains everything
that was seen. It is Gauss–Newton, needs a network that is close, and asks nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.linalg

from reluctant.fitting.least_squares import Linearisation, StepRules, least_squares, normal_solver
from reluctant.geometry import DistanceNoise
from reluctant.geometry.lines import BoolArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

MOST_PARAMETERS = 2600  # a dense least-squares problem of this size takes seconds
POLISH_STEPS = 8


def polish(
    network: ReLUNetwork,
    rows: FloatArray,
    answers: FloatArray,
    noise: DistanceNoise,
    steps: int = POLISH_STEPS,
    *,
    first_weights: bool = True,
    thorough: bool = False,
    lost: FloatArray | float = 0.0,
) -> ReLUNetwork:
    """Gauss–Newton on all parameters, with all answers that are not too far out.

    The network is close, so one factorisation serves all steps; each step sees the true residual again. The
    weights of the first layer stay as they are if `first_weights` is False; its biases do not. A `thorough` fit,
    many times as slow, sees directions in which the answers say little, and looks anew at which neurons are on.
    A network of which no answer tells the states beyond doubt stays as it is. `lost` (n,) is noise of the answers
    besides.
    """
    most_entries = 6e7  # of the matrix; beyond, every other row has to do
    enough_equations = 10.0  # equations a parameter; more would say the same again
    farthest_fitted = 1e3  # answers farther out, in units of the scale of use, have too few digits left
    fixed = _fixed_layers(network, first_weights)
    distance = np.linalg.norm(rows, axis=1)
    near = np.flatnonzero((distance < farthest_fitted * np.sqrt(network.dim)) & _off_creases(network, rows))
    if not len(near):
        return network
    parameters, equations = _parameters(network, fixed), len(near) * network.outputs
    near = near[:: 1 + int(equations // min(most_entries / parameters, enough_equations * parameters))]
    sd = np.hypot(noise.at(distance), lost)
    rows, answers, weight = rows[near], answers[near], 1 / sd[near, None]
    factors = _by_orthogonal_factors if thorough else normal_solver
    first = factors(_jacobian(network, rows, weight, fixed))

    def measured(found: ReLUNetwork, best: ReLUNetwork, least: float) -> tuple[_Polishing, float]:
        residual = ((answers - found(rows)) * weight).reshape(-1)
        size = float(residual @ residual)
        best, least = (found, size) if size < least else (best, least)
        return _Polishing(found, residual, best, least), size

    def linearise(at: _Polishing) -> Linearisation[_Polishing, FloatArray]:
        anew = thorough and at.network is not network
        solve = factors(_jacobian(at.network, rows, weight, fixed)) if anew else first

        def move(step: FloatArray) -> tuple[_Polishing, float]:
            return measured(_moved(at.network, step, fixed), at.best, at.least)

        return Linearisation(at, at.least, lambda _: solve(at.residual), move)

    start, size = measured(network, network, np.inf)
    if not size < np.inf:
        return network
    return least_squares(start, linearise, _thorough_rules(steps) if thorough else _quick_rules(steps)).state.best


def approach(network: ReLUNetwork, rows: FloatArray, answers: FloatArray) -> tuple[ReLUNetwork, float]:
    """A network that lacks digits brought closer to the answers, and by how much it is off at most.

    Steps of least squares, as long as they help; directions that answers hardly tell stay as they are.
    """
    most_steps, told = 8, 1e-7  # singular values, relative, of directions that answers tell
    fixed = _fixed_layers(network, first_weights=True)
    best, off = network, float(np.abs(network(rows) - answers).max())
    for _ in range(most_steps):
        sure = _off_creases(best, rows)
        near = 1 / np.hypot(np.sqrt(network.dim), np.linalg.norm(rows[sure], axis=1))[:, None]
        weight = np.repeat(near, network.outputs, axis=1)
        jacobian = _jacobian(best, rows[sure], weight, fixed)
        scale = _not_zero(np.linalg.norm(jacobian, axis=0))
        residual = ((answers[sure] - best(rows[sure])) * weight).reshape(-1)
        moved = _moved(best, np.linalg.lstsq(jacobian / scale, residual, rcond=told)[0] / scale, fixed)
        now = float(np.abs(moved(rows) - answers).max())
        if not now < off:
            break
        best, off = moved, now
    return best, off


@dataclass(frozen=True)
class _Polishing:
    """A network with its residuals, and the best network so far with its sum of squares."""

    network: ReLUNetwork
    residual: FloatArray
    best: ReLUNetwork
    least: float


def _quick_rules(steps: int) -> StepRules:
    """With an old factorisation a little worse may be the way to better."""
    diverged = 1e4  # times the least sum of squares: with an old factorisation a little worse may be the way to better
    return StepRules(steps, accept=lambda least, after: after < diverged * least)


def _thorough_rules(steps: int) -> StepRules:
    worthwhile = 0.9  # of the least sum of squares: a thorough step that brings no more is the last
    return StepRules(steps, enough=lambda least, after: not after < worthwhile * least)


def neuron_errors(network: ReLUNetwork, rows: FloatArray, noise: DistanceNoise) -> FloatArray:
    """Standard error (h,) of the worst weight of each hidden neuron, its weights above being of norm one.

    After a fit to these rows; directions that no answer tells, as the scales of neurons, have no error. Infinite where
    every row is on a crease.
    """
    least_eigenvalue = 1e-13  # relative; eigenvalues below belong to directions that no answer tells
    fixed = _fixed_layers(network, first_weights=True)
    rows = rows[_off_creases(network, rows)]
    if not len(rows):
        return np.full(sum(network.widths[1:-1]), np.inf)
    jacobian = _jacobian(network, rows, 1 / noise.at(np.linalg.norm(rows, axis=1))[:, None], fixed)
    scale = _not_zero(np.linalg.norm(jacobian, axis=0))
    jacobian /= scale
    sizes, directions = np.linalg.eigh(jacobian.T @ jacobian)
    seen = sizes > least_eigenvalue * sizes[-1]
    variances, errors, start = (directions[:, seen] ** 2 / sizes[seen]).sum(axis=1) / scale**2, [], 0
    for layer, (into, out) in enumerate(pairwise(network.widths[:-1])):
        of_layer = variances[start : start + out * (into + 1)].reshape(out, into + 1)
        start += of_layer.size
        errors.append(np.sqrt(of_layer[:, :-1].max(axis=1)) * np.linalg.norm(network.weights[layer + 1], axis=0))
    return np.concatenate(errors)


# Scales of neurons are free, so the problem is singular along them: a slight pull to zero takes a short step.


def _by_orthogonal_factors(jacobian: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Without the product JᵀJ, which would square small numbers."""
    thorough_damping = 1e-10  # of columns of norm one
    n, k = jacobian.shape
    scale = _not_zero(np.linalg.norm(jacobian, axis=0))
    damped = np.vstack([jacobian / scale, thorough_damping * np.eye(k)])
    q, r = scipy.linalg.qr(damped, mode="economic", overwrite_a=True, check_finite=False)

    def solve(residual: FloatArray) -> FloatArray:
        return np.asarray(scipy.linalg.solve_triangular(r, q[:n].T @ residual, check_finite=False) / scale)

    return solve


def _not_zero(scale: FloatArray) -> FloatArray:
    return np.where(scale == 0, 1.0, scale)


def _off_creases(network: ReLUNetwork, rows: FloatArray) -> BoolArray:
    """Rows (n,) at which every neuron's state is beyond doubt: on a crease no derivative tells how a bias matters."""
    on_crease = 1e-10  # of the largest value in a layer: one so small may be of either sign
    sure = np.ones(len(rows), dtype=bool)
    for values in network.preactivations(rows):
        sizes = np.abs(values)
        sure &= sizes.min(axis=1, initial=np.inf) > on_crease * sizes.max(axis=1, initial=0)
    return sure


def _fixed_layers(network: ReLUNetwork, first_weights: bool) -> set[int]:
    """Layers whose weights stay: one output's only rescale the neurons below, the first ones if so wanted."""
    last = {network.depth - 1} if network.outputs == 1 else set()
    return last if first_weights else {0} | last


def _parameters(network: ReLUNetwork, fixed: set[int]) -> int:
    free = [weights for layer, weights in enumerate(network.weights) if layer not in fixed]
    return sum(part.size for part in (*free, *network.biases, *network.skips.values()))


def _jacobian(network: ReLUNetwork, rows: FloatArray, weight: FloatArray, fixed: set[int]) -> FloatArray:
    """Weighted derivatives (n·m, parameters): weights and bias of each neuron, layer by layer, then the skips."""
    n, m = len(rows), network.outputs
    values = network.preactivations(rows)
    inputs = [_with_ones(h) for h in (rows, *(np.maximum(z, 0) for z in values))]
    jacobian = np.empty((n, m, _parameters(network, fixed)))
    downstream = _by_values(network, values, weight)
    stop = jacobian.shape[2]
    for source, target in reversed(network.skips):
        stop = _fill(jacobian, stop, downstream[target], inputs[source][:, :-1])
    for layer in range(network.depth - 1, -1, -1):
        columns = inputs[layer][:, -1:] if layer in fixed else inputs[layer]
        stop = _fill(jacobian, stop, downstream[layer + 1], columns)
    return jacobian.reshape(n * m, -1)


def _by_values(network: ReLUNetwork, values: list[FloatArray], weight: FloatArray) -> dict[int, FloatArray]:
    """Derivatives (n, m, width) of the weighted outputs by the values of each weight layer."""
    found = {network.depth: weight[:, :, None] * np.eye(network.outputs)}
    for k in range(network.depth - 1, 0, -1):
        above = found[k + 1] @ network.weights[k]
        for (source, target), w in network.skips.items():
            if source == k:
                above = above + found[target] @ w
        found[k] = above * (values[k - 1] > 0)[:, None, :]
    return found


def _fill(jacobian: FloatArray, stop: int, downstream: FloatArray, by_layer: FloatArray) -> int:
    """Write the products of two factors into the columns before `stop`; returns where they begin."""
    n, m, out = downstream.shape
    start = stop - out * by_layer.shape[1]
    block = jacobian[:, :, start:stop].reshape(n, m, out, -1)  # a view: the last axis is contiguous
    np.multiply(downstream[..., None], by_layer[:, None, None, :], out=block)
    return start


def _with_ones(rows: FloatArray) -> FloatArray:
    return np.column_stack([rows, np.ones(len(rows))])


def _moved(network: ReLUNetwork, step: FloatArray, fixed: set[int]) -> ReLUNetwork:
    weights, biases, skips = network.weights, network.biases, network.skips
    moved_weights, moved_biases, start = [], [], 0
    for layer, (into, out) in enumerate(pairwise(network.widths)):
        columns = 1 if layer in fixed else into + 1
        change = step[start : start + out * columns].reshape(out, columns)
        start += change.size
        moved_weights.append(weights[layer] if layer in fixed else weights[layer] + change[:, :-1])
        moved_biases.append(biases[layer] + change[:, -1])
    for key, w in skips.items():
        skips[key] = w + step[start : start + w.size].reshape(w.shape)
        start += w.size
    return ReLUNetwork(moved_weights, moved_biases, skips=skips)
