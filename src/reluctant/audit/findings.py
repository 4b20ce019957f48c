"""Options of an audit (`Settings`), how it reads the target (`AuditedTarget`), `Findings` of its steps, what a copy is.

One rule says what counts as a copy, how close is close enough, and which run settles the question: the verdict and
the rows of the defense sweep follow it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from reluctant.adversarial import Flip
from reluctant.audit.facts import (
    CLOSE,
    Bounds,
    Closeness,
    CopyError,
    CopyMethod,
    ErrorKind,
    Linearity,
    RowsNeeded,
    State,
    Truth,
    finite,
    is_close,
)
from reluctant.audit.record import ErrorHistogram, LinePicture, PlanePicture, SweepFacts
from reluctant.domains import Domain
from reluctant.engines import Engine
from reluctant.estimation import Range
from reluctant.evidence import Measured
from reluctant.interface import Interface
from reluctant.interface.diagnoses import NOISIEST_READ
from reluctant.interface.kinds import IntegerKind
from reluctant.learning.student import DIFFERING
from reluctant.learning.student_losses import HeldOutError, labels_allowed
from reluctant.messages import Diagnosis
from reluctant.networks import ReLUNetwork
from reluctant.networks.network import Link
from reluctant.numerics import FloatArray, as_generator
from reluctant.oracles import Counting, Kind, Linked, Selected
from reluctant.oracles.input_units import InputUnits
from reluctant.oracles.keywords import RunPrecision
from reluctant.oracles.links import (
    AnswerLink,
    PlainProbabilities,
    ProbabilityFormat,
    Tidied,
    written_link,
)
from reluctant.results import Ended, Outcome, Result
from reluctant.span import OutputSpace, Span
from reluctant.verification.comparison import ConfirmedNeurons

OF_CREASES = ("extraction", "learning")  # steps that take every bend for a neuron
REBUILDING = ("extraction", "learning", "training")
OF_VALUES = ("span", "extraction", "learning")  # steps that would look at other values behind a link


WHOLE = 1e-9  # of a number: what units of the inputs leave of a whole one by rounding


HeldColumns: TypeAlias = tuple[tuple[int, ...], tuple[float, ...]]  # and the value of each


@dataclass(frozen=True)
class Settings:
    """The settings of an audit.

    inputs: honest inputs (n, d); `sampled` if they were drawn from the domain.
    shape: of an input that is an image.
    file: a local file of the model, for the truth and for defenses.
    defense: what the target puts before it.
    percent: the file answers in percent.
    link: how answers are to be read.
    output: the one to read.
    engine: where defenses are tried.
    units: those of the inputs, in which every step works.
    held: columns that the audit left at one value each, and the values.
    """

    inputs: FloatArray
    sampled: bool = True
    shape: tuple[int, int] | None = None
    file: Path | None = None
    precision: RunPrecision = "as-served"
    link: AnswerLink = "identity"
    output: int | None = None
    seconds: float = 0.0
    watch: Callable[[int, int, str], None] | None = None
    defense: tuple[str, ...] = ()
    engine: Engine | None = None
    percent: bool = False
    units: InputUnits | None = None
    held: HeldColumns = ((), ())

    @property
    def whole_columns(self) -> tuple[int, ...]:
        """Columns that hold whole numbers alone in the inputs given, and not one number; none of drawn inputs."""
        if self.sampled:
            return ()
        rows = self.inputs if self.units is None else self.units.rows(self.inputs)
        whole = np.abs(rows - np.rint(rows)) <= WHOLE * np.maximum(1.0, np.abs(rows))
        return tuple(int(k) for k in np.flatnonzero(whole.all(axis=0) & (np.ptp(np.rint(rows), axis=0) > 0)))

    def inside(self, box: Domain, seed: int) -> Settings:
        """The settings for a range: the given inputs that lie in it, or some drawn from it."""
        within = self.inputs[[box.contains(row) for row in self.inputs]]
        if len(within) and not self.sampled:
            return replace(self, inputs=within)
        own = as_generator(seed).spawn(1)[0]
        return replace(self, inputs=box.sample(own, *self.inputs.shape), sampled=True)


@dataclass(frozen=True)
class AuditedTarget:
    """How the target answers, and how the audit reads its answers.

    link: through which they are read, as given or as found.
    reach: the range in which the target answers, where it does not everywhere.
    written: its probabilities are in percent, or among NaN, and count as plain ones, from `served` on.
    noisy: answers are probabilities with noise on them, which are put right before a link reads them.
    without: outputs that may be class numbers beside outputs of another kind; every step ignores them.
    looked_behind: the audit tried a link by itself, and it shows no values.
    certain: it shows none because the answers saturate there.
    served: the interface as it answers; None before the first look.
    health: the interface as it is read, behind its link.
    """

    link: AnswerLink = "identity"
    reach: Domain | None = None
    written: ProbabilityFormat | None = None
    noisy: bool = False
    without: tuple[int, ...] = ()
    looked_behind: bool = False
    certain: bool = False
    served: Interface | None = None
    health: Interface | None = None

    def seen(self, oracle: Counting, output: int | None = None) -> Counting:
        """The target as it is read: without some outputs, its link undone, one output of it, inside its range."""
        kept = [k for k in range(oracle.outputs) if k not in self.without]
        rest = Selected(oracle.inner, kept) if self.without else oracle.inner
        plain = rest if self.written is None else PlainProbabilities(rest, self.written)
        answered = Tidied(plain, self.link) if self.noisy and self.link != "identity" else plain
        values = answered if self.link == "identity" else Linked(answered, self.link)
        chosen = values if output is None else Selected(values, output)
        return Counting(chosen, oracle.ledger, oracle.facts.domain if self.reach is None else self.reach)

    @property
    def linked(self) -> bool:
        """True if values are read through a link: what ends far out are these, and not the answers."""
        return self.link != "identity"

    @property
    def may_be_sigmoids(self) -> bool:
        """True if answers look like sigmoids, and the audit does not read them so."""
        return not self.linked and self.health is not None and self.health.may_be_sigmoids

    @property
    def before_a_tanh(self) -> bool:
        """True if answers are those of a tanh, and the audit does not read them so."""
        return not self.linked and self.health is not None and self.health.tanh

    @property
    def unread(self) -> bool:
        """True if values before a link may show more: nobody has looked, and answers are not too coarse for it."""
        may_be = self.may_be_sigmoids or self.before_a_tanh
        return may_be and not self.looked_behind and self.refusal is not Outcome.TOO_NOISY

    @property
    def unexplained(self) -> bool:
        """True if answers are curved and end far out, or inside a domain, and no link is known that makes them so."""
        health = self.health
        return health is not None and not self.linked and health.may_be_squashed and not health.are_of_a_link

    @property
    def may_be_clipped(self) -> bool:
        """True if values no longer change far out, and nothing else explains that."""
        health, explained = self.health, self.may_be_sigmoids or self.unexplained
        explained = explained or (health is not None and health.step_function)
        ends = health is not None and health.constant_beyond is not None
        return ends and health is not None and health.answers is Kind.VALUES and not explained

    @property
    def refusal(self) -> Outcome | None:
        """Why the interface gives nothing to work with, None where it does."""
        return None if self.health is None else self.health.refusal

    @property
    def refusal_settles(self) -> bool:
        """True if the interface hides this from every method, everywhere."""
        constant = self.refusal is Outcome.CONSTANT  # as far as a first look goes: others may be asked elsewhere
        # If they are quantised and not those of trees, others may read more.
        steps = self.health is not None and self.health.step_function and not self.health.trees
        open_ = constant or self.unread or self.unexplained or steps or self.certain
        return self.refusal is not None and self.refusal.settles and not open_

    @property
    def of_labels(self) -> bool:
        """True if the target answers labels alone."""
        return self.health is not None and self.health.answers_labels


@dataclass(frozen=True)
class Findings:
    """Findings so far; None where a step has not run or has found nothing.

    clipped: the range that inputs seem to be clipped to, where extraction failed for that.
    """

    given: Settings
    target: AuditedTarget = field(default_factory=AuditedTarget)
    clipped: Domain | None = None
    span: Span | None = None
    answer_space: OutputSpace | None = None
    extraction: Result | None = None
    learning: Result | None = None
    training: Result | None = None
    part: ConfirmedNeurons | None = None
    flips: tuple[Flip, ...] = ()
    linearity: Linearity | None = None
    line: LinePicture | None = None
    plane: PlanePicture | None = None
    errors: tuple[ErrorHistogram, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)  # rows without a finite answer, by picture
    truth: Truth | None = None
    sweep: SweepFacts | None = None
    rows_needed: Range | None = None  # by extraction, for the shape in the file
    needed_rows: RowsNeeded | None = None  # the same, or of shapes that it may have, where the budget ran out
    ended: Mapping[str, Diagnosis] = field(default_factory=dict)  # why each step ended as it did
    states: Mapping[str, State] = field(default_factory=dict)  # and how
    timed_out: tuple[str, ...] = ()  # steps whose time was over before they ended
    without_rows: tuple[str, ...] = ()  # steps that no row of the budget was left for
    refused: tuple[str, ...] = ()  # steps that have nothing to find in this interface

    def settled(self, step: str) -> bool:
        """True if the step has come to its end here: one that was left out, failed or was cut short has not.

        Nor has one that found nothing in what may be the answers of sigmoids, or in others that something unknown has
        squashed: values before it may show it. Nor one that was led astray by clipped inputs, inside whose range it may
        succeed. `settles` has the rest.
        """
        if self.perhaps_numbers and step in REBUILDING:
            return False
        if step in self.refused or step in self.timed_out:
            return step not in self.timed_out
        ended: tuple[Ended | None, ...] = self.flips if step == "flip" else (self.run(step),)
        behind, inside = self.target.unread or self.target.unexplained, self.clipped is not None
        elsewhere = (behind and step in OF_VALUES) or (inside and step in OF_CREASES)
        if elsewhere and not any(each is not None and each.ok for each in ended):
            return False
        return bool(ended) and all(each is not None and settles(each) for each in ended)

    def run(self, step: str) -> Ended | None:
        """The outcome of the step for the span, or of one that searches for a network."""
        found: Ended | None = getattr(self, step)
        return found

    @property
    def short_of_rows(self) -> tuple[str, ...]:
        """Steps of an attack whose share of the budget ran out before they ended."""
        ended = {name: run for name in ("span", *REBUILDING) if (run := self.run(name)) is not None}
        short = {name for name, run in ended.items() if run.outcome is Outcome.OUT_OF_BUDGET} | {*self.without_rows}
        return tuple(name for name in ("span", *REBUILDING) if name in short and name not in self.timed_out)

    @property
    def copy(self) -> Result | None:
        """The run that gave the best copy: verified, as accurate as asked for, or measured to be close."""
        return best_copy(run for _, run in self.runs)

    @property
    def perhaps_numbers(self) -> bool:
        """True if more than two whole numbers counted as labels and are, or may be, rounded values."""
        trained = self.training is not None and Measured.of(self.training).from_labels
        health = self.target.health
        seen = health is not None and health.answers is Kind.LABELS
        return self.whole in (IntegerKind.SCORES, IntegerKind.UNDECIDED) and (trained or seen)

    @property
    def whole(self) -> IntegerKind | None:
        """What whole numbers are, by the step that could tell it; None of two of them, and of other answers."""
        of_training = None if self.training is None else Measured.of(self.training).whole
        found = (None if self.target.health is None else self.target.health.integers, of_training)
        return next((each for each in IntegerKind if each in found), None)

    @property
    def changes(self) -> bool:
        """True if answers were seen to change after all, though the first look saw one alone."""
        return self.target.refusal is Outcome.CONSTANT and self.span is not None and self.span.ok

    @property
    def as_answered(self) -> Findings:
        """Facts of the answers as they are, before any link reads them; of one output, of that."""
        if self.given.output is not None:
            return self
        return replace(self, target=replace(self.target, health=self.target.served, link="identity"))

    @property
    def runs(self) -> tuple[tuple[str, Result | None], ...]:
        """The runs that search for a network, by method."""
        return ("extract", self.extraction), ("learn", self.learning), ("train", self.training)

    @property
    def written_link(self) -> Link:
        """What a network is written with, by how its answers were read; one output of many, or one apart, has none."""
        if self.given.output is not None or self.apart:
            return "identity"
        return written_link(self.target.link)

    @property
    def network(self) -> ReLUNetwork | None:
        """The network of that run; None of one whose values are not those of the interface, as of labels."""
        return None if self.copy is None or self.apart else self.copy.network

    @property
    def apart(self) -> bool:
        """True if the copy gives other values than those that other steps see."""
        return self.copy is not None and Measured.of(self.copy).own_link is not None


class Skip(Exception):
    """A step has nothing to do here; slug and fields say why. settles: more rows or time would change nothing."""

    def __init__(self, slug: str, *, settles: bool = True, **fields: Any) -> None:
        super().__init__(slug)
        self.diagnosis = Diagnosis(slug, fields)
        self.settles = settles


# (the target within the step's share of the budget, the findings, the seed) to new findings, by name.
StepFunction = Callable[[Counting, Findings, int], Mapping[str, Any]]


def skip_where(known: Findings, *refusals: Outcome, missing: str = "anything") -> None:
    """Skip the step where the interface has one of these faults; missing: what the step did not find."""
    health = known.target.health
    if health is not None and health.refusal in refusals:
        settles, gives = known.target.refusal_settles, _useless_answers(known, health)
        raise Skip("nothing-to-find", settles=settles, missing=missing, **gives)


def _useless_answers(known: Findings, health: Interface) -> dict[str, Any]:
    """What a refused interface gives, as fields: a slug under "gives", and its digits."""
    if known.changes:
        return {"gives": "alike"}
    if known.target.linked and health.refusal is Outcome.NON_FINITE:
        return {"gives": "certain"}
    if health.answers is Kind.LABELS and health.refusal is not Outcome.CONSTANT:
        return {"gives": "labels-or-numbers" if health.integers is IntegerKind.UNDECIDED else "labels"}
    if health.refusal is Outcome.TOO_NOISY and health.deterministic:
        return {"gives": "coarse", "decimals": health.decimals}
    if health.refusal is Outcome.NOT_PIECEWISE_LINEAR and health.are_of_a_link and health.decimals is not None:
        return {"gives": "rounded-link", "noun": health.noun, "decimals": health.decimals}
    return {"gives": "nothing" if health.refusal is None else health.refusal.slug}


# ---- copies

TELLING = 0.5  # of what a constant gets wrong: the labels other than the commonest, or the deviation of values


def copy_error(run: Result) -> CopyError:
    """The error of a run's network, and how it was measured.

    Verification errors include the noise of the answers.
    """
    measured = Measured.of(run)
    labels = measured.label_check
    if labels is not None and labels.ok:
        return CopyError(ErrorKind.BOUNDARY, finite(labels.boundary_error), None, labels.points)
    verification, precision = measured.value_check, measured.precision
    largest, rms = (None, None) if verification is None else (verification.max_error, verification.rms_error)
    found = CopyError(
        ErrorKind.UNVERIFIED, finite(largest), finite(rms), None if verification is None else verification.points,
        None if precision is None else finite(precision.error), inside=Bounds.of_box(measured.inside),
    )  # fmt: skip
    if precision is not None and run.ok:
        return replace(found, kind=ErrorKind.EVERY_DIGIT)
    if run.outcome is Outcome.RECOVERED and largest is not None:
        digits = int(-np.log10(max(largest, np.finfo(np.float64).eps)))
        return replace(found, kind=ErrorKind.DIGITS, digits=digits)
    if measured.held_out is not None:
        held = measured.held_out
        typical = None if held.of_copy is None else finite(np.sqrt(held.of_copy))
        labelled = held.of_copy is None or held.tells_labels
        return replace(
            found, kind=ErrorKind.HELD_OUT, typical=typical, inputs=held.points, is_bound=held.is_bound,
            agreement=held.agreement if labelled else None, commonest=held.commonest if labelled else None,
        )  # fmt: skip
    if measured.accuracy is not None:
        return replace(found, kind=ErrorKind.RMS, typical=finite(np.sqrt(measured.accuracy.error)))
    return found


def method_of(run: Result) -> CopyMethod:
    """How a network was found."""
    measured = Measured.of(run)
    if measured.training is not None:
        return CopyMethod.TRAINING
    if measured.to_accuracy:
        return CopyMethod.LEARNING
    if measured.label_check is not None:
        return CopyMethod.LABELS
    return CopyMethod.FEW_DIGITS if measured.precision is not None else CopyMethod.EXACT


def is_trained(run: Ended) -> bool:
    """True of a network that was trained on the answers: its parameters are its own, and none of the target's."""
    return Measured.of(run).training is not None


