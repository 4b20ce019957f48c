"""A frame: an affine subspace of input space with coordinates of its own, and networks seen in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Frame", "FramedNetwork"]


@dataclass(frozen=True)
class Frame:
    """Points origin + y @ basis; the rows of `basis` (k, d) are orthonormal."""

    origin: FloatArray
    basis: FloatArray

    def points(self, y: FloatArray) -> FloatArray:
        """Rows (n, d) of input space at coordinates (n, k)."""
        return self.origin + y @ self.basis

    def extended(self, directions: FloatArray) -> Frame:
        """The frame with more directions, orthonormal to those it has."""
        return Frame(self.origin, np.concatenate([self.basis, directions]))

    def new_directions(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Random orthonormal directions (n, d) orthogonal to the frame."""
        d = len(self.origin)
        drawn = rng.standard_normal((d, n))
        for _ in range(2):  # twice is enough for orthogonality to rounding
            drawn = np.linalg.qr(drawn - self.basis.T @ (self.basis @ drawn))[0]
        return drawn.T


@dataclass(frozen=True)
class FramedNetwork:
    """A depth-two network in the coordinates of a frame: what is known of a target so far.

    Gauge: output weights of each neuron have norm one, and the skip term is the affine map of the region
    the search began with, so every neuron counts from zero there. `weight_sd` is the noise of each neuron's
    weights.
    """

    frame: Frame
    network: ReLUNetwork
    weight_sd: FloatArray  # (h,)

    @property
    def neurons(self) -> int:
        """Number of hidden neurons."""
        return self.network.widths[1]

    def lifted(self) -> ReLUNetwork:
        """The network as a function of the input itself; it ignores what is orthogonal to the frame."""
        (g, a), (z, c) = self.network.weights, self.network.biases
        skip = np.zeros((len(c), len(self.frame.basis))) if self.network.skip is None else self.network.skip
        w, s = g @ self.frame.basis, skip @ self.frame.basis
        return ReLUNetwork([w, a], [z - w @ self.frame.origin, c - s @ self.frame.origin], s)
