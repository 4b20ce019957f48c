"""No more rows at once than a target takes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.oracles.base import Oracle, Wrapper

__all__ = ["Batched"]


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
        """As many as go at once."""
        return min(self.batch, self.inner.batch_rows)
