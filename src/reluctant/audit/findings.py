"""`Settings` and `Findings`: options of an audit, findings of its steps so far, and the target as the steps see it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from reluctant.adversarial import Flip
from reluctant.audit.copies import best_copy, settles
from reluctant.audit.facts import Linearity, RowsNeeded, State, Truth
from reluctant.audit.record import ErrorHistogram, LinePicture, PlanePicture, SweepFacts
from reluctant.domains import Domain
from reluctant.engines import Engine
from reluctant.estimation import Range
from reluctant.evidence import Measured
from reluctant.interface import Interface
from reluctant.interface.kinds import IntegerKind
from reluctant.interface.reach import answers_labels
from reluctant.messages import Diagnosis
from reluctant.networks import ReLUNetwork
from reluctant.networks.network import Link
from reluctant.numerics import FloatArray, as_generator
from reluctant.oracles import Counting, Kind, Linked, Oracle, Selected
from reluctant.oracles.base import Wrapper
from reluctant.oracles.input_units import InputUnits
from reluctant.oracles.keywords import RunPrecision
from reluctant.oracles.links import (
    ROUNDED_PROBABILITY_SLACK,
    AnswerLink,
    PlainProbabilities,
    ProbabilityFormat,
    written_link,
)
from reluctant.results import Ended, Outcome, Result
from reluctant.span import OutputSpace, Span
from reluctant.verification.comparison import Bends

OF_CREASES = ("extraction", "learning")  # steps that take every bend for a neuron
REBUILDING = ("extraction", "learning", "training")
OF_VALUES = ("span", "extraction", "learning")  # steps that would look at other values behind a link


WHOLE = 1e-9  # of a number: what units of the inputs leave of a whole one by rounding


HeldColumns: TypeAlias = tuple[tuple[int, ...], tuple[float, ...]]  # and the value of each


@dataclass(frozen=True)
class Settings:
    """What an audit is given besides its target.

    inputs: honest inputs (n, d); `sampled` if they were drawn from the domain. shape: of an input that is an image.
    file: a local file of the model, for the truth and for defenses; defense: what the target puts before it;
    percent: it answers in percent. link: how answers are to be read; output: the one to read. engine: where
    defenses are tried. units: those of the inputs, in which every step works. held: columns that the audit left at one
    value each, and the values.
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
class Findings:
    """Findings so far; None where a step has not run or has found nothing.

    link: how the answers are read, as given or as found. reach: the range in which the target answers, where it
    does not everywhere. clipped: the range that inputs seem to be clipped to, where extraction failed for that.
    served: the interface as it answers; health: as it is read. written: its probabilities are in percent, or among
    NaN, and count as plain ones, from `served` on. noisy: answers are probabilities with noise on them, which
    are put right before a link reads them. without: outputs that may be numbers of classes, which no step looks at, for
    others stand beside them that are not. looked_behind: a link that nobody gave was tried, and shows no values.
    """

    given: Settings
    link: AnswerLink = "identity"
    reach: Domain | None = None
    clipped: Domain | None = None
    written: ProbabilityFormat | None = None
    noisy: bool = False
    without: tuple[int, ...] = ()
    looked_behind: bool = False
    served: Interface | None = None
    health: Interface | None = None
    span: Span | None = None
    answer_space: OutputSpace | None = None
    extraction: Result | None = None
    learning: Result | None = None
    training: Result | None = None
    part: Bends | None = None
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
        behind, inside = self.unread or self.unexplained, self.clipped is not None
        elsewhere = (behind and step in OF_VALUES) or (inside and step in OF_CREASES)
        if elsewhere and not any(each is not None and each.ok for each in ended):
            return False
        return bool(ended) and all(each is not None and settles(each) for each in ended)

    def run(self, step: str) -> Ended | None:
        """What the step for the span, or one that looks for a network, ended with."""
        found: Ended | None = getattr(self, step)
        return found

    @property
    def short_of_rows(self) -> tuple[str, ...]:
        """Steps that look for something to take, and whose share of the budget ran out before they had ended."""
        ended = {name: run for name in ("span", *REBUILDING) if (run := self.run(name)) is not None}
        short = {name for name, run in ended.items() if run.outcome is Outcome.OUT_OF_BUDGET} | {*self.without_rows}
        return tuple(name for name in ("span", *REBUILDING) if name in short and name not in self.timed_out)

    @property
    def copy(self) -> Result | None:
        """The run that gave the best copy: verified, as accurate as asked for, or measured to be close."""
        return best_copy(run for _, run in self.runs)

    @property
    def linked(self) -> bool:
        """True if values are read through a link: what ends far out are these, and not the answers."""
        return self.link != "identity"

    @property
    def may_be_sigmoids(self) -> bool:
        """True if answers look like those of sigmoids, and are not read as such."""
        return not self.linked and self.health is not None and self.health.may_be_sigmoids

    @property
    def unread(self) -> bool:
        """True if values before a link may show more: nobody has looked, and answers are not too coarse for it."""
        may_be = self.may_be_sigmoids or self.before_a_tanh
        return may_be and not self.looked_behind and self.refusal is not Outcome.TOO_NOISY

    @property
    def before_a_tanh(self) -> bool:
        """True if answers are those of a tanh, and are not read as such."""
        return not self.linked and self.health is not None and self.health.tanh

    @property
    def unexplained(self) -> bool:
        """True if answers are curved and end far out, or inside a domain, and no link is known that makes them so."""
        health = self.health
        return health is not None and not self.linked and health.may_be_squashed and not health.are_of_a_link

    @property
    def perhaps_numbers(self) -> bool:
        """True if more than two whole numbers counted as labels and are, or may be, rounded values."""
        trained = self.training is not None and Measured.of(self.training).from_labels
        seen = self.health is not None and self.health.answers is Kind.LABELS
        return self.whole in (IntegerKind.SCORES, IntegerKind.UNDECIDED) and (trained or seen)

    @property
    def whole(self) -> IntegerKind | None:
        """What whole numbers are, by the step that could tell it; None of two of them, and of other answers."""
        of_training = None if self.training is None else Measured.of(self.training).whole
        found = (None if self.health is None else self.health.integers, of_training)
        return next((each for each in IntegerKind if each in found), None)

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
    def changes(self) -> bool:
        """True if answers were seen to change after all, though the first look saw one alone."""
        return self.refusal is Outcome.CONSTANT and self.span is not None and self.span.ok

    @property
    def refusal_settles(self) -> bool:
        """True if the interface would refuse this to anyone, wherever it is asked and however it is read."""
        constant = self.refusal is Outcome.CONSTANT  # as far as a first look goes: others may be asked elsewhere
        # If they are quantised and not those of trees, others may read more.
        steps = self.health is not None and self.health.step_function and not self.health.trees
        open_ = constant or self.unread or self.unexplained or steps
        return self.refusal is not None and self.refusal.settles and not open_

    @property
    def as_answered(self) -> Findings:
        """Facts of the answers as they are, before any link reads them; of one output, of that."""
        return self if self.given.output is not None else replace(self, health=self.served, link="identity")

    @property
    def runs(self) -> tuple[tuple[str, Result | None], ...]:
        """The runs that look for a network, by method."""
        return ("extract", self.extraction), ("learn", self.learning), ("train", self.training)

    @property
    def written_link(self) -> Link:
        """What a network is written with, by how its answers were read; one output of many, or one apart, has none."""
        if self.given.output is not None or self.apart:
            return "identity"
        return written_link(self.link)

    @property
    def network(self) -> ReLUNetwork | None:
        """The network of that run; None of one whose values are not those of the interface, as of labels."""
        return None if self.copy is None or self.apart else self.copy.network

    @property
    def of_labels(self) -> bool:
        """True if the target answers labels alone."""
        return self.health is not None and answers_labels(self.health)

    @property
    def apart(self) -> bool:
        """True if the copy's values are not those that other steps see."""
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
    """Skip the step where the interface has one of these faults; missing: what the step looks for in vain."""
    if known.health is None or known.refusal is None or known.refusal not in refusals:
        return
    raise Skip(
        "nothing-to-find", settles=known.refusal_settles, missing=missing, **_useless_answers(known, known.health)
    )