def best_copy(runs: Iterable[Result | None]) -> Result | None:
    """The run that gave the best copy: verified, as accurate as asked for, or measured to be close."""
    copies = [run for run in runs if run is not None and run.network is not None and is_copy(run)]

    def badness(run: Result) -> tuple[bool, bool, float]:
        typical = copy_error(run).typical
        return not run.ok, run.outcome is not Outcome.RECOVERED, np.inf if typical is None else typical

    return min(copies, key=badness, default=None)


def is_copy(run: Result) -> bool:
    """True if its network is as good as a copy; a trained one by the upper end of its error, which its outcome has."""
    measured = Measured.of(run)
    checked = measured.value_check
    holds_at_use = checked is None or checked.at_use is None or bool(checked.at_use.ok)
    return run.ok or (holds_at_use and measured.held_out is None and is_close(copy_error(run).typical))


def closeness(measured: HeldOutError) -> Closeness | None:
    """The limit for a trained network: on its own error where answers have a size, else on its labels."""
    error, high = (measured.error, measured.high) if measured.own is None else (measured.own.error, measured.own.high)
    if error is not None and high is not None:
        seen, most, alone = math.sqrt(error), math.sqrt(high), None
        allowed, labels = CLOSE, False
    else:
        seen, most, labels = 1 - measured.agreement, measured.differing, True
        allowed = labels_allowed(measured.commonest, DIFFERING)
        alone = measured.commonest if allowed < DIFFERING else None
    return Closeness(seen, most, allowed, labels, seen <= allowed < most, alone)


