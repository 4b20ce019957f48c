"""What a student is trained on: inputs at the scale of use, asked in blocks, as many as budget and time allow."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import BudgetExhausted, TimeExhausted
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["FEWEST", "HELD_OUT", "Asked", "ask", "drawn", "rows_like"]

FEWEST = 20  # rows: below, there is nothing to train on
HELD_OUT = 10  # one of so many that were answered
OFF_SCALE = 4.0  # times the size of a standard Gaussian input, or of its inverse
MOST_NUMBERS = 2**25  # of all rows together: a quarter of a gigabyte, and as much again in other units
BLOCK = 1024  # rows asked at a time: where the budget ends inside a block, the last is as small as need be


@dataclass(frozen=True)
class Asked:
    """Rows and answers to train on, and others that are held out. short: not all that was wanted was answered."""

    rows: FloatArray
    answers: FloatArray
    held_rows: FloatArray
    held_answers: FloatArray
    short: str = ""


def drawn(oracle: Counting, n: int, inputs: FloatArray | None, rng: np.random.Generator) -> FloatArray:
    """n rows of the domain at the scale of use; of inputs that are given, as many of them, in random order.

    Fewer where inputs are so wide that all would not fit in memory.
    """
    n = min(n, MOST_NUMBERS // oracle.dim)
    if inputs is None:
        return oracle.facts.domain.sample(rng, n, oracle.dim)
    return np.asarray(inputs[rng.permutation(len(inputs))[:n]])


def rows_like(examples: FloatArray, domain: Domain, n: int, rng: np.random.Generator) -> FloatArray | None:
    """n rows to ask a target that is used on inputs like these (k, d); None if those of the scale of use will do.

    Where inputs are of another size, half of the rows have their mean and deviation. The examples themselves are never
    among them, so that a network may be measured there.
    """
    n, size = min(n, MOST_NUMBERS // examples.shape[1]), float(np.sqrt(np.mean(examples**2)))
    if domain.is_box or 1 / OFF_SCALE <= size <= OFF_SCALE:
        return None
    dim = examples.shape[1]
    near = examples.mean(axis=0) + examples.std(axis=0) * rng.standard_normal((n // 2, dim))
    return np.concatenate([domain.sample(rng, n - len(near), dim), domain.fold(near)])


def ask(oracle: Counting, rows: FloatArray, seconds: float | None) -> Asked:
    """Ask until all are answered or budget or time end; every tenth of what was answered is held out."""
    with oracle.stage("training", expected=len(rows)):
        told, short = _answers(oracle, rows, seconds)
    rows, held = rows[: len(told)], np.arange(len(told)) % HELD_OUT == 0
    return Asked(rows[~held], told[~held], rows[held], told[held], short)


def _answers(oracle: Counting, rows: FloatArray, seconds: float | None) -> tuple[FloatArray, str]:
    """Answers of the first rows, and why not of all. Raise `BudgetExhausted` if there are none."""
    answers: list[FloatArray] = []
    start = time.process_time()
    size = min(BLOCK, oracle.batch_rows)  # of batches asked together those before the last would be paid and lost
    for k in range(0, len(rows), size):
        if k > 0 and seconds is not None and time.process_time() - start > seconds:
            return np.concatenate(answers), f"The time for questions was over after {k} of {len(rows)} rows."
        try:
            answers.append(oracle.query(rows[k : k + size]))
        except BudgetExhausted as error:
            answers += _remainder(oracle, rows[k:], error, enough=FEWEST - k)
            if not answers:
                raise
            return np.concatenate(answers), str(error)
    return np.concatenate(answers), ""


def _remainder(oracle: Counting, rows: FloatArray, error: BudgetExhausted, enough: int) -> list[FloatArray]:
    """What the budget still covers, where it is enough to train on."""
    left = 0 if isinstance(error, TimeExhausted) else error.budget - error.spent
    if left < max(enough, 1):
        return []
    try:
        return [oracle.query(rows[:left])]
    except BudgetExhausted:  # others ask too
        return []