def _useless_answers(known: Findings, health: Interface) -> dict[str, Any]:
    """What a refused interface gives, as fields: a slug under "gives", and its digits."""
    if known.changes:
        return {"gives": "alike"}
    if known.linked and health.refusal is Outcome.NON_FINITE:
        return {"gives": "certain"}
    if health.answers is Kind.LABELS and health.refusal is not Outcome.CONSTANT:
        return {"gives": "labels-or-numbers" if health.integers is IntegerKind.UNDECIDED else "labels"}
    if health.refusal is Outcome.TOO_NOISY and health.deterministic:
        return {"gives": "coarse", "decimals": health.decimals}
    if health.refusal is Outcome.NOT_PIECEWISE_LINEAR and health.are_of_a_link and health.decimals is not None:
        return {"gives": "rounded-link", "noun": health.noun, "decimals": health.decimals}
    return {"gives": "nothing" if health.refusal is None else health.refusal.slug}


# ---- the target as the steps see it


class Tidied(Wrapper):
    """Noisy probabilities, put right so that this link can read them.

    Noise leaves numbers below 0 and classes that do not add up to 1, which a link refuses. One below 0 says no more
    than 0 does; what does not add up is scaled. Answers that are probabilities pass as they are, to the last digit.
    """

    def __init__(self, inner: Oracle, link: AnswerLink) -> None:
        super().__init__(inner)
        self.link = link

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then correct each number that is no probability."""
        answers = self.inner.answer(rows)
        if self.link == "sigmoid":
            return np.asarray(np.clip(answers, 0.0, 1.0))
        if self.link == "tanh":
            return np.asarray(np.clip(answers, -1.0, 1.0))
        if self.link == "log-softmax":
            return np.asarray(answers - np.log(self.scale(np.exp(answers))))
        p = np.maximum(answers, 0.0)
        return np.asarray(p / self.scale(p))

    def scale(self, p: FloatArray) -> FloatArray:
        """What to divide each row by: 1 where rounding explains what it adds up to, NaN where nothing is left."""
        slack, total = ROUNDED_PROBABILITY_SLACK, p.sum(axis=1, keepdims=True)
        off = (total > 1 + slack * p.shape[1]) | (p.max(axis=1, keepdims=True) > 1 + slack)
        if self.link != "top-k":  # of the largest few there may be less
            off |= total < 1 - slack * p.shape[1]
        return np.where(total > 0, np.where(off, total, 1.0), np.nan)


def seen(
    oracle: Counting,
    link: AnswerLink,
    output: int | None,
    inside: Domain | None = None,
    *,
    noisy: bool = False,
    written: ProbabilityFormat | None = None,
    without: Collection[int] = (),
) -> Counting:
    """The target as the audit reads it: its link undone, some of its outputs, inside a range.

    noisy: they have noise on them, and are put right before a link reads them; written: they are not written plainly;
    without: outputs that are left out before all else.
    """
    kept = [k for k in range(oracle.outputs) if k not in without]
    rest = Selected(oracle.inner, kept) if without else oracle.inner
    plain = rest if written is None else PlainProbabilities(rest, written)
    answered = Tidied(plain, link) if noisy and link != "identity" else plain
    values = answered if link == "identity" else Linked(answered, link)
    chosen = values if output is None else Selected(values, output)
    return Counting(chosen, oracle.ledger, oracle.facts.domain if inside is None else inside)
