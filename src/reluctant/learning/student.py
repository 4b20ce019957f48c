"""`train_student`: a network trained on answers alone, with no assumption about the target.

Random inputs are asked at the scale of use, within the budget and the time; a target that answers the same row in two
ways is asked held-out rows twice, so that noise and errors can be separated. A few shapes of network are trained for
a short while, then the best one, in coordinates with mean 0 and deviation 1, or those of a span where one is known.
Values, probabilities, the largest probability alone and labels all serve. The network is never exact: its error is
measured on held-out answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Unpack

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import (
    BudgetExhausted,
    InvalidInput,
    InvalidRows,
    TargetError,
    TargetRefused,
    TargetUnavailable,
    TimeExhausted,
)
from reluctant.fitting.adam import TrainingPace, fit_network
from reluctant.geometry.lines import IntArray
from reluctant.interface.kinds import IntegerKind, classify_integers
from reluctant.interface.noise import answer_kind
from reluctant.interface.noise import ask as ask_rows
from reluctant.learning.student_losses import AnswerReading, Labels, measure_student, reading_of, row_misfits
from reluctant.messages.diagnosis import Diagnosis, Notes
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator, one_blas_thread
from reluctant.oracles import Counting, Kind
from reluctant.oracles.base import check_rows
from reluctant.oracles.keywords import OpeningKeywords
from reluctant.oracles.ledger import Clock, processor_time
from reluctant.oracles.open import Target, in_units, opened_target
from reluctant.results import Outcome, Result, Run
from reluctant.span import Subspace

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
        every = np.concatenate(self.answers)
        again = every[probed : 2 * probed]
        change = np.abs(again - every[: len(again)])
        return bool(change.max(initial=0.0) > UNNOTICED * np.abs(every).max(initial=0.0))

    def asked(self, twice: bool) -> TrainingData:
        """Sorted by row; every tenth is held out."""
        every, order = np.concatenate(self.answers), np.argsort(self.about, kind="stable")
        about = self.about[order]
        first = np.diff(about, prepend=-1) > 0
        rows, answers, held = self.rows[about[first]], every[order][first], about[first] % HELD_OUT == 0
        other = order[~first & (about % HELD_OUT == 0)]
        again = every[other] if twice and len(other) else None
        return TrainingData(rows[~held], answers[~held], rows[held], answers[held], again, self.short, self.failed)


@dataclass(frozen=True)
class Coordinates:
    """Inputs along directions (k, d), None for their own axes, less a mean and over a unit (k,) each."""

    directions: FloatArray | None
    mean: FloatArray
    unit: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, span: FloatArray | None) -> Coordinates:
        """Coordinates in which these rows have mean 0 and deviation 1; constant directions stay."""
        along = rows if span is None else rows @ span.T
        deviation = along.std(axis=0)
        return cls(span, along.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Rows (n, d) as coordinates (n, k)."""
        along = rows if self.directions is None else rows @ self.directions.T
        return np.asarray((along - self.mean) / self.unit)

    def unfolded(self, network: ReLUNetwork) -> ReLUNetwork:
        """A network of coordinates as one of inputs."""
        first, *rest = network.weights
        scaled = first / self.unit
        weights = scaled if self.directions is None else scaled @ self.directions
        return ReLUNetwork([weights, *rest], [network.biases[0] - scaled @ self.mean, *network.biases[1:]])


ROWS = 40_000
EPS, DIFFERING = 1e-4, 0.01  # 1 % of the answers' deviation, root mean square; of labels, 1 % that are others
STEPS = 8_000
ASKING_SHARE, TRYING_SHARE = 0.5, 0.3  # of the time that is left, at most: for questions, and for the choice of a shape
HURRIED_NOTE = "The time was too short for all steps."
TRAINING_LIMITS = Notes((Diagnosis("trained-not-verified"),))


