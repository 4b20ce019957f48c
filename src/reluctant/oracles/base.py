"""`Oracle` and `Wrapper`: the boundary to a target, its facts, and rows sent as a description.

An oracle has one method of its own, `answer`. Rows are checked once on the way in and answers once on the way out. Rows
that are one step from a known point travel as `Moves`, so that a target on a device can write them out itself. A target
that gives gradients has a second face, `explained`: there one row is answered with its values and their gradients.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import TracebackType
from typing import Any, ClassVar, Self, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluctant.domains import Domain
from reluctant.errors import (
    InvalidAnswer,
    InvalidInput,
    InvalidRows,
    NonFiniteAnswer,
    NonFiniteGradient,
    OutsideDomain,
    Placeholder,
    Words,
    words,
)
from reluctant.numerics import FLOAT_BYTES, HOST, Array, Arrays, FloatArray, all_finite, joined

Ask: TypeAlias = Callable[[FloatArray], FloatArray]  # rows (n, d) to answers (n, m)


def whole_units(rows: int, unit: int) -> int:
    """At most so many rows, whole units if one fits."""
    return rows if rows < unit else rows - rows % unit


class Moves(ABC):
    """Rows (n, d) of which each is a step from one of the points (p, d), along a direction or a coordinate.

    Without `directions` (·, d), `along` counts coordinates. Arrays are of numpy, or where `on` has put them; they
    belong to the description from then on.
    """

    points: Array
    steps: Array
    along: Array
    directions: Array | None

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def dim(self) -> int:
        """Length of a row."""
        return int(self.points.shape[1])

    @property
    def unit(self) -> int:
        """Rows that are described together: parts of whole units are described as the whole is."""
        return 1

    @abstractmethod
    def rows(self, arrays: Arrays = HOST) -> Array:
        """Written out, (n, d), where these arrays are."""

    @abstractmethod
    def part(self, rows: slice) -> Moves:
        """Some of the rows, with the points they need."""

    @abstractmethod
    def on(self, arrays: Arrays) -> Moves:
        """The description on the device of these arrays, if parts can be cut there; else unchanged."""


@dataclass(frozen=True)
class Steps(Moves):
    """Row i is points[which[i]] + steps[i] · directions[along[i]]; which, steps and along (n,)."""

    points: Array
    which: NDArray[np.intp]
    steps: Array
    along: Array
    directions: Array | None = None

    def __len__(self) -> int:
        return len(self.which)

    def rows(self, arrays: Arrays = HOST) -> Array:
        """Written out, (n, d)."""
        put = arrays.put
        rows = put(self.points)[put(self.which)]
        if self.directions is None:
            rows[put(np.arange(len(self))), put(self.along)] += put(self.steps)
        else:
            rows += put(self.steps)[:, None] * put(self.directions)[put(self.along)]
        return rows

    def part(self, rows: slice) -> Steps:
        """Some of the rows, with the points they need."""
        which = self.which[rows]
        first = which.min()
        points = self.points[first : which.max() + 1]
        return Steps(points, which - first, self.steps[rows], self.along[rows], self.directions)

    def on(self, arrays: Arrays) -> Steps:
        """The description unchanged: parts are cut on the host."""
        return self


@dataclass(frozen=True)
class Fans(Moves):
    """Row i·k + j is points[i] + steps[i] · directions[along[j]]; steps (p,), along (k,)."""

    points: Array
    steps: Array
    along: Array
    directions: Array | None = None

    def __len__(self) -> int:
        return len(self.points) * len(self.along)

    @property
    def unit(self) -> int:
        """Rows of one point."""
        return len(self.along)

    def rows(self, arrays: Arrays = HOST) -> Array:
        """Written out, (p·k, d)."""
        put, (p, d), k = arrays.put, self.points.shape, len(self.along)
        fans, steps = arrays.empty((p, k, d)), put(self.steps)
        fans[:] = put(self.points)[:, None]
        if self.directions is None:
            fans[:, put(np.arange(k)), put(self.along)] += steps[:, None]
        else:
            fans += steps[:, None, None] * put(self.directions)[put(self.along)]
        return fans.reshape(p * k, d)

    def part(self, rows: slice) -> Moves:
        """Some of the rows, with the points they need: fans again, if none is cut."""
        start, stop, _ = rows.indices(len(self))
        if start % self.unit or stop % self.unit:
            row = np.arange(start, stop)
            which = row // self.unit
            each = Steps(self.points, which, self.steps[which], self.along[row % self.unit], self.directions)
            return each.part(slice(None))
        whole = slice(start // self.unit, stop // self.unit)
        return replace(self, points=self.points[whole], steps=self.steps[whole])

    def on(self, arrays: Arrays) -> Self:
        """All of it there."""
        directions = None if self.directions is None else arrays.put(self.directions)
        put = arrays.put(self.points), arrays.put(self.steps), arrays.put(self.along)
        return replace(self, points=put[0], steps=put[1], along=put[2], directions=directions)


@dataclass(frozen=True)
class Explained:
    """Answers with their gradients: values (n, m), gradients (n, m, d).

    Inside the stack both travel in one row, the values first: what counts, repeats, cuts or records rows need not know.
    """

    values: FloatArray
    gradients: FloatArray

    @classmethod
    def unpacked(cls, rows: FloatArray, dim: int) -> Explained:
        """Values and gradients from rows (n, m·(1 + d))."""
        outputs = rows.shape[1] // (1 + dim)
        return cls(rows[:, :outputs], rows[:, outputs:].reshape(len(rows), outputs, dim))

    @property
    def packed(self) -> FloatArray:
        """Values and gradients as rows (n, m·(1 + d))."""
        return np.concatenate([self.values, self.gradients.reshape(len(self.values), -1)], axis=1)


UNKNOWN_OUTPUTS = 0
BATCH_BYTES = 2**23  # rows best asked together where there are very many: they stay in the processor's cache
MOST_WRITTEN_BYTES = 2**27  # of described rows that are written out at a time


KINK_ADVICE = "Let the gradients have one-sided values where a function bends, as autograd does."


class Kind(StrEnum):
    """The kind of the answers."""

    VALUES = "values"
    PROBABILITIES = "probabilities"
    LABELS = "labels"


@dataclass(frozen=True)
class Facts:
    """Facts of a target before any query.

    outputs: `UNKNOWN_OUTPUTS` until a bare callable has answered once.
    dtype: the number format of the target's arithmetic, if known.
    identity: by this a transcript recognises a target; by its answers if it is empty.
    reference: the answers are log-ratios to a class in front of them, as a softmax link gives.
    link: what the answers were read through; None if they are the target's own.
    recast: the target would answer with more digits if it were opened with precision='float64'.
    samples: rows (n, dim) of the kind the target is for, if the user gave some.
    """

    dim: int
    outputs: int
    dtype: np.dtype[Any] = np.dtype(np.float64)  # noqa: RUF009 (immutable)
    kind: Kind = Kind.VALUES
    domain: Domain = field(default_factory=Domain)
    name: str = "target"
    identity: str = ""
    reference: bool = False
    link: str | None = None
    recast: bool = False
    samples: FloatArray | None = field(default=None, compare=False, repr=False)

    @property
    def saturates(self) -> bool:
        """True if answers become infinite far out, where a probability that a link reads is 0 or 1."""
        return self.link is not None

    @property
    def constant_columns(self) -> tuple[int, ...]:
        """Columns that hold the same number in every sample; none where there are no samples."""
        if self.samples is None:
            return ()
        return tuple(int(k) for k in np.flatnonzero(np.ptp(self.samples, axis=0) == 0))


class Oracle(ABC):
    """Something that answers rows of numbers with rows of numbers.

    `draws` is true of one that draws random numbers for its answers: copies of it would all draw the same.
    """

    draws: bool = False

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """Facts of the target."""

    @abstractmethod
    def answer(self, rows: FloatArray) -> FloatArray:
        """Answer checked rows (n, d) with (n, m) float64; NaN and inf pass through here.

        This is what adapters and wrappers implement; callers use `query`.
        """

    def answer_moves(self, moves: Moves) -> FloatArray:
        """Answer described rows; here they are written out on the host, so many at a time that memory holds them."""
        size = whole_units(max(1, MOST_WRITTEN_BYTES // (FLOAT_BYTES * self.facts.dim)), moves.unit)
        parts = [moves.part(slice(start, start + size)) for start in range(0, len(moves), size)]
        answers = [self.answer(part.rows()) for part in parts]
        return joined(answers)

    def answer_parts(self, rows: FloatArray, size: int) -> Iterator[tuple[slice, FloatArray]]:
        """Answer part by part, at most `size` rows each, for one who writes each down before the next is sent.

        Parts are given with their place among the rows; an oracle with several requests in flight gives them as
        they come in.
        """
        for start in range(0, len(rows), size):
            part = slice(start, min(start + size, len(rows)))
            yield part, self.answer(rows[part])

    @final
    def query(self, x: ArrayLike) -> FloatArray:
        """Ask rows (n, d); get (n, m) float64. Raises on bad rows and on non-finite answers."""
        facts = self.facts
        rows = check_rows(x, facts.dim, facts.domain)
        return check_finite(lambda: rows, as_answers(self.answer(rows), len(rows), self.facts.outputs), self.advice)

    @final
    def __call__(self, x: ArrayLike) -> FloatArray:
        """Answer rows, as `query` does."""
        return self.query(x)

    @property
    def explained(self) -> Oracle | None:
        """The target with gradients in its answers, as `Explained` packs them; None if it gives none."""
        return None

    @final
    def query_gradients(self, x: ArrayLike) -> Explained:
        """Ask rows (n, d); get values (n, m) and gradients (n, m, d). One row counts once, whatever it answers."""
        explained = self.explained
        if explained is None:
            raise InvalidInput.about(
                "gradients", got="a target without gradients", expected="one that was opened with them",
                fix=words("Give them: {gradients}, or True for a torch module.", gradients=Placeholder("g")),
            )  # fmt: skip
        rows = check_rows(x, self.facts.dim, self.facts.domain)
        answers = as_answers(explained.answer(rows), len(rows), explained.outputs)
        found = Explained.unpacked(answers, self.facts.dim)
        check_finite(lambda: rows, found.values, self.advice)
        check_finite(lambda: rows, answers, KINK_ADVICE, "the gradient", NonFiniteGradient)
        return found

    @final
    def query_moves(self, moves: Moves) -> FloatArray:
        """Ask rows that are described by steps from points; get (n, m) float64, as `query` would answer them."""
        if not self.facts.domain.is_space:
            return self.query(moves.rows())
        check_moves(moves, self.facts.dim)
        answers = as_answers(self.answer_moves(moves), len(moves), self.facts.outputs)
        return check_finite(moves.rows, answers, self.advice)

    @property
    def arrays(self) -> Arrays:
        """Where a method that asks this oracle best keeps its large arrays: beside the target."""
        return HOST

    @property
    def batch_rows(self) -> int:
        """How many rows are best asked together where there are very many."""
        return max(1, BATCH_BYTES // (FLOAT_BYTES * self.facts.dim))

    @property
    def advice(self) -> str:
        """The remedy for rows with NaN or inf as answers."""
        return "Avoid these rows, or give the domain in which the target is defined."

    @property
    def dim(self) -> int:
        """Number of inputs."""
        return self.facts.dim

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.facts.outputs

    def bind(self, verb: str, signature: str | None) -> None:  # noqa: B027 (a hook, empty by default)
        """Say which run is about to start; a transcript refuses one made with another seed."""

    def close(self) -> None:  # noqa: B027 (a hook, empty by default)
        """Release files and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Wrapper(Oracle):
    """An oracle around an oracle; it answers what `answer` makes of the inner one's answers.

    A wrapper that never changes an answer says so with `transparent = True`. Any other one is a target of its
    own to a transcript: it has no identity unless its `facts` give it one.
    """

    transparent: ClassVar[bool] = False
    _explained: Oracle | None = None  # made once: it may learn as it is asked

    def __init__(self, inner: Oracle) -> None:
        self.inner = inner

    @property
    def explained(self) -> Oracle | None:
        """The wrapper around the inner oracle's gradients; None if there are none, or none are passed on."""
        inner = self.inner.explained
        if inner is None:
            return None
        self._explained = self._explained or self.explaining(inner)
        return self._explained

    def explaining(self, inner: Oracle) -> Oracle | None:
        """This wrapper around answers with gradients; None of one that changes answers, unless it says how."""
        return self.around(inner) if self.transparent else None

    def around(self, inner: Oracle) -> Self:
        """A copy around another oracle, with the same ledger, limits and files."""
        other = copy.copy(self)
        other.inner, other._explained = inner, None
        return other

    @property
    def facts(self) -> Facts:
        """The inner oracle's facts, with its identity if this wrapper is transparent."""
        inner = self.inner.facts
        return inner if self.transparent else replace(inner, identity="")

    @property
    def advice(self) -> str:
        """The advice of the inner oracle."""
        return self.inner.advice

    @property
    def arrays(self) -> Arrays:
        """Where those of the inner oracle are best kept."""
        return self.inner.arrays

    @property
    def batch_rows(self) -> int:
        """The batch size of the inner oracle."""
        return self.inner.batch_rows

    def bind(self, verb: str, signature: str | None) -> None:
        """Pass on to the inner oracle."""
        self.inner.bind(verb, signature)

    def close(self) -> None:
        """Close the inner oracle."""
        self.inner.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"


