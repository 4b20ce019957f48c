"""Training data of a student: random inputs and their answers, within the budget and the time.

A target that answers the same row in two ways is asked held-out rows twice, so that its noise can be told from
errors.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import BudgetExhausted, TargetError, TargetRefused, TargetUnavailable, TimeExhausted
from reluctant.geometry.lines import IntArray
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.ledger import processor_time

FEWEST = 20  # rows: below, there is nothing to train on
HELD_OUT = 10  # one of so many that were answered
OFF_SCALE = 4.0  # times the size of a standard Gaussian input, or of its inverse
MOST_NUMBERS = 2**25  # of all rows together: a quarter of a gigabyte, and as much again in other units
BLOCK = 1024  # rows asked at a time: where the budget ends inside a block, the last is as small as need be
TURN = 100  # rows held out, after which they are asked again
MOST_PROBED, ONE_PROBED_OF = 20, 20  # rows that are asked twice to see whether answers differ, one of so many
UNNOTICED = 1e-5  # of the largest answer: the order of sums may change so much, and no student comes as close


@dataclass(frozen=True)
class TrainingData:
    """Rows and answers to train on, and others that are held out.

    again: other answers to the first of the held-out rows, where the target does not repeat itself. short: why not all
    that was wanted was answered; failed: the target would not answer more.
    """

    rows: FloatArray
    answers: FloatArray
    held_rows: FloatArray
    held_answers: FloatArray
    again: FloatArray | None = None
    short: str = ""
    failed: bool = False


def draw_rows(oracle: Counting, n: int, inputs: FloatArray | None, rng: np.random.Generator) -> FloatArray:
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


def ask_training_data(oracle: Counting, rows: FloatArray, most: int, seconds: float | None) -> TrainingData:
    """Ask until all are answered, or so many questions were asked, or budget or time end.

    Every tenth of what was answered is held out. A few rows are asked twice at first; where their answers differ, so
    is every row that is held out.
    """
    asking = _Questions(oracle, rows, seconds)
    probed = min(MOST_PROBED, len(rows) // ONE_PROBED_OF)
    with oracle.stage("training", expected=min(most, len(rows) + probed)):
        asking.go(np.tile(np.arange(probed), 2))
        twice = asking.differs(probed)
        order = _order(most - 2 * probed, twice, start=probed)
        asking.go(order[order < len(rows)])
    return asking.asked(twice)


def _order(n: int, twice: bool, start: int) -> IntArray:
    """Which row each of n questions is about: one after the other; with `twice`, held-out ones again after a while."""
    questions = np.arange(n)
    if not twice:
        return start + questions
    turn = HELD_OUT * int(np.clip(n // (HELD_OUT + 1), 1, TURN))
    done, place = np.divmod(questions, turn + turn // HELD_OUT)
    again = (place - turn) * HELD_OUT + -start % HELD_OUT  # every tenth of all rows, wherever these begin
    return np.asarray(start + done * turn + np.where(place < turn, place, again))


class _Questions:
    """Questions under way: which rows they were about, and their answers."""

    def __init__(self, oracle: Counting, rows: FloatArray, seconds: float | None) -> None:
        self.oracle, self.rows, self.seconds = oracle, rows, seconds
        self.start, self.short, self.failed = processor_time(), "", False
        self.about, self.answers = np.empty(0, dtype=np.intp), list[FloatArray]()

    def go(self, order: IntArray) -> None:
        """Ask these rows by number. Raise what ended it if nothing was answered, or too little to train on."""
        size = min(BLOCK, self.oracle.batch_rows)  # of batches asked together those before the last would be lost
        for block in (order[k : k + size] for k in range(0, len(order), size)):
            if self.short or self.time_is_over():
                return
            try:
                self.take(block)
            except BudgetExhausted as error:
                self.short = str(error)
                self.take_what_is_left(block, error)
            except (TargetRefused, TargetUnavailable) as error:
                self.short, self.failed = str(error), True
                self.take_what_is_answered(block, error)

    def take(self, block: IntArray) -> None:
        self.answers.append(self.oracle.query(self.rows[block]))
        self.about = np.concatenate([self.about, block])

    def time_is_over(self) -> bool:
        """The first questions are asked in any case."""
        asked = len(self.about)
        if asked and self.seconds is not None and processor_time() - self.start > self.seconds:
            self.short = f"The time for questions was over after {asked} of {len(self.rows)} rows."
        return bool(self.short)

    def take_what_is_left(self, block: IntArray, error: BudgetExhausted) -> None:
        """What the budget still covers, where it is enough to train on."""
        left = 0 if isinstance(error, TimeExhausted) else error.budget - error.spent
        if left >= max(FEWEST - len(self.about), 1):
            with suppress(BudgetExhausted):  # others ask too
                self.take(block[:left])
        if not self.answers:
            raise error

    def take_what_is_answered(self, block: IntArray, error: TargetError) -> None:
        """What a limit of the target's own still covers: half of a block that was refused, half of that, and so on.

        Rows of a target that broke down are paid: it is asked no more, and what was answered is trained on.
        """
        size = len(block) // 2 if isinstance(error, TargetRefused) else 0
        while size:
            with suppress(TargetRefused):
                self.take(block[:size])
                block = block[size:]
            size //= 2
        if len(self.about) < FEWEST:
            raise error

    def differs(self, probed: int) -> bool:
        """True if the first rows have other answers the second time, by more than a student could notice."""
        told = np.concatenate(self.answers)
        again = told[probed : 2 * probed]
        change = np.abs(again - told[: len(again)])
        return bool(change.max(initial=0.0) > UNNOTICED * np.abs(told).max(initial=0.0))

    def asked(self, twice: bool) -> TrainingData:
        """Sorted by row; every tenth is held out."""
        told, order = np.concatenate(self.answers), np.argsort(self.about, kind="stable")
        about = self.about[order]
        first = np.diff(about, prepend=-1) > 0
        rows, answers, held = self.rows[about[first]], told[order][first], about[first] % HELD_OUT == 0
        other = order[~first & (about % HELD_OUT == 0)]
        again = told[other] if twice and len(other) else None
        return TrainingData(rows[~held], answers[~held], rows[held], answers[held], again, self.short, self.failed)
