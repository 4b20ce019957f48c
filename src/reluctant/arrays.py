"""Where large arrays live, and the factorisations they need: numpy on the host, or torch beside a target on a device.

Code that handles large arrays is written once, with the names numpy and torch share (`xp.exp`, `xp.where`, slices).
An `Arrays` gives that namespace, moves arrays in (`put`) and out (`get`), and has what the two libraries spell
differently. An oracle says where the arrays of a method that asks it are best kept (`oracle.arrays`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reluctant._optional import require

__all__ = ["HOST", "Array", "Arrays", "TorchArrays"]

Array = Any  # an array of numpy or of torch
SEEDS = 2**63  # of a generator on a device


class Arrays:
    """Arrays of numpy, in the memory of the host."""

    xp: ClassVar[Any] = np
    cells: ClassVar[int] = 2**19  # numbers worked on together: they stay in the processor's cache

    def __reduce__(self) -> str | tuple[Any, ...]:
        return "HOST"  # there is one, on every machine

    def put(self, array: Array) -> Array:
        """The array, moved to where large ones live."""
        return array

    def get(self, array: Array) -> NDArray[Any]:
        """The array, as one of numpy."""
        return np.asarray(array)

    def empty(self, shape: tuple[int, ...]) -> Array:
        """Room for numbers in double precision."""
        return np.empty(shape)

    def normals(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Standard normal numbers."""
        return rng.standard_normal(shape)

    def single(self, array: Array) -> Array:
        """In single precision."""
        return array.astype(np.float32)

    def double(self, array: Array) -> Array:
        """In double precision."""
        return array.astype(np.float64)

    def inverse(self, matrix: Array) -> Array:
        """Of a square matrix."""
        return np.linalg.inv(matrix)

    def least_squares(self, design: Array, weights: Array) -> Array:
        """The matrix P for which P @ rows is the weighted least-squares solution."""
        import scipy.linalg  # not needed to ask a network

        q, r = scipy.linalg.qr(design * weights[:, None], mode="economic", check_finite=False)
        return scipy.linalg.solve_triangular(r, q.T * weights, check_finite=False)

    def row_pivots(self, matrix: Array, count: int) -> NDArray[np.intp]:
        """Rows that elimination with partial pivoting picks, the first so many: they span much volume."""
        import scipy.linalg  # not needed to ask a network

        factor = scipy.linalg.lapack.get_lapack_funcs(("getrf",), (matrix,))[0]
        return _picked(factor(matrix)[1], len(matrix), count)

    def cholesky_solver(self, matrix: Array) -> Callable[[Array], Array]:
        """Solves with a positive definite matrix."""
        import scipy.linalg  # not needed to ask a network

        factor = scipy.linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
        return lambda right: scipy.linalg.cho_solve(factor, right, check_finite=False)


class TorchArrays(Arrays):
    """Arrays of torch, on one device."""

    cells: ClassVar[int] = 2**28  # enough to keep a device busy

    def __init__(self, device: Any) -> None:
        self._torch = require("torch", extra="torch", purpose="Arrays on a device")
        self.device = self._torch.device(device)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return TorchArrays, (str(self.device),)

    @property
    def xp(self) -> Any:
        """The namespace: torch."""
        return self._torch

    def put(self, array: Array) -> Array:
        """A tensor on the device; one that is there stays."""
        if isinstance(array, self._torch.Tensor):
            return array.to(self.device)
        array = np.asarray(array, order="C")
        if array.flags.writeable:
            return self._torch.from_numpy(array).to(self.device)
        if self.device.type == "cpu":
            return self._torch.from_numpy(array.copy())
        with warnings.catch_warnings():  # of what would happen if the array itself were written to
            warnings.simplefilter("ignore", UserWarning)
            return self._torch.from_numpy(array).to(self.device)

    def get(self, array: Array) -> NDArray[Any]:
        """Back to the host."""
        found: NDArray[Any] = array.cpu().numpy()
        return found

    def empty(self, shape: tuple[int, ...]) -> Array:
        """Room for numbers in double precision."""
        return self._torch.empty(shape, dtype=self._torch.float64, device=self.device)

    def normals(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Standard normal numbers, drawn on the device; the generator gives the seed."""
        drawing = self._torch.Generator(self.device).manual_seed(int(rng.integers(SEEDS)))
        return self._torch.randn(shape, generator=drawing, dtype=self._torch.float64, device=self.device)

    def single(self, array: Array) -> Array:
        """In single precision."""
        return array.float()

    def double(self, array: Array) -> Array:
        """In double precision."""
        return array.double()

    def inverse(self, matrix: Array) -> Array:
        """Of a square matrix."""
        try:
            return self._torch.linalg.inv(matrix)
        except self._torch.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(str(error)) from error

    def least_squares(self, design: Array, weights: Array) -> Array:
        """The matrix P for which P @ rows is the weighted least-squares solution."""
        q, r = self._torch.linalg.qr(design * weights[:, None])
        return self._torch.linalg.solve_triangular(r, q.T * weights, upper=True)

    def row_pivots(self, matrix: Array, count: int) -> NDArray[np.intp]:
        """Rows that elimination with partial pivoting picks, the first so many: they span much volume."""
        # Columns of zeros change none of these pivots, and torch factors a square matrix ten times faster.
        square = self._torch.nn.functional.pad(matrix, (0, max(0, len(matrix) - matrix.shape[1])))
        swaps = self._torch.linalg.lu_factor_ex(square)[1]
        return _picked(self.get(swaps) - 1, len(matrix), count)

    def cholesky_solver(self, matrix: Array) -> Callable[[Array], Array]:
        """Solves with a positive definite matrix."""
        try:
            factor = self._torch.linalg.cholesky(matrix)
        except self._torch.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(str(error)) from error
        return lambda right: self._torch.cholesky_solve(right[:, None], factor)[:, 0]


def _picked(swaps: NDArray[Any], rows: int, count: int) -> NDArray[np.intp]:
    """The rows that come first after these swaps, as LAPACK counts them."""
    order = np.arange(rows)
    for i, j in enumerate(swaps[:count]):
        order[i], order[j] = order[j], order[i]
    return order[:count]


HOST = Arrays()