def layers(oracle: Oracle) -> Iterator[Oracle]:
    """The oracle and all that it is around, the outermost first."""
    yield oracle
    while isinstance(oracle, Wrapper):
        oracle = oracle.inner
        yield oracle


class PassThrough(Wrapper):
    """Passes questions and answers on as they are; a subclass adds to them."""

    transparent = True

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on."""
        return self.inner.answer(rows)

    def answer_moves(self, moves: Moves) -> FloatArray:
        """Pass on."""
        return self.inner.answer_moves(moves)

    def answer_parts(self, rows: FloatArray, size: int) -> Iterator[tuple[slice, FloatArray]]:
        """Pass on part by part."""
        return self.inner.answer_parts(rows, size)


def check_rows(x: ArrayLike, dim: int, domain: Domain, name: str = "x") -> FloatArray:
    """Rows as a C-contiguous (n, dim) float64 array inside the domain, or an error that says why not."""
    try:
        given = np.asarray(x)
        if given.dtype.kind not in "fiub":
            raise TypeError(f"dtype {given.dtype}")
        rows = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidRows.about(name, got=f"{type(x).__name__} ({error})", expected="an array of numbers") from error
    if rows.ndim != 2 or rows.shape[1] != dim:
        fix = f"One point is {name}[None, :]." if rows.shape == (dim,) else ""
        raise InvalidRows.about(name, got=f"shape {rows.shape}", expected=f"(n, {dim})", fix=fix)
    if len(rows) == 0:
        raise InvalidRows.about(name, got="no rows", expected="at least one row", fix="Skip empty batches.")
    if not all_finite(rows):
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        got = f"NaN or inf in {len(bad)} of {len(rows)} rows (first: row {bad[0]})"
        raise InvalidRows.about(name, got=got, expected="finite numbers")
    if not domain.contains(rows):
        fix = "Clip it, or open the target anew."
        raise OutsideDomain.about(name, got="a row outside the domain", expected=domain.describe(), fix=fix)
    return rows


def check_moves(moves: Moves, dim: int) -> None:
    """Raise if described rows would not be finite rows (n, dim)."""
    if moves.dim != dim or len(moves) == 0:
        raise InvalidRows.about("moves", got=f"{len(moves)} rows of {moves.dim}", expected=f"some rows of {dim}")
    parts = [moves.points, moves.steps, *([] if moves.directions is None else [moves.directions])]
    if not all(all_finite(part) for part in parts):
        raise InvalidRows.about("moves", got="NaN or inf", expected="finite numbers")


def check_finite(
    asked: Callable[[], FloatArray], answers: FloatArray, advice: str, what: str = "target",
    error: type[NonFiniteAnswer] = NonFiniteAnswer,
) -> FloatArray:  # fmt: skip
    """The answers, or an error that keeps the rows `asked` and answers if any is NaN or inf."""
    if all_finite(answers):
        return answers
    bad, rows = np.flatnonzero(~np.isfinite(answers).all(axis=1)), asked()
    got = f"{what}: got NaN or inf for {len(bad)} of {len(rows)} rows (first: row {bad[0]}), expected finite numbers. "
    raise error(Words(got, advice), rows=rows, answers=answers)


def as_answers(raw: object, rows: int, outputs: int | None) -> FloatArray:
    """What a target returned, as (rows, m) float64; `outputs` is m once it is known."""
    try:
        answers = np.asarray(raw)
        if answers.dtype.kind not in "fiub":
            raise TypeError(f"dtype {answers.dtype}")
        answers = answers.astype(np.float64, copy=False)
    except (TypeError, ValueError, RuntimeError) as error:  # torch refuses a tensor with gradient so
        raise InvalidAnswer(
            f"target: got {type(raw).__name__} ({error}), expected an array of numbers.{_class_name_advice(raw)}"
        ) from error
    if answers.ndim == 0 or len(answers) != rows:
        raise InvalidAnswer(
            f"target: got an answer of shape {answers.shape} for {rows} rows, expected one row of answers per "
            "row. Check that it answers batches."
        )
    answers = answers.reshape(rows, -1)
    if answers.shape[1] == 0 or (outputs and answers.shape[1] != outputs):
        raise InvalidAnswer(
            f"target: got {answers.shape[1]} outputs per row, expected {outputs or 'at least one'}. "
            "A target must keep its output shape."
        )
    return answers


def _class_name_advice(raw: object) -> str:
    """Class names are labels too, once they are numbered."""
    if not (isinstance(raw, np.ndarray) and raw.dtype.kind in "USO"):
        return ""
    return " Number class names: lambda x: np.searchsorted(model.classes_, model.predict(x))."
