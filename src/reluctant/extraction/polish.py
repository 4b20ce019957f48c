"""Fit all parameters of a network at once to answers that were paid for.

Each answer is weighted by its noise, so after the fit the residuals say whether the network explains everything
that was seen. Any depth; no queries.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.linalg

from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting, Oracle, Wrapper

__all__ = ["FARTHEST", "MOST_PARAMETERS", "Remembering", "polish", "remember"]

MOST_PARAMETERS = 1300  # a dense least-squares problem of this size takes about a second
STEPS = 3
DAMPING = 1e-10  # relative to columns of norm one
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
    network: ReLUNetwork, rows: FloatArray, answers: FloatArray, noise: DistanceNoise, steps: int = STEPS
) -> ReLUNetwork:
    """Gauss–Newton on all weights, with all answers that are not too far out."""
    distance = np.linalg.norm(rows, axis=1)
    near = distance < FARTHEST * np.sqrt(network.dim)
    rows, answers, sd = rows[near], answers[near], noise.at(distance[near])
    for _ in range(steps):
        residual = (answers - network(rows)) / sd[:, None]
        network = _moved(network, _solve(_jacobian(network, rows) / np.repeat(sd, network.outputs)[:, None], residual))
    return network


def _solve(jacobian: FloatArray, residual: FloatArray) -> FloatArray:
    scale = np.linalg.norm(jacobian, axis=0)
    scale[scale == 0] = 1.0
    # Scales of neurons are free, so the problem is singular along them: a slight pull to zero takes a short step.
    n = len(scale)
    damped = np.vstack([jacobian / scale, DAMPING * np.eye(n)])
    q, r = scipy.linalg.qr(damped, mode="economic", overwrite_a=True, check_finite=False)
    right = q[: residual.size].T @ residual.reshape(-1)
    return np.asarray(scipy.linalg.solve_triangular(r, right, check_finite=False) / scale)


def _jacobian(network: ReLUNetwork, rows: FloatArray) -> FloatArray:
    """Derivatives (n·m, parameters): weights and bias of each neuron, layer by layer, then the affine term.

    With one output the output weights are left out: they only rescale the neurons of the last hidden layer.
    """
    n, m = len(rows), network.outputs
    values = network.preactivations(rows)
    inputs = [_with_ones(h) for h in (rows, *(np.maximum(z, 0) for z in values))]
    downstream = np.broadcast_to(np.eye(m), (n, m, m))  # derivative of the outputs by the values of a layer
    blocks = []
    for layer in range(network.depth - 1, -1, -1):
        if layer < network.depth - 1:
            downstream = (downstream @ network.weights[layer + 1]) * (values[layer] > 0)[:, None, :]
        by_layer = inputs[layer] if layer < network.depth - 1 or m > 1 else inputs[layer][:, -1:]
        blocks.append(np.einsum("nkh,ni->nkhi", downstream, by_layer).reshape(n * m, -1))
    if network.skip is not None:
        blocks.insert(0, np.einsum("nd,kl->nkld", rows, np.eye(m)).reshape(n * m, -1))
    return np.hstack(blocks[::-1])


def _with_ones(rows: FloatArray) -> FloatArray:
    return np.column_stack([rows, np.ones(len(rows))])


def _moved(network: ReLUNetwork, step: FloatArray) -> ReLUNetwork:
    weights, biases, skip = network.weights, network.biases, network.skip
    moved_weights, moved_biases, start = [], [], 0
    for layer, (into, out) in enumerate(pairwise(network.widths)):
        kept = layer == network.depth - 1 and network.outputs == 1
        columns = 1 if kept else into + 1
        change = step[start : start + out * columns].reshape(out, columns)
        start += change.size
        moved_weights.append(weights[layer] if kept else weights[layer] + change[:, :-1])
        moved_biases.append(biases[layer] + change[:, -1])
    if skip is not None:
        skip = skip + step[start:].reshape(skip.shape)
    return ReLUNetwork(moved_weights, moved_biases, skip)
