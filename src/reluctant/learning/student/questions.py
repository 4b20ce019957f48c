"""What a student is trained on: inputs at the scale of use, asked in blocks, as many as budget and time allow."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import BudgetExhausted
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["HELD_OUT", "Asked", "ask", "drawn", "rows_like"]

HELD_OUT = 0.1  # of the rows
OFF_SCALE = 4.0  # times the size of a standard Gaussian input, or of its inverse
MOST_NUMBERS = 2**25  # of all rows together: a quarter of a gigabyte, and as much again in other units
BLOCK = 1024  # rows asked at a time: where the budget ends inside a block, all before it are used


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
    """Ask the held-out rows first, then those to train on, until all are answered or budget or time end."""
    held = max(1, int(HELD_OUT * len(rows)))
    start, answers, short = time.process_time(), [], ""
    with oracle.stage("training", expected=len(rows)):
        held_answers = oracle.query(rows[:held])
        for k in range(held, len(rows), BLOCK):
            if seconds is not None and time.process_time() - start > seconds:
                short = f"The time for questions was over after {k} of {len(rows)} rows."
                break
            try:
                answers.append(oracle.query(rows[k : k + BLOCK]))
            except BudgetExhausted as error:
                short = str(error)
                break
    told = np.concatenate([*answers, held_answers[:0]])
    return Asked(rows[held : held + len(told)], told, rows[:held], held_answers, short)