@dataclass(frozen=True)
class Training:
    """How a student was trained. short: why it had fewer rows than wanted; hurried: it had fewer steps."""

    hidden: tuple[int, ...]
    rows: int
    steps: int
    short: str = ""
    hurried: bool = False

    @property
    def cut(self) -> bool:
        """True if more rows or time might have made it better."""
        return bool(self.short) or self.hurried

    def __str__(self) -> str:
        widths = "-".join(map(str, self.hidden))
        said = f"Trained on {self.rows} answers in {self.steps} steps, hidden widths {widths}."
        return " ".join(part for part in (said, self.short, HURRIED_NOTE if self.hurried else "") if part)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def train_student(
    oracle: Target,
    *,
    rows: int = ROWS,
    hidden: Sequence[int] | None = None,
    inputs: FloatArray | None = None,
    span: FloatArray | None = None,
    eps: float = EPS,
    steps: int = STEPS,
    seconds: float | None = None,
    whole: IntegerKind | None = None,
    rng: Rng = 0,
    **opening: Unpack[OpeningKeywords],
) -> Result:
    """Train a surrogate, a ReLU network, on the answers of a target.

    Arguments:
        oracle: the target, or anything that `open_oracle` takes. It may answer values, probabilities (also the largest
            few alone) or labels.
        rows: most rows to ask. A tenth of the answers is held out.
        hidden: hidden widths; by default the best of a few shapes.
        inputs: rows (n, d) to ask in place of random ones. Equal rows are asked once.
        span: orthonormal rows (k, d): the input directions that matter, if known.
        eps: mean square error to reach, over the variance of the answers. For labels, one in a hundred may differ.
        steps: training steps, each on 256 answers.
        seconds: most processor time. With little time there are fewer steps. No limit by default.
        whole: whether whole numbers are labels or scores, if known.
        rng: seed of all random choices.
        opening: keywords of `open_oracle`, for this call: dim, budget, link, ...

    The outcome is `learned` if the error on held-out answers is at most eps, otherwise `not-accurate-enough`. The
    result always has the network, and evidence["accuracy"] has its error and the share of equal labels. If the target
    answers probabilities or labels, the network gives logits: evidence["link"] names their link, evidence["labels"]
    the meaning of each output, evidence["whole"] whether whole numbers counted as labels or scores.

    Cost: `rows` rows, fewer if the budget ends or the target refuses more. At most 240 more for whole numbers of
    unknown kind.
    """
    if rows < FEWEST:
        raise InvalidInput.about("rows", got=rows, expected=f"at least {FEWEST}")
    if hidden is not None and not (len(hidden) and all(width >= 1 for width in hidden)):
        raise InvalidInput.about("hidden", got=hidden, expected="one width or more, such as (64,)")
    if not 0 < eps < 1:
        raise InvalidInput.about("eps", got=eps, expected="a number between 0 and 1")
    if steps < 1:
        raise InvalidInput.about("steps", got=steps, expected="at least 1")
    if seconds is not None and not seconds >= 0:
        raise InvalidInput.about("seconds", got=seconds, expected="a time of at least 0, or None")
    clock, shapes = Clock(seconds), STUDENT_SHAPES if hidden is None else (tuple(hidden),)
    with opened_target(oracle, opening) as opened:
        given, basis = _rows_to_ask(inputs, opened), _directions(span, opened)
        target, units = in_units(opened, given)
        if units is None or units.are_plain:
            target, units = opened, None
        else:
            given = None if given is None else units.reduced(given)
            basis = None if basis is None else units.reduced_directions(basis)
        run = Run[None].begin(target, "train", rng, None, clock=clock)
        trainer = _Trainer(run, eps, steps, as_generator(rng), whole)
        ended = run.finish(lambda: trainer.go(rows, given, shapes, basis), trainer.result)
        return ended.with_classes(opened).in_inputs_of(units)


