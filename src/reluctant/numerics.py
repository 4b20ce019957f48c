"""Numbers as values: array types, number formats, the noise of a target, randomness at the edge, and the threads of
linear algebra.

Thresholds that follow from the number format, the noise of a target or the scale of its numbers are in `Tolerances`,
each with its inequality. `one_blas_thread` is for small matrices, where a second thread would only wait for
the first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reluctant._optional import require
from reluctant.errors import InvalidInput

__all__ = [
    "DOUBLE",
    "FLOAT_BYTES",
    "FloatArray",
    "Noise",
    "Rng",
    "Tolerances",
    "all_finite",
    "as_generator",
    "joined",
    "one_blas_thread",
    "quotient",
    "seed_signature",
    "unit_roundoff",
]

FloatArray: TypeAlias = NDArray[np.float64]
Rng: TypeAlias = "int | np.random.Generator | None"

FLOAT_BYTES = np.dtype(np.float64).itemsize


def unit_roundoff(dtype: np.dtype[Any] | str | type) -> float:
    """Half the gap between 1 and the next number of the format: the error of one rounding."""
    return float(np.finfo(np.dtype(dtype)).eps) / 2


def all_finite(array: FloatArray) -> bool:
    """True if no entry is NaN or inf.

    The sum of squares is finite only if every entry is, and costs half as much as looking at each; if
    it overflows, each is looked at.
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

    `absolute` is there at every scale; `relative` is multiplied by the size of the answer.
    """

    absolute: float
    relative: float

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
    safety: how much larger than what was read the noise is taken to be. A reading comes from a few lines, and
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
        """|t - t'| > 16 u s: two positions can be told apart."""
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
            "rng", got=repr(rng), expected="an integer seed, a numpy Generator or None", fix="Pass rng=0."
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
