"""Numbers of classes beside values: an answer that tells the class and its score.

Of several outputs the largest is a label where all are values, or probabilities. The number of a class is neither: it
is whole, takes few values beside others that are not whole, and jumps between them. A count of few does so too, and is
no value to compare with others either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from reluctant.health.answers import add_up_to_one, find_decimals
from reluctant.health.lines import ShortLines, ask, finite_ends
from reluctant.health.whole import FEWEST_LEVELS, Whole, all_whole, tell_beside
from reluctant.numerics import FloatArray
from reluctant.oracles.ledger import Counting

__all__ = ["class_columns"]

FEW = 0.5  # of the answers, different ones at most
MORE = 100  # rows that are asked where such an output had few levels: a class may be rare, and a score have others
PAIR = 2  # a class and its score


def class_columns(
    oracle: Counting, nearby: Sequence[ShortLines], lines: Sequence[ShortLines], rng: np.random.Generator, *,
    total: float | None = None,
) -> tuple[int, ...]:  # fmt: skip
    """Outputs that are whole as numbers of classes are, beside others that are not; scores are none of them.

    Between answers of the lines nearby it is looked what they are; all lines tell which are whole. total: what all
    outputs add up to on the first of them, where they look like probabilities: 1, or 100.
    Cost: none where no output is whole on all lines, or every one of more than two; else 240 rows at most for each that
    is, and 100 where one has few levels.
    """
    every = np.concatenate([each.finite_answers for each in lines])
    whole = np.flatnonzero((every == np.round(every)).all(axis=0)).tolist()
    found = _Look(oracle, rng, *finite_ends(nearby))
    if oracle.outputs < PAIR or not whole or not len(found.answers):
        return ()
    if len(whole) == oracle.outputs:
        return _labels_beside_scores(found) if oracle.outputs == PAIR and total is None else ()
    if total is not None:
        return _beside_probabilities(found, whole, lines[0].finite_answers / total, total)
    few = any(np.unique(found.answers[:, k]).size < FEWEST_LEVELS for k in whole)
    return (found.with_more() if few else found).classes(whole)


@dataclass(frozen=True)
class _Look:
    """Rows (n, d) of a target and finite answers (n, m), between which more is asked."""

    oracle: Counting
    rng: np.random.Generator
    rows: FloatArray
    answers: FloatArray

    def with_more(self) -> Self:
        """With rows as they are typical."""
        more = self.oracle.facts.domain.sample(self.rng, MORE, self.oracle.dim)
        told = ask(self.oracle, more)
        finite = np.isfinite(told).all(axis=1)
        return replace(
            self,
            rows=np.concatenate([self.rows, more[finite]]),
            answers=np.concatenate([self.answers, told[finite]]),
        )

    def classes(self, columns: Sequence[int]) -> tuple[int, ...]:
        """Those that may be numbers of classes: they jump, or it cannot be told of them, and they come back."""
        told = {k: self.what(k) for k in columns}
        return tuple(k for k, what in told.items() if what is Whole.LABELS or (what is Whole.UNTOLD and self._few(k)))

    def what(self, k: int) -> Whole | None:
        """What the whole numbers of one output are; None of one that is not whole, or always the same."""
        column = self.answers[:, [k]]
        if not all_whole(column) or np.ptp(column) == 0:
            return None
        return tell_beside(lambda rows: ask(self.oracle, rows)[:, [k]], self.rows, column, self.rng)

    def _few(self, k: int) -> bool:
        return np.unique(self.answers[:, k]).size <= FEW * len(self.answers)


def _labels_beside_scores(found: _Look) -> tuple[int, ...]:
    """Of two outputs that are both whole: the one that jumps, if the other goes in order."""
    told = [found.what(k) for k in range(PAIR)]
    return (told.index(Whole.LABELS),) if {*told} == {Whole.LABELS, Whole.SCORES} else ()


def _beside_probabilities(
    found: _Look, whole: Sequence[int], near: FloatArray, total: float
) -> tuple[int, ...]:  # fmt: skip
    """Of answers that look like probabilities (n, m): class 0 adds nothing to them, and others are rare.

    One output that is always 0 may be the number of a class; several are probabilities for which digits are wanting.
    """
    zero = [k for k in whole if not near[:, k].any()]
    found = found.with_more() if len(zero) == 1 else found
    added = found.classes([k for k in whole if _is_added(found.answers / total, k)])
    unused = len(zero) == 1 and not found.answers[:, zero].any() and _all_told(near, zero[0])
    return added or (tuple(zero) if unused else ())


def _is_added(p: FloatArray, k: int) -> bool:
    """True if the others come closer to one without this output, wherever it is not 0: it is no probability of them."""
    others, rest = p[p[:, k] != 0], np.delete(p[p[:, k] != 0], k, axis=1)
    return bool(len(others) and (np.abs(rest.sum(axis=1) - 1) < np.abs(others.sum(axis=1) - 1)).all())


def _all_told(p: FloatArray, k: int) -> bool:
    """True if the others are all that probabilities are, and none of them is 0 for want of digits."""
    rest = np.delete(p, k, axis=1)
    return bool(rest.all() and find_decimals(rest) is None and add_up_to_one(rest))
