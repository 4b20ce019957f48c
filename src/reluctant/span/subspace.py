"""`Subspace`: a linear subspace of input space, its complement, projections, angles and file.

`Subspace` is the finished value, with projections, angles and a file format. `Complement` is the same under
construction: directions found so far and an orthonormal basis of everything else, kept up to date together.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from reluctant._files import replacement
from reluctant.errors import InvalidInput, UnsupportedModel
from reluctant.numerics import DOUBLE, FloatArray

NPZ_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Subspace:
    """The span of orthonormal rows. Equal if the rows are, to the last bit: `distance` compares spans.

    Arguments:
        basis: (k, d) orthonormal rows; k = 0 is the subspace of the origin alone. `Subspace.spanned_by` takes any.
    """

    basis: FloatArray

    def __post_init__(self) -> None:
        orthonormal = 1e-10  # how far the rows of a basis may be from it
        basis = np.array(self.basis, dtype=np.float64)
        if basis.ndim != 2 or not 0 <= len(basis) <= basis.shape[1] or not np.isfinite(basis).all():
            raise InvalidInput.about("basis", got=f"shape {basis.shape}", expected="finite rows (k, d) with k ≤ d")
        if np.abs(basis @ basis.T - np.eye(len(basis))).max(initial=0.0) > orthonormal:
            raise InvalidInput.about(
                "basis", got="rows that are not orthonormal", expected="orthonormal rows",
                fix="Use Subspace.spanned_by(rows).",
            )  # fmt: skip
        basis.flags.writeable = False
        object.__setattr__(self, "basis", basis)

    @classmethod
    def spanned_by(cls, rows: ArrayLike, *, tol: float | None = None) -> Self:
        """The span of any rows (n, d); singular values below `tol` of the largest do not count."""
        no_direction = 4.0  # roundings a coordinate, of the longest row: shorter parts are rounding
        array = np.asarray(rows, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] == 0 or not np.isfinite(array).all():
            raise InvalidInput.about("rows", got=f"shape {array.shape}", expected="finite rows (n, d)")
        if len(array) == 0:
            return cls(array)
        _, sizes, directions = np.linalg.svd(array, full_matrices=False)
        least = no_direction * max(array.shape) * DOUBLE.rounding if tol is None else tol
        return cls(directions[sizes > least * sizes[0]] if sizes[0] > 0 else directions[:0])

    # ---- facts

    @property
    def rank(self) -> int:
        """Number of directions."""
        return len(self.basis)

    @property
    def dim(self) -> int:
        """Number of coordinates of the space around it."""
        return int(self.basis.shape[1])

    @property
    def invisible_share(self) -> float:
        """Share of the directions of input space that lie outside: what a target with this span cannot see."""
        return 1 - self.rank / self.dim

    @cached_property
    def null_basis(self) -> FloatArray:
        """Orthonormal rows (d - k, d) of everything orthogonal to it."""
        rows = np.linalg.qr(self.basis.T, mode="complete")[0].T[self.rank :] if self.rank else np.eye(self.dim)
        rows.flags.writeable = False
        return rows

    @property
    def null_space(self) -> Subspace:
        """Everything orthogonal to it."""
        return Subspace(self.null_basis)

    @cached_property
    def projector(self) -> FloatArray:
        """The (d, d) matrix that projects onto it."""
        projector = self.basis.T @ self.basis
        projector.flags.writeable = False
        return projector

    # ---- what it does to rows

    def project(self, rows: ArrayLike) -> FloatArray:
        """The part (n, d) of rows that lies in it."""
        return (self._rows(rows) @ self.basis.T) @ self.basis

    def reject(self, rows: ArrayLike) -> FloatArray:
        """The part (n, d) of rows that is orthogonal to it."""
        rest = self._rows(rows)
        for _ in range(2):  # twice is enough for orthogonality to rounding
            rest = rest - (rest @ self.basis.T) @ self.basis
        return rest

    def visible_share(self, rows: ArrayLike) -> FloatArray:
        """Share (n,) of the squared norm of each row that lies in it; 0 for a row of zeros."""
        array = self._rows(rows)
        whole = (array**2).sum(axis=1)
        inside = ((array @ self.basis.T) ** 2).sum(axis=1)
        return np.asarray(np.divide(inside, whole, out=np.zeros_like(whole), where=whole > 0))

    def _rows(self, rows: ArrayLike) -> FloatArray:
        array = np.asarray(rows, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != self.dim:
            raise InvalidInput.about("rows", got=f"shape {array.shape}", expected=f"(n, {self.dim})")
        return array

    # ---- beside another one

    def angles(self, other: Subspace) -> FloatArray:
        """Principal angles in radians, min(k, k') of them, smallest first; small ones are exact to rounding."""
        self._check_same_space(other)
        if min(self.rank, other.rank) == 0:
            return np.empty(0)
        small, large = (self, other) if self.rank <= other.rank else (other, self)
        cosines = np.linalg.svd(small.basis @ large.basis.T, compute_uv=False)
        sines = np.linalg.svd(large.reject(small.basis), compute_uv=False)[::-1]
        return np.asarray(
            np.where(cosines**2 > 0.5, np.arcsin(np.clip(sines, 0, 1)), np.arccos(np.clip(cosines, 0, 1)))
        )

    def distance(self, other: Subspace) -> float:
        """Largest sine between a direction of either and the other: 0 if equal, 1 if the ranks differ."""
        self._check_same_space(other)
        if self.rank != other.rank:
            return 1.0
        return float(np.linalg.norm(other.reject(self.basis), 2)) if self.rank else 0.0

    def _check_same_space(self, other: Subspace) -> None:
        if self.dim != other.dim:
            raise InvalidInput.about("other", got=f"{other.dim} coordinates", expected=f"{self.dim}")

    # ---- on disk

    def save(self, path: str | Path) -> None:
        """Write it as `.npz`."""
        path = Path(path)
        if path.suffix != ".npz" or not path.parent.is_dir():
            raise InvalidInput.about("path", got=f"'{path}'", expected="a name ending in .npz, in an existing folder")
        with replacement(path) as fresh, fresh.open("wb") as file:
            np.savez(file, format=np.array(NPZ_FORMAT), basis=self.basis)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read it from `.npz`."""
        path = Path(path)
        if not path.is_file():
            raise InvalidInput.about("path", got=f"'{path}'", expected="an existing file")
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
                found, basis = int(data["format"]), np.asarray(data["basis"], dtype=np.float64)
        except (KeyError, ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise UnsupportedModel.about(
                "path", got=f"'{path}'", expected="an .npz written by Subspace.save"
            ) from error
        if found != NPZ_FORMAT:
            raise UnsupportedModel.about(
                "path", got=f"'{path}' of format {found}", expected=f"format {NPZ_FORMAT}", fix="Update reluctant."
            )
        return cls(basis)

    def __eq__(self, other: object) -> bool:
        return np.array_equal(self.basis, other.basis) if isinstance(other, Subspace) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.basis.shape, self.basis.tobytes()))

    def __repr__(self) -> str:
        return f"Subspace(rank {self.rank} of {self.dim})"


class Complement:
    """Rows orthogonal to the directions removed so far; at first all coordinates."""

    def __init__(self, dim: int) -> None:
        self.rows = np.eye(dim)  # (d - k, d)
        self._taken: list[FloatArray] = []

    @classmethod
    def of(cls, basis: FloatArray) -> Complement:
        """The complement of orthonormal rows (k, d)."""
        complement = cls(basis.shape[1])
        complement.take(basis)
        return complement

    @property
    def rank(self) -> int:
        """Number of directions removed."""
        return len(self._taken)

    @property
    def basis(self) -> FloatArray:
        """The directions removed (k, d), orthonormal."""
        return np.array(self._taken).reshape(-1, self.rows.shape[1])

    def take(self, directions: FloatArray) -> None:
        """Take orthonormal directions (q, d - k), in coordinates of the complement, out of it."""
        directions = directions.copy()
        for i in range(len(directions)):
            normal = directions[i].copy()
            normal[0] += 1.0 if normal[0] >= 0 else -1.0
            mirror = np.asarray(normal / np.linalg.norm(normal))
            self.rows -= np.outer(2 * mirror, mirror @ self.rows)
            directions -= np.outer(directions @ mirror, 2 * mirror)
            self._taken.append(self.rows[0].copy())
            self.rows, directions = self.rows[1:], directions[:, 1:]
