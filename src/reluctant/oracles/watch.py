"""Notice when another model is served in the middle of a run, by asking a few old rows again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reluctant.errors import TargetChanged
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles.base import Oracle, Wrapper

__all__ = ["Watched"]

OLD_ROWS = 2

# Asked again so often at the start: how far the answers differ then is fresh noise, and a few times as much is let
# pass later. The same row in a batch of another size may also round differently.
FIRST_TIMES = 4
NOISE_FACTOR = 8.0
BATCH_ROUNDINGS = 2.0**10


class Watched(Wrapper):
    """Asks the first rows of a run again every `every` rows and compares.

    Cost: `OLD_ROWS` rows each time, and `FIRST_TIMES` as many at the start. They go to the target and are counted as
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
        again = self.inner.answer(np.tile(rows, (FIRST_TIMES, 1)))
        noise = _difference(np.tile(answers, (FIRST_TIMES, 1)), again)
        size = float(np.abs(answers[np.isfinite(answers)]).max(initial=0))
        self._allowed = BATCH_ROUNDINGS * unit_roundoff(self.facts.dtype) * size + NOISE_FACTOR * noise
        self._old = rows, answers

    def _look(self, rows: FloatArray, before: FloatArray) -> None:
        now = self.inner.answer(rows)
        difference = _difference(before, now)
        if difference > self._allowed or not np.array_equal(np.isfinite(before), np.isfinite(now)):
            raise TargetChanged(
                f"target: {len(rows)} rows that were asked before are answered otherwise now, by up to "
                f"{difference:.2g}, expected the same answers. Another model is being served: find out which, and "
                "start again with a new transcript folder."
            )


def _difference(before: FloatArray, now: FloatArray) -> float:
    both = np.isfinite(before) & np.isfinite(now)
    return float(np.abs(now[both] - before[both]).max(initial=0))
