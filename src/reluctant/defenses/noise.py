"""Noise on the answers, Gaussian or Laplace: fresh with every question, or fixed to the input.

Fresh noise is averaged away by asking again; fixed noise is a function of the row and a secret seed, so that asking
again tells nothing new.
"""

from __future__ import annotations

import hashlib
from math import isfinite

import numpy as np
from scipy.special import ndtri

from reluctant.defenses.base import Defense
from reluctant.errors import InvalidInput
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Oracle

__all__ = ["GaussianNoise", "LaplaceNoise"]

BYTES_A_NUMBER = 8
MANTISSA_BITS = 53


class _Noise(Defense):
    """Answers with independent noise of a standard deviation added to each."""

    repeatable = False

    def __init__(self, inner: Oracle, sd: float, *, fixed: bool = False, seed: int = 0) -> None:
        super().__init__(inner)
        if not (isinstance(sd, int | float) and sd > 0 and isfinite(sd)):
            raise InvalidInput.about("noise", got=repr(sd), expected="a standard deviation above 0")
        self.sd, self.fixed, self.seed = float(sd), fixed, seed
        self.draws = not fixed
        self._rng = np.random.default_rng(seed)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then add noise."""
        answers = self.inner.answer(rows)
        uniform = self._fixed_to(rows, answers.shape[1]) if self.fixed else self._rng.uniform(size=answers.shape)
        inside = np.clip(uniform, 2.0**-MANTISSA_BITS, 1 - 2.0**-MANTISSA_BITS)
        return answers + self.sd * self.shape(inside)

    def shape(self, uniform: FloatArray) -> FloatArray:
        """Noise of unit deviation from uniform numbers."""
        raise NotImplementedError

    def _fixed_to(self, rows: FloatArray, outputs: int) -> FloatArray:
        """Uniform numbers that only the row and the seed determine."""
        key, size = str(self.seed).encode() + b":", BYTES_A_NUMBER * outputs
        digests = b"".join(hashlib.shake_128(key + row.tobytes()).digest(size) for row in rows + 0.0)
        whole = np.frombuffer(digests, dtype=np.uint64).reshape(len(rows), outputs)
        return np.asarray((whole >> np.uint64(64 - MANTISSA_BITS)) * 2.0**-MANTISSA_BITS, dtype=np.float64)


class GaussianNoise(_Noise):
    """Gaussian noise of this standard deviation."""

    def shape(self, uniform: FloatArray) -> FloatArray:
        """Normal numbers."""
        return np.asarray(ndtri(uniform))


class LaplaceNoise(_Noise):
    """Laplace noise of this standard deviation, as differential privacy uses it."""

    def shape(self, uniform: FloatArray) -> FloatArray:
        """Laplace numbers of unit deviation."""
        centred = uniform - 0.5
        return np.asarray(-np.sign(centred) * np.log1p(-2 * np.abs(centred)) / np.sqrt(2))
