"""Probabilities as they are written elsewhere, made plain: percentages become fractions, what is not told becomes 0.

A row that is NaN throughout has no answer, and stays so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.oracles.base import Facts, Kind, Oracle, Wrapper

__all__ = ["PERCENT", "Plain", "Writing", "in_percent"]

PERCENT = 100.0
HALF_A_PERCENT = 0.5 / PERCENT  # of a percent: what rounding to whole ones changes a fraction by


@dataclass(frozen=True)
class Writing:
    """How probabilities are written.

    number_format: that of the answers, in which they are divided; None: their own. among_nan: those not told are NaN.
    """

    percent: bool = True
    number_format: str | None = None
    among_nan: bool = False


class Plain(Wrapper):
    """Probabilities between 0 and 1, of answers that are written otherwise."""

    def __init__(self, inner: Oracle, writing: Writing) -> None:
        super().__init__(inner)
        self.writing = writing
        # In a wider format the quotients would seem to have digits that nobody told.
        self.dtype = np.dtype(writing.number_format or inner.facts.dtype)

    @property
    def facts(self) -> Facts:
        """Facts of the fractions."""
        inner = self.inner.facts
        identity = f"{inner.identity} made plain" if inner.identity else ""
        return replace(inner, kind=Kind.PROBABILITIES, identity=identity)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then write plainly."""
        answers = self.inner.answer(rows)
        untold = np.isnan(answers) & ~np.isnan(answers).all(axis=1, keepdims=True)
        told = np.where(untold, 0.0, answers)
        return self._divided(told) if self.writing.percent else told

    def _divided(self, answers: FloatArray) -> FloatArray:
        narrow = answers.astype(self.dtype)
        return np.asarray(narrow / self.dtype.type(PERCENT), dtype=np.float64)


def in_percent(answers: FloatArray, *, several: bool = True) -> bool:
    """True if answers (n, m) may be percentages: up to 100, some beyond 1; of several classes, with a sum of 100."""
    told = answers[~np.isnan(answers)]
    within = bool(told.size and np.all((told >= 0) & (told <= PERCENT)) and np.any(told > 1))
    off = np.abs(answers.sum(axis=1) / PERCENT - 1)
    return within and (not several or bool(np.all(off <= HALF_A_PERCENT * answers.shape[1])))