def is_near(run: Ended) -> bool:
    """True if only chance keeps a trained network from being called a copy: another run may settle it."""
    measured = Measured.of(run).held_out
    found = None if measured is None or run.outcome is not Outcome.NOT_ACCURATE else closeness(measured)
    return found is not None and found.open


def gives_labels(measured: HeldOutError) -> bool:
    """True if a network surely gives many more labels than one label alone. One number has no label."""
    alone = measured.commonest
    return bool(measured.labelled and alone < 1 and 1 - measured.differing - alone >= TELLING * (1 - alone))


def falls_short(run: Ended) -> bool:
    """True if a trained network is not a copy but explains most of the answers.

    That is at least half of the labels that one label alone gets wrong, or errors of at most half the deviation of
    values. A larger network or more answers may then make a copy: nobody can say that the target is safe from it.
    """
    measured = Measured.of(run).held_out
    if measured is None or run.outcome is not Outcome.NOT_ACCURATE:
        return False
    judged = measured.judged
    return gives_labels(measured) or (judged is not None and math.sqrt(judged) <= TELLING)


def settles(run: Ended) -> bool:
    """True if the run came to its end: it found what it looks for, or these answers have nothing for it to find.

    False where it was cut short, went part of the way, or could not see: more rows, time or digits may find more. Nor
    does one settle anything that chance may have kept from its end, where another seed may reach it. A trained network
    that falls short of a copy has gone part of the way.
    """
    # Noise hides all inside the box that a link leaves: there far less of it is refused, with any seed.
    far_too_noisy = run.outcome is Outcome.TOO_NOISY and Measured.of(run).inside is not None
    by_chance = is_unlucky(run) or is_narrow(run)
    return (run.outcome.settles or far_too_noisy) and not (by_chance or is_near(run) or falls_short(run))


def is_narrow(run: Ended) -> bool:
    """True if noise inside a box was little more than lines are read with: another box, or seed, may have less."""
    narrowly = 10.0  # times the noise that lines are read with
    measured = Measured.of(run)
    health = measured.health
    if run.outcome is not Outcome.LOW_PRECISION or measured.inside is None or health is None or not health.spread > 0:
        return False
    return health.noise.at(health.spread) <= narrowly * NOISIEST_READ * health.spread


def is_unlucky(run: Ended) -> bool:
    """True if the method for few digits was tried and did not succeed: with another seed it may."""
    return run.outcome is Outcome.LOW_PRECISION and bool(Measured.of(run).failures)
