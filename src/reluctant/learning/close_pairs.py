"""Pairs of close neurons: Definition 3.7 of "Efficiently Learning Any One Hidden Layer ReLU Network From Queries"
(Chen, Klivans and Meka, 2021). A neuron (v, b) is the function max(⟨v, x⟩ - b, 0).
"""

from __future__ import annotations

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray

__all__ = ["are_close", "offsets", "sines"]


def sines(v: FloatArray) -> FloatArray:
    """|sin ∠(v_i, v_j)| for all pairs (n, n), from sums and differences, which keep the digits of small angles."""
    u = _units(v)
    apart = np.linalg.norm(u[:, None] - u, axis=2)
    return np.asarray(apart * np.linalg.norm(u[:, None] + u, axis=2) / 2)


def offsets(v: FloatArray, b: FloatArray) -> FloatArray:
    """‖b_i v_j - b_j v_i‖ / (‖v_i‖ ‖v_j‖) for all pairs (n, n)."""
    u, beta = _units(v), b / np.linalg.norm(v, axis=1)
    return np.asarray(np.linalg.norm(beta[:, None, None] * u - beta[None, :, None] * u[:, None], axis=2))


def are_close(v: FloatArray, b: FloatArray, separation: float, alpha: float) -> BoolArray:
    """Definition 3.7: which pairs (n, n) are (Δ, α)-close. Opposite neurons are close to each other too."""
    return np.asarray((sines(v) <= separation) & (offsets(v, b) <= alpha))


def _units(v: FloatArray) -> FloatArray:
    norms = np.linalg.norm(v, axis=1, keepdims=True)
    if not norms.all():
        raise InvalidInput.about("v", got="a neuron without weights", expected="vectors that have a direction")
    return np.asarray(v / norms)
