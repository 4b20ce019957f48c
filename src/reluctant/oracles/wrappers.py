"""Small wrappers: `Selected` outputs, `Held` columns, `Batched` rows, `Watched` models, `Borrowed` oracles.

`Selected` keeps some outputs, in a chosen order. `Held` leaves some columns of the input at fixed values. `Batched`
sends no more rows in one call than a target takes. `Watched` asks a few old rows again from time to time, and raises if
another model answers them. `Borrowed` leaves the oracle inside open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import InvalidInput, TargetChanged
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles.base import Explained, Facts, Moves, Oracle, PassThrough, Wrapper
from reluctant.oracles.explanations import Rewritten


class Selected(Wrapper):
    """Keeps the named outputs, in the named order; the target is asked for all of them all the same."""

    def __init__(self, inner: Oracle, output: int | Sequence[int]) -> None:
        super().__init__(inner)
        indices = list(output) if isinstance(output, Iterable) else [output]
        if not indices or not all(_is_output_index(i, inner.outputs) for i in indices):
            raise InvalidInput.about(
                "output", got=output, expected=f"an index from 0 to {inner.outputs - 1}, or several"
            )
        self.indices = [int(i) for i in indices]

    @property
    def facts(self) -> Facts:
        """Facts with the number of outputs that are kept."""
        inner = self.inner.facts
        identity = f"{inner.identity} outputs {self.indices}" if inner.identity else ""
        return replace(inner, outputs=len(self.indices), identity=identity, reference=False)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, keep the selected columns."""
        return self.inner.answer(rows)[:, self.indices]

    def answer_moves(self, moves: Moves) -> FloatArray:
        """Pass on, keep the selected columns."""
        return self.inner.answer_moves(moves)[:, self.indices]

    def explaining(self, inner: Oracle) -> Oracle:
        """Keep the gradients of the same outputs."""
        return Rewritten(self, inner, self._keep)

    def _keep(self, found: Explained) -> Explained:
        return Explained(found.values[:, self.indices], found.gradients[:, self.indices])


def _is_output_index(i: object, outputs: int) -> bool:
    return isinstance(i, int | np.integer) and not isinstance(i, bool) and 0 <= int(i) < outputs


class Held(Wrapper):
    """Leaves some columns at these values: a row has the other columns, in their order. bounds: of all columns."""

    def __init__(self, inner: Oracle, columns: Sequence[int], values: FloatArray, bounds: Domain) -> None:
        super().__init__(inner)
        self.columns, self.values, self.bounds = list(columns), values, bounds
        self.others = np.setdiff1d(np.arange(inner.dim), self.columns)

    @property
    def facts(self) -> Facts:
        """Facts of the other columns."""
        inner = self.inner.facts
        low, high = (np.broadcast_to(side, (inner.dim,)) for side in (self.bounds.low, self.bounds.high))
        domain = self.bounds if self.bounds.is_space else Domain(low[self.others], high[self.others])
        identity = f"{inner.identity} columns {self.columns} at {self.values.tolist()}" if inner.identity else ""
        return replace(inner, dim=len(self.others), domain=domain, identity=identity, samples=None)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Ask with the columns put in."""
        whole = np.empty((len(rows), self.inner.facts.dim))
        whole[:, self.others], whole[:, self.columns] = rows, self.values
        return self.inner.answer(whole)

    def explaining(self, inner: Oracle) -> Oracle:
        """Gradients by the other columns."""
        return Rewritten(self, Held(inner, self.columns, self.values, self.bounds), self._of_others)

    def _of_others(self, found: Explained) -> Explained:
        return Explained(found.values, found.gradients[:, :, self.others])


class Batched(Wrapper):
    """Asks at most `batch` rows in one call, one call after the other."""

    transparent = True

    def __init__(self, inner: Oracle, batch: int) -> None:
        super().__init__(inner)
        self.batch = batch

    def answer(self, rows: FloatArray) -> FloatArray:
        """All answers, in the order of the rows."""
        if len(rows) <= self.batch:
            return self.inner.answer(rows)
        return np.concatenate([answers for _, answers in self.answer_parts(rows, self.batch)])

    def answer_parts(self, rows: FloatArray, size: int) -> Iterator[tuple[slice, FloatArray]]:
        """Parts of at most `size` rows, and of at most a batch."""
        return super().answer_parts(rows, min(size, self.batch))

    @property
    def batch_rows(self) -> int:
        """The batch size, no larger than the inner oracle's."""
        return min(self.batch, self.inner.batch_rows)


class Borrowed(PassThrough):
    """Passes everything on, but does not close the oracle inside: it belongs to somebody else."""

    def close(self) -> None:
        """Leave it open."""


OLD_ROWS = 2

# Asked again so often at the start: how far the answers differ then is fresh noise, and a few times as much is let
# pass later. The same row in a batch of another size may also round differently.
WATCH_REPEATS = 4
WATCH_NOISE_FACTOR = 8.0
WATCH_ROUNDINGS = 2.0**10


class Watched(Wrapper):
    """Asks the first rows of a run again every `every` rows and compares.

    Cost: `OLD_ROWS` rows each time, and `WATCH_REPEATS` as many at the start. They go to the target and are counted as
    sent, but not recorded: they are asked about the target as it is now.
    """

    transparent = True

    def __init__(self, inner: Oracle, every: int) -> None:
        super().__init__(inner)
        self.every = every
        self._since = 0
        self._old: tuple[FloatArray, FloatArray] | None = None
        self._allowed = 0.0

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then look."""
        answers = self.inner.answer(rows)
        self._seen(rows, answers)
        return answers

    def answer_parts(self, rows: FloatArray, size: int) -> Iterator[tuple[slice, FloatArray]]:
        """Pass on part by part, and look between them."""
        for part, answers in self.inner.answer_parts(rows, size):
            yield part, answers
            self._seen(rows[part], answers)

    def _seen(self, rows: FloatArray, answers: FloatArray) -> None:
        self._since += len(rows)
        if self._old is None:
            self._remember(rows[:OLD_ROWS].copy(), answers[:OLD_ROWS].copy())
        elif self._since >= self.every:
            self._since = 0
            self._look(*self._old)

    def _remember(self, rows: FloatArray, answers: FloatArray) -> None:
        again = self.inner.answer(np.tile(rows, (WATCH_REPEATS, 1)))
        noise = _largest_difference(np.tile(answers, (WATCH_REPEATS, 1)), again)
        size = float(np.abs(answers[np.isfinite(answers)]).max(initial=0))
        self._allowed = WATCH_ROUNDINGS * unit_roundoff(self.facts.dtype) * size + WATCH_NOISE_FACTOR * noise
        self._old = rows, answers

    def _look(self, rows: FloatArray, before: FloatArray) -> None:
        now = self.inner.answer(rows)
        difference = _largest_difference(before, now)
        if difference > self._allowed or not np.array_equal(np.isfinite(before), np.isfinite(now)):
            raise TargetChanged(
                f"target: {len(rows)} rows that were asked before are answered otherwise now, by up to "
                f"{difference:.2g}, expected the same answers. Another model is being served: find out which, and "
                "start again with a new transcript folder."
            )


def _largest_difference(before: FloatArray, now: FloatArray) -> float:
    both = np.isfinite(before) & np.isfinite(now)
    return float(np.abs(now[both] - before[both]).max(initial=0))
