"""For small networks: fit all parameters at once to every answer that was paid for.

Each answer is weighted by its noise, so after the fit the residuals say whether the network explains
everything that was seen. No queries.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting, Oracle, Wrapper

__all__ = ["MOST_PARAMETERS", "Remembering", "polish", "remember"]

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


def remember(oracle: Counting) -> tuple[Counting, Remembering]:
    """The same opened target with the same ledger, and a memory of what it answers from now on."""
    memory = Remembering(oracle.inner)
    return Counting(memory, oracle.ledger, oracle.facts.domain), memory


def polish(network: ReLUNetwork, memory: Remembering, noise: DistanceNoise) -> ReLUNetwork:
    """Gauss–Newton on all weights, with every remembered answer."""
    rows, answers = np.concatenate(memory.rows), np.concatenate(memory.answers)
    distance = np.linalg.norm(rows, axis=1)
    near = distance < FARTHEST * np.sqrt(network.dim)
    rows, answers, sd = rows[near], answers[near], noise.at(distance[near])
    for _ in range(STEPS):
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
    """Derivatives (n·m, parameters) by weights and biases of neurons, output weights, skip and constants."""
    n, m, a = len(rows), network.outputs, network.weights[1]
    values = network.preactivations(rows)[0]
    ones = np.column_stack([rows, np.ones(n)])
    neurons = np.einsum("nh,kh,nd->nkhd", values > 0, a, ones).reshape(n * m, -1)
    hidden = np.maximum(values, 0)
    outputs = np.einsum("nh,kl->nklh", hidden, np.eye(m)).reshape(n * m, -1) if m > 1 else np.empty((n, 0))
    affine = np.einsum("nd,kl->nkld", ones, np.eye(m)).reshape(n * m, -1)
    return np.hstack([neurons, outputs, affine])


def _moved(network: ReLUNetwork, step: FloatArray) -> ReLUNetwork:
    (w, a), (b, c) = network.weights, network.biases
    h, d, m = len(b), network.dim, len(c)
    neurons, rest = np.split(step, [h * (d + 1)])
    outputs, affine = np.split(rest, [h * m if m > 1 else 0])
    moved = np.column_stack([w, b]) + neurons.reshape(h, d + 1)
    a = a + outputs.reshape(m, h) if m > 1 else a
    assert network.skip is not None
    tail = np.column_stack([network.skip, c]) + affine.reshape(m, d + 1)
    return ReLUNetwork([moved[:, :-1], a], [moved[:, -1], tail[:, -1]], tail[:, :-1])