@dataclass(frozen=True)
class _Trainer:
    """One call of `train_student`."""

    run: Run[None]
    eps: float
    steps: int
    rng: np.random.Generator
    known: IntegerKind | None = None

    @property
    def oracle(self) -> Counting:
        """The target."""
        return self.run.oracle

    def go(
        self, rows: int, given: FloatArray | None, shapes: Sequence[tuple[int, ...]], span: FloatArray | None
    ) -> Result:
        """Ask, then train."""
        drawn = draw_rows(self.oracle, rows, given, self.rng)
        asked = ask_training_data(self.oracle, drawn, rows, self.run.clock.fraction(ASKING_SHARE))
        with one_blas_thread():
            return self.train(asked, shapes, span)

    def train(self, asked: TrainingData, shapes: Sequence[tuple[int, ...]], span: FloatArray | None) -> Result:
        """Choose a shape, train it, and measure it."""
        if len(asked.rows) + len(asked.held_rows) < FEWEST:
            return self.result(Outcome.OUT_OF_BUDGET, error=asked.short)
        if not np.ptp(asked.answers, axis=0).any():
            labels = self.oracle.facts.kind is Kind.LABELS
            return self.result(Outcome.ONE_LABEL if labels else Outcome.CONSTANT)
        whole = self.whole(asked)
        reading, within = reading_of(asked.answers, self.oracle.facts.kind, whole), Coordinates.of(asked.rows, span)
        x, targets = within(asked.rows), reading.targets(asked.answers)
        hidden = best_shape(x, targets, reading, self.run.clock.fraction(TRYING_SHARE), self.rng, shapes)
        pace = TrainingPace(self.steps, self.run.clock.left)
        raw = fit_network(x, targets, reading.slope, hidden, reading.outputs, pace, self.rng)
        measured = measure_student(raw, reading, within(asked.held_rows), asked.held_answers, asked.again)
        missed = Outcome.OUT_OF_BUDGET if asked.short else Outcome.NOT_ACCURATE
        missed = Outcome.TARGET_FAILED if asked.failed else missed
        link = reading.link if reading.kind is Kind.PROBABILITIES else "identity"
        return self.result(
            Outcome.LEARNED if measured.good_for(self.eps, DIFFERING) else missed,
            within.unfolded(reading.finished(raw)).with_parts(link=link), accuracy=measured, limits=TRAINING_LIMITS,
            answers=reading.kind.value, link=reading.link,
            training=Training(hidden, len(x), pace.steps, asked.short, pace.hurried),
            **({"labels": reading.codes.tolist()} if isinstance(reading, Labels) else {}),
            **({} if whole is None else {"whole": whole}),
            **({"error": asked.short} if asked.failed else {}),
        )  # fmt: skip

    def whole(self, asked: TrainingData) -> IntegerKind | None:
        """The kind of whole numbers, where the target does not say it; undecided if answers are not repeated."""
        if self.oracle.facts.kind is not Kind.VALUES or answer_kind(asked.answers) is not Kind.LABELS:
            return None
        if self.known in (IntegerKind.LABELS, IntegerKind.SCORES):
            return self.known
        if asked.again is not None:
            return IntegerKind.UNDECIDED if np.unique(asked.answers).size > 2 else None
        with self.oracle.stage("training"):
            return classify_integers(partial(ask_rows, self.oracle), asked.rows, asked.answers, self.rng)

    def result(self, outcome: Outcome, network: ReLUNetwork | None = None, **evidence: Any) -> Result:
        return self.run.result(outcome, network, {"eps": self.eps, **evidence})


def _directions(span: FloatArray | None, oracle: Counting) -> FloatArray | None:
    if span is None:
        return None
    basis = Subspace(span).basis
    if basis.shape[1] != oracle.dim or not len(basis):
        raise InvalidInput.about("span", got=f"shape {basis.shape}", expected=f"(k, {oracle.dim}) with k ≥ 1")
    return basis


def _rows_to_ask(inputs: FloatArray | None, oracle: Counting) -> FloatArray | None:
    if inputs is None:
        return None
    rows = check_rows(inputs, oracle.dim, oracle.facts.domain, "inputs")
    others = np.unique(rows + 0.0, axis=0)  # a row that is held out must not be trained on too; -0 is 0
    if len(others) < FEWEST:
        raise InvalidRows.about("inputs", got=f"{len(others)} rows that differ", expected=f"at least {FEWEST}")
    return others


STUDENT_SHAPES: tuple[tuple[int, ...], ...] = ((64,), (64, 64), (256,))  # one hidden layer, two, and a wide one
TRIAL_STEPS = 2_000  # of 1,000 the best ones are not the best of 8,000
TRIAL_SHARE = 0.1  # of the rows, at most so many
MOST_TRIAL_ROWS = 2_000


def best_shape(
    rows: FloatArray, targets: FloatArray, reading: AnswerReading, seconds: float | None, rng: np.random.Generator,
    shapes: Sequence[tuple[int, ...]] = STUDENT_SHAPES,
) -> tuple[int, ...]:  # fmt: skip
    """Hidden widths of the best after a short training, each within its part of the time."""
    if len(shapes) == 1:
        return shapes[0]
    kept = max(1, min(MOST_TRIAL_ROWS, int(TRIAL_SHARE * len(rows))))
    each = None if seconds is None else seconds / len(shapes)

    def off(hidden: tuple[int, ...]) -> float:
        own = rng.spawn(1)[0]
        trial = fit_network(
            rows[kept:], targets[kept:], reading.slope, hidden, reading.outputs, TrainingPace(TRIAL_STEPS, each), own
        )
        return float(row_misfits(trial, reading, rows[:kept], targets[:kept]).mean())

    return min(shapes, key=off)
