"""Numbers of classes beside values: an answer that tells the class and its score.

Of several outputs the largest is a label where all are values, or probabilities. The number of a class is neither: it
is whole, takes few values beside others that are not whole, and jumps between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from reluctant.health.lines import ShortLines, ask
from reluctant.health.whole import Whole, tell_whole
from reluctant.numerics import FloatArray
from reluctant.oracles.counting import Counting

__all__ = ["class_columns"]

FEW = 0.5  # of the answers, different ones at most
MORE = 100  # rows that are asked where such an output was always the same: a class may be rare


def class_columns(oracle: Counting, lines: Sequence[ShortLines], rng: np.random.Generator) -> tuple[int, ...]:
    """Outputs that look like numbers of classes, beside others that are values; whole ones that are scores are not.

    Cost: none where no output, or every one, is whole on all lines; else 240 rows at most for each that is, and 100
    where it was always the same.
    """
    rows, answers = (np.concatenate(each) for each in zip(*(each.ends for each in lines), strict=True))
    every = np.concatenate([each.answers for each in lines])
    if every.shape[1] < 2 or not np.isfinite(every).all():
        return ()
    whole = (every == np.round(every)).all(axis=0)
    if whole.all() or not whole.any():
        return ()
    if (np.ptp(every[:, whole], axis=0) == 0).any():
        more = oracle.facts.domain.sample(rng, MORE, oracle.dim)
        rows, answers = np.concatenate([rows, more]), np.concatenate([answers, ask(oracle, more)])
    candidates = [k for k in range(oracle.outputs) if whole[k] and _few_whole(answers[:, k])]
    return tuple(k for k in candidates if _jumps(oracle, rows, answers, k, rng))


def _few_whole(column: FloatArray) -> bool:
    """True of whole numbers that are not always the same, and come back."""
    whole = bool((column == np.round(column)).all())
    return whole and 1 < np.unique(column).size <= FEW * len(column)


def _jumps(oracle: Counting, rows: FloatArray, answers: FloatArray, k: int, rng: np.random.Generator) -> bool:
    """True unless it goes through all numbers between two of its own, as counts and rounded values do."""
    asked = partial(_one_column, oracle, k)
    return tell_whole(asked, rows, answers[:, [k]], rng) is not Whole.SCORES


def _one_column(oracle: Counting, k: int, rows: FloatArray) -> FloatArray:
    return ask(oracle, rows)[:, [k]]
