"""Fit all parameters of a network at once to answers that were paid for.

Each answer is weighted by its noise, so after the fit the residuals say whether the network explains everything
that was seen. Any depth; no queries.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import scipy.linalg

from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting, Oracle, Wrapper

__all__ = ["FARTHEST", "MOST_PARAMETERS", "Remembering", "polish", "remember"]

MOST_PARAMETERS = 2600  # a dense least-squares problem of this size takes seconds
STEPS = 4
DAMPING = 1e-12  # of the squares of columns of norm one
THOROUGH_DAMPING = 1e-10  # of columns of norm one
MOST_ENTRIES = 6e7  # of the matrix; beyond, every other row has to do
FARTHEST = 1e3  # answers farther out, in units of the scale of use, have too few digits left


class Remembering(Wrapper):
    """Keeps rows and answers as they pass."""

    transparent = True

    def __init__(self, inner: Oracle) -> None:
        super().__init__(inner)
        self.rows: list[FloatArray] = []
        self.answers: list[FloatArray] = []

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, keep a copy."""
        answers = self.inner.answer(rows)
        self.rows.append(rows.copy())
        self.answers.append(answers.copy())
        return answers

    def everything(self) -> tuple[FloatArray, FloatArray]:
        """All rows and their answers."""
        return np.concatenate(self.rows), np.concatenate(self.answers)


def remember(oracle: Counting) -> tuple[Counting, Remembering]:
    """The same opened target with the same ledger, and a memory of what it answers from now on."""
    memory = Remembering(oracle.inner)
    return Counting(memory, oracle.ledger, oracle.facts.domain), memory


def polish(
    network: ReLUNetwork,
    rows: FloatArray,
    answers: FloatArray,
    noise: DistanceNoise,
    steps: int = STEPS,
    *,
    first_weights: bool = True,
    thorough: bool = False,
) -> ReLUNetwork:
    """Gauss–Newton on all parameters, with all answers that are not too far out.

    The network is close, so one factorisation serves all steps; each step sees the true residual again. The
    weights of the first layer stay as they are if `first_weights` is False; its biases do not. A `thorough` fit,
    several times as slow, sees directions in which the answers say little.
    """
    fixed = _fixed_layers(network, first_weights)
    distance = np.linalg.norm(rows, axis=1)
    near = np.flatnonzero(distance < FARTHEST * np.sqrt(network.dim))
    near = near[:: 1 + int(len(near) * network.outputs * _parameters(network, fixed) // MOST_ENTRIES)]
    rows, answers, weight = rows[near], answers[near], 1 / noise.at(distance[near])[:, None]
    jacobian = _jacobian(network, rows, fixed) * np.repeat(weight, network.outputs, axis=0)
    scale = np.linalg.norm(jacobian, axis=0)
    scale[scale == 0] = 1.0
    jacobian /= scale
    solve = _by_orthogonal_factors(jacobian) if thorough else _by_normal_equations(jacobian)
    for _ in range(steps):
        residual = ((answers - network(rows)) * weight).reshape(-1)
        network = _moved(network, solve(residual) / scale, fixed)
    return network


# Scales of neurons are free, so the problem is singular along them: a slight pull to zero takes a short step.


def _by_normal_equations(jacobian: FloatArray) -> Callable[[FloatArray], FloatArray]:
    normal = jacobian.T @ jacobian
    normal[np.diag_indices_from(normal)] += DAMPING
    factor = scipy.linalg.cho_factor(normal, overwrite_a=True, check_finite=False)
    return lambda residual: np.asarray(scipy.linalg.cho_solve(factor, jacobian.T @ residual, check_finite=False))


def _by_orthogonal_factors(jacobian: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Without the product JᵀJ, which would square what is small."""
    n, k = jacobian.shape
    damped = np.vstack([jacobian, THOROUGH_DAMPING * np.eye(k)])
    q, r = scipy.linalg.qr(damped, mode="economic", overwrite_a=True, check_finite=False)
    return lambda residual: np.asarray(scipy.linalg.solve_triangular(r, q[:n].T @ residual, check_finite=False))


def _fixed_layers(network: ReLUNetwork, first_weights: bool) -> set[int]:
    """Layers whose weights stay: one output's only rescale the neurons below, the first ones if so wanted."""
    last = {network.depth - 1} if network.outputs == 1 else set()
    return last if first_weights else {0} | last


def _parameters(network: ReLUNetwork, fixed: set[int]) -> int:
    free = [weights for layer, weights in enumerate(network.weights) if layer not in fixed]
    return sum(part.size for part in (*free, *network.biases))


def _jacobian(network: ReLUNetwork, rows: FloatArray, fixed: set[int]) -> FloatArray:
    """Derivatives (n·m, parameters): weights and bias of each neuron, layer by layer, then the affine term."""
    n, m = len(rows), network.outputs
    values = network.preactivations(rows)
    inputs = [_with_ones(h) for h in (rows, *(np.maximum(z, 0) for z in values))]
    downstream = np.broadcast_to(np.eye(m), (n, m, m))  # derivative of the outputs by the values of a layer
    blocks = []
    for layer in range(network.depth - 1, -1, -1):
        if layer < network.depth - 1:
            downstream = (downstream @ network.weights[layer + 1]) * (values[layer] > 0)[:, None, :]
        by_layer = inputs[layer][:, -1:] if layer in fixed else inputs[layer]
        blocks.append(np.einsum("nkh,ni->nkhi", downstream, by_layer).reshape(n * m, -1))
    if network.skip is not None:
        blocks.insert(0, np.einsum("nd,kl->nkld", rows, np.eye(m)).reshape(n * m, -1))
    return np.hstack(blocks[::-1])


def _with_ones(rows: FloatArray) -> FloatArray:
    return np.column_stack([rows, np.ones(len(rows))])


def _moved(network: ReLUNetwork, step: FloatArray, fixed: set[int]) -> ReLUNetwork:
    weights, biases, skip = network.weights, network.biases, network.skip
    moved_weights, moved_biases, start = [], [], 0
    for layer, (into, out) in enumerate(pairwise(network.widths)):
        columns = 1 if layer in fixed else into + 1
        change = step[start : start + out * columns].reshape(out, columns)
        start += change.size
        moved_weights.append(weights[layer] if layer in fixed else weights[layer] + change[:, :-1])
        moved_biases.append(biases[layer] + change[:, -1])
    if skip is not None:
        skip = skip + step[start:].reshape(skip.shape)
    return ReLUNetwork(moved_weights, moved_biases, skip)
