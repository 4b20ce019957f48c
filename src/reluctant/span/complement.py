"""Directions found so far and an orthonormal basis of everything else, kept up to date together."""

from __future__ import annotations

import numpy as np

from reluctant.numerics import FloatArray

__all__ = ["Complement"]


class Complement:
    """Rows orthogonal to the directions taken out of it so far; at first all coordinates."""

    def __init__(self, dim: int) -> None:
        self.rows = np.eye(dim)  # (d - k, d)
        self._taken: list[FloatArray] = []

    @classmethod
    def of(cls, basis: FloatArray) -> Complement:
        """What is orthogonal to orthonormal rows (k, d)."""
        complement = cls(basis.shape[1])
        complement.take(basis)
        return complement

    @property
    def rank(self) -> int:
        """Number of directions taken out."""
        return len(self._taken)

    @property
    def basis(self) -> FloatArray:
        """The directions taken out (k, d), orthonormal."""
        return np.array(self._taken).reshape(-1, self.rows.shape[1])

    def take(self, directions: FloatArray) -> None:
        """Take orthonormal directions (q, d - k), in coordinates of the complement, out of it."""
        directions = directions.copy()
        for i in range(len(directions)):
            mirror = _mirror_to_first(directions[i])
            self.rows -= np.outer(2 * mirror, mirror @ self.rows)
            directions -= np.outer(directions @ mirror, 2 * mirror)
            self._taken.append(self.rows[0].copy())
            self.rows, directions = self.rows[1:], directions[:, 1:]


def _mirror_to_first(direction: FloatArray) -> FloatArray:
    """Unit normal of the mirror that sends a unit vector to plus or minus the first coordinate."""
    normal = direction.copy()
    normal[0] += 1.0 if normal[0] >= 0 else -1.0
    return np.asarray(normal / np.linalg.norm(normal))
