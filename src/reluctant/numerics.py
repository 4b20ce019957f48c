"""Array types, number formats, noise, tolerances, random generators, threads, and arrays on a device.

`Noise` is a model of what a target adds to its values; `Tolerances` holds the thresholds that follow from number
format, noise and scale, each with its inequality. Large arrays stay on the host with numpy, or beside a target on a
device with torch: code that handles them uses the names that both share.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reluctant.errors import InvalidInput, require, words

FloatArray: TypeAlias = NDArray[np.float64]
Rng: TypeAlias = "int | np.random.Generator | None"

FLOAT_BYTES = np.dtype(np.float64).itemsize
MANY_NEURONS = 600  # from here on a factorisation that looks at every pivot takes a noticeable part of the time


def unit_roundoff(dtype: np.dtype[Any] | str | type) -> float:
    """Half the gap between 1 and the next number of the format: the error of one rounding."""
    return float(np.finfo(np.dtype(dtype)).eps) / 2


def all_finite(array: FloatArray) -> bool:
    """True if no entry is NaN or inf.

    The sum of squares is finite only if every entry is, and costs half as much as looking at each; if
    it overflows, each is checked.
    """
    flat = array.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.dot(flat, flat)) or np.isfinite(flat).all())


def quotient(error: FloatArray, size: FloatArray) -> FloatArray:
    """Errors relative to sizes (n,); infinite where there is nothing, or next to nothing, to compare with."""
    with np.errstate(over="ignore"):
        return np.divide(error, size, out=np.full(len(size), np.inf), where=size > 0)


def joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Parts one after the other; a single one is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@dataclass(frozen=True)
class Noise:
    """Standard deviation of a target's answers about the function it computes.

    `absolute` is there at every scale; `relative` is multiplied by the size of the answer, `rounding` by that of the
    sums inside a network that the answer is made of.
    """

    absolute: float
    relative: float
    rounding: float = float(np.finfo(np.float64).eps) / 2

    def at(self, magnitude: float) -> float:
        """Standard deviation of an answer of this magnitude."""
        return float(np.hypot(self.absolute, self.relative * magnitude))


@dataclass(frozen=True)
class Tolerances:
    """Thresholds that follow from the number format, the noise of the answers and the scale of the numbers.

    noise: standard deviation of an answer; 1 gives thresholds in deviations, to be multiplied by those of each
    answer. dtype: the format numbers are kept in. scale: size of the numbers that are compared; 1 gives relative
    thresholds. Below, u is the unit roundoff of the format, sd the noise and s the scale.

    deviations: what still counts as noise. They are many, for the noise of a floating-point answer is read from few
    samples, and differs from place to place.
    safety: how much larger the noise counts than was read. A reading comes from a few lines, and
    rounding is larger where sums inside the network are.
    """

    noise: float = 1.0
    dtype: str = "float64"
    scale: float = 1.0
    deviations: float = 30.0
    safety: float = 3.0

    @property
    def in_line(self) -> float:
        """|f - line| ≤ 30 sd: the answer is in line with its neighbours. Other equalities of answers alike."""
        return self.deviations * self.noise

    @property
    def bent(self) -> float:
        """|f - line| > 45 sd: an answer is off the line through the ends of a run, which are noisy too."""
        return 1.5 * self.in_line

    @property
    def bend(self) -> float:
        """|slope - slope'| > 90 sd: two pieces meet in a crease, sd being the noise of the difference."""
        return 3 * self.in_line

    @cached_property
    def rounding(self) -> float:
        """|rounded - exact| ≤ u s: one rounding."""
        return unit_roundoff(self.dtype) * self.scale

    @property
    def answer(self) -> float:
        """|answer - function| ≤ 4 u s at best, however flat the function is where the noise was read."""
        return 4.0 * self.rounding

    @property
    def spacing(self) -> float:
        """|t - t'| > 16 u s: two positions differ."""
        return 16 * self.rounding

    @property
    def wide(self) -> float:
        """|t - t'| > √(16 u) s: half of the digits are left between them, for many positions."""
        return float(np.sqrt(self.spacing / self.scale)) * self.scale

    @cached_property
    def tiny(self) -> float:
        """The smallest normal number: a size of at least this may be divided by."""
        return float(np.finfo(self.dtype).tiny)


DOUBLE = Tolerances()  # in deviations of the noise, and relative to the numbers compared


def as_generator(rng: Rng) -> np.random.Generator:
    """Turn the keyword `rng` into a Generator; None means fresh entropy."""
    if isinstance(rng, bool) or not (rng is None or isinstance(rng, int | np.integer | np.random.Generator)):
        raise InvalidInput.about(
            "rng", got=repr(rng), expected="an integer seed, a numpy Generator or None", fix=words("Pass {rng}.", rng=0)
        )
    if isinstance(rng, int | np.integer) and rng < 0:
        raise InvalidInput.about("rng", got=rng, expected="a seed of at least 0")
    return np.random.default_rng(rng)


def seed_signature(rng: Rng) -> str | None:
    """Name the random stream, so that a transcript can tell one run from another; None: unrepeatable."""
    if rng is None:
        return None
    generator = as_generator(rng)
    if not isinstance(rng, np.random.Generator):
        return f"seed {int(rng)}"
    state = json.dumps(generator.bit_generator.state, sort_keys=True, default=str)
    return f"generator {hashlib.sha256(state.encode()).hexdigest()[:16]}"


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, numpy and scipy use one thread; outside, as many as before."""
    pools = require("threadpoolctl", purpose="linear algebra with one thread")  # it looks at every loaded library
    with pools.threadpool_limits(limits=1, user_api="blas"):
        yield


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
        """The inverse of a square matrix."""
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
        """The inverse of a square matrix."""
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
