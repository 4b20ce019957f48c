"""Lines and frames in input space.

Lines are x(t) = origin + t · direction, many at once, whole or from limit to limit. A frame is an affine subspace
of input space with coordinates of its own; a `FramedNetwork` is a depth-two network in the coordinates of a frame,
which is what a search knows of a target so far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reluctant.arrays import HOST, Array, Arrays
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["FAR_END", "Frame", "FramedNetwork", "Lines"]

FAR_END = 1e6  # whole lines end here, in units of the scale: creases beyond are not found


@dataclass(frozen=True)
class Lines:
    """Origins (n, d), unit directions (n, d), and the positions between which a line may be asked.

    `scale` is the typical size of an input, the unit of t.
    """

    origins: FloatArray
    directions: FloatArray
    scale: float
    low: FloatArray  # (n,)
    high: FloatArray

    @classmethod
    def random(cls, rng: np.random.Generator, n: int, dim: int, scale: float = 1.0) -> Lines:
        """Whole lines through Gaussian points of this scale, in random directions."""
        directions = rng.standard_normal((n, dim))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        size = scale * float(np.sqrt(dim))
        far = np.full(n, 2 * FAR_END * size)
        return cls(scale * rng.standard_normal((n, dim)), directions, size, -far, far)

    @classmethod
    def between(cls, start: FloatArray, stop: FloatArray, scale: float) -> Lines:
        """Segments from each point of `start` to the one of `stop`; t is the distance from the first."""
        directions = stop - start
        lengths = np.linalg.norm(directions, axis=1)
        return cls(start, directions / lengths[:, None], scale, np.zeros(len(start)), lengths)

    def __len__(self) -> int:
        return len(self.origins)

    def points(self, line: NDArray[np.intp], t: FloatArray) -> FloatArray:
        """Rows (len(t), d) at positions t on the lines of these indices."""
        return self.origins[line] + t[:, None] * self.directions[line]

    def angle(self, t: FloatArray) -> FloatArray:
        """Position as an angle: creases of random neurons are spread evenly in it."""
        return np.arctan(t / self.scale)

    def position(self, angle: FloatArray) -> FloatArray:
        """Inverse of `angle`."""
        return self.scale * np.tan(angle)


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

    def random_lines(self, rng: np.random.Generator, n: int) -> Lines:
        """Whole lines inside the frame, as far from its origin as random points are from that of input space."""
        k, d = self.basis.shape
        inside = Lines.random(rng, n, k, float(np.sqrt(d / k)))
        return replace(inside, origins=self.points(inside.origins), directions=inside.directions @ self.basis)


@dataclass(frozen=True)
class FramedNetwork:
    """A depth-two network in the coordinates of a frame: what is known of a target so far.

    Gauge: output weights of each neuron have norm one, and the skip term is the affine map of the region
    the search began with, so every neuron counts from zero there.

    Each neuron was seen on a line: a point of its crease is known exactly, its weight along the line with the noise
    `along_sd`, those across it with `weight_sd`. That line is the frame's first axis, which the search began on, or
    else the one through `seen_at` (h, k) along `seen_along`.
    """

    frame: Frame
    network: ReLUNetwork
    weight_sd: FloatArray  # (h,)
    along_sd: FloatArray
    seen_at: FloatArray | None = None
    seen_along: FloatArray | None = None

    @property
    def neurons(self) -> int:
        """Number of hidden neurons."""
        return self.network.widths[1]

    @property
    def positions(self) -> FloatArray:
        """Where each neuron's crease meets the first axis (h,)."""
        return np.asarray(-self.network.biases[0] / self.network.weights[0][:, 0])

    @property
    def points(self) -> FloatArray:
        """A point (h, k) of each crease that is known exactly."""
        if self.seen_at is not None:
            return self.seen_at
        points = np.zeros_like(self.network.weights[0])
        points[:, 0] = self.positions
        return points

    @property
    def lines(self) -> FloatArray:
        """Directions (h, k) of the lines on which the neurons were seen."""
        if self.seen_along is not None:
            return self.seen_along
        lines = np.zeros_like(self.network.weights[0])
        lines[:, 0] = 1
        return lines

    def sd_at(self, y: FloatArray, arrays: Arrays = HOST) -> Array:
        """Noise (n, h) of the neurons' values at these points: it grows from where a crease is known."""
        across, along = self._away(y, arrays)
        return arrays.xp.sqrt(across * arrays.put(self.weight_sd**2) + along * arrays.put(self.along_sd**2))

    def _away(self, y: FloatArray, arrays: Arrays) -> tuple[Array, Array]:
        """Squares of how far points are from where each crease is known, across its line and along it."""
        if self.seen_at is None:
            along = (arrays.put(y[:, :1]) - arrays.put(self.positions)) ** 2
            return arrays.put((y[:, 1:] ** 2).sum(axis=1))[:, None], along
        points, lines, rows = self.points, self.lines, arrays.put(y)
        squares = rows @ arrays.put(-2 * points.T)
        squares += arrays.put((points**2).sum(axis=1))
        squares += arrays.put((y**2).sum(axis=1))[:, None]
        along = (rows @ arrays.put(lines.T) - arrays.put((points * lines).sum(axis=1))) ** 2
        return arrays.xp.clip(squares - along, 0, None), along

    def sd_within(self, reach: float) -> FloatArray:
        """About the noise (h,) of the neurons' values at points this far from the origin, where that is largest."""
        return np.hypot(self.weight_sd * reach, self.along_sd * np.linalg.norm(self.points, axis=1))

    def lifted(self) -> ReLUNetwork:
        """The network as a function of the input itself; it ignores what is orthogonal to the frame."""
        (g, a), (z, c) = self.network.weights, self.network.biases
        skip = np.zeros((len(c), len(self.frame.basis))) if self.network.skip is None else self.network.skip
        w, s = g @ self.frame.basis, skip @ self.frame.basis
        return ReLUNetwork([w, a], [z - w @ self.frame.origin, c - s @ self.frame.origin], s)
