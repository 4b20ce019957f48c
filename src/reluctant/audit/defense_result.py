"""`DefenseResult`: the span, the rebuilt networks and the trained network that one defense leaves.

Networks are held against the model with all its digits, at honest inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reluctant.audit.copies import finite, is_close, is_unlucky, settles
from reluctant.audit.sweep_facts import DefenseRow, HonestFacts, RowSpan, Student, Trial
from reluctant.audit.target_view import Tidied
from reluctant.defenses import HonestCost
from reluctant.defenses.defense import labels_of
from reluctant.learning.student_losses import commonest_share
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.numerics import FloatArray
from reluctant.oracles import Kind, Oracle
from reluctant.oracles.adapters.dispatch import LINK_FUNCTIONS
from reluctant.oracles.links import AnswerLink, Linked
from reluctant.results import Outcome, Result
from reluctant.span import Span

BY_MISSING = (Outcome.OUT_OF_REACH, Outcome.NON_FINITE)  # where a link has nothing to read: 0, 1, or not told
NARROW = 0.25  # of the inputs: training in so few directions of a span pays for finding them
NO_DEFENSE = "none"
OF_LABELS = "from labels"  # evidence of a span: values may show more directions than labels do


@dataclass(frozen=True)
class Rebuilt:
    """A network rebuilt from defended answers beside the undefended copy.

    error: root mean square over the inputs, largest: the largest, both relative to the deviation of each output;
    agreement: share of the inputs that get the same label; commonest: what always saying one label gives. None where
    there is no network. undecided: the time was over before the method had ended, whatever its outcome is. missing: the
    defense leaves out what the method has to read, wherever it looks. narrow: trained inside a span; reused: trained
    without the defense, whose answers hardly differ.
    """

    method: str
    result: Result
    error: float | None = None
    largest: float | None = None
    agreement: float | None = None
    undecided: bool = False
    commonest: float | None = None
    missing: bool = False
    narrow: bool = False
    reused: bool = False

    @property
    def cut(self) -> bool:
        """True if a training had fewer rows or steps than it wanted."""
        training = self.result.evidence.get("training")
        return training is not None and training.cut

    @property
    def copied(self) -> bool:
        """True if it is a copy: verified, as accurate as asked for, or measured to be close."""
        return self.result.ok or is_close(self.error)

    @property
    def settled(self) -> bool:
        """True if the method ended as it would with any seed, or in what the defense leaves out."""
        by_defense = self.missing and self.result.outcome in BY_MISSING
        return not self.undecided and (settles(self.result) or by_defense)

    @property
    def refused(self) -> bool:
        """True if a look at the answers was enough to see that there is nothing to find in them."""
        return self.settled and self.result.network is None

    def facts(self, queries: int | None = None) -> Trial:
        """As the record has it; queries: those of all methods, if they are to stand there."""
        return Trial(
            self.method, self.result.outcome.slug, self.result.ok, finite(self.error), finite(self.largest),
            finite(self.agreement), self.result.queries if queries is None else queries, self.copied, self.settled,
            self.undecided, self.refused, is_unlucky(self.result),
        )  # fmt: skip


@dataclass(frozen=True)
class DefenseResult:
    """What is left of one defense; parts that were not asked for are None. cut: not all was tried to its end.

    trained: a network trained on the answers. It decides nothing about what is stopped: that is said of methods that
    rebuild the network itself. no_method: none of these takes what is left, labels alone.
    """

    defense: str
    honest: HonestCost
    span: Span | None = None
    extracted: Rebuilt | None = None
    learned: Rebuilt | None = None
    cut: bool = False
    trained: Rebuilt | None = None
    no_method: bool = False

    @property
    def tried(self) -> list[Rebuilt]:
        """What was tried to rebuild the network."""
        return [each for each in (self.extracted, self.learned) if each is not None]

    @property
    def rebuilt(self) -> Rebuilt | None:
        """The best copy: one that is verified or accurate enough, else the one that errs least."""
        return min(self.tried, key=_badness, default=None)

    @property
    def stopped(self) -> bool | None:
        """True if every method came to its end and gave no copy, or none is there; False if one did, else None."""
        if any(each.copied for each in self.tried):
            return False
        if self.no_method:
            return True
        return True if self.tried and not self.cut and all(each.settled for each in self.tried) else None

    @property
    def queries(self) -> int:
        """Rows spent on the rebuilt network, on every method that was tried."""
        return sum(each.result.queries for each in self.tried)

    def facts(self, digits: float | None) -> DefenseRow:
        """As the record has it; digits: those that are left to honest users."""
        honest, span, best = self.honest, self.span, self.rebuilt
        return DefenseRow(
            self.defense,
            HonestFacts(finite(honest.rms_error), finite(honest.max_error), finite(honest.agreement), honest.rows),
            finite(digits),
            None if span is None else RowSpan(
                span.outcome.slug, span.ok, span.rank, span.subspace.dim, finite(span.angle), span.queries,
                bool(span.evidence.get(OF_LABELS)),
            ),
            tuple(each.facts() for each in self.tried), None if best is None else best.facts(self.queries),
            None if self.trained is None else _student(self.trained, span), self.stopped, self.no_method, self.cut,
        )  # fmt: skip


def _badness(rebuilt: Rebuilt) -> tuple[bool, float]:
    return not rebuilt.result.ok, np.inf if rebuilt.error is None else rebuilt.error


def narrow_basis(span: Span | None) -> FloatArray | None:
    """Directions (k, d) that are worth training in: all that count, and few of those there are."""
    narrow = span is not None and span.ok and 0 < span.rank <= NARROW * span.subspace.dim
    return span.basis if span is not None and narrow else None


def _student(trained: Rebuilt, span: Span | None) -> Student:
    """With the queries for a span that was used, and how it does at inputs like those of its training."""
    measured, used = trained.result.evidence.get("accuracy"), narrow_basis(span) is not None
    error = None if measured is None or measured.of_copy is None else np.sqrt(measured.of_copy)
    return Student(
        trained.result.outcome.slug, trained.result.ok, finite(trained.error), finite(trained.largest),
        finite(trained.agreement), finite(trained.commonest), finite(error),
        None if measured is None else measured.agreement,
        trained.result.queries + (span.queries if span is not None and used else 0), trained.cut, trained.reused,
        trained.copied,
    )  # fmt: skip


TO_REFERENCE = ("softmax", "log-softmax", "top-k")  # links that leave log-ratios to the first class


@dataclass(frozen=True)
class Beside:
    """The model with all its digits, honest inputs (n, d), and how answers are read.

    own_link: what undoes the model's own answers; link: what undoes the defended ones; labels: nothing else is left.
    """

    model: Oracle
    inputs: FloatArray
    own_link: AnswerLink
    link: AnswerLink
    labels: bool

    def rebuilt(self, found: Rebuilt) -> Rebuilt:
        """With the errors of a network that gives values as they are read."""
        network = found.result.network
        return found if network is None else self.by_values(found, network(self.inputs))

    def trained(self, found: Rebuilt) -> Rebuilt:
        """With those of a trained one, in the terms in which it was trained."""
        network = found.result.network
        if network is None:
            return found
        if self.labels:
            return self.by_labels(found, network(self.inputs))
        if self.as_answered(found.result):
            return _telling(self.by_answers(found, network(self.inputs)))
        given = network.log_ratios() if self.reference else network
        return _telling(self.by_values(found, given(self.inputs)))

    def as_answered(self, student: Result) -> bool:
        """True if answers have a link, and the student did not undo it as the one who asks does."""
        undone = student.evidence["link"]
        if self.reference:
            return undone == "sigmoid"  # noise had made them look independent
        as_it_is = undone == "identity"
        return not as_it_is if self.link == "identity" else self.link in ELEMENTWISE_LINKS and as_it_is

    def by_values(self, found: Rebuilt, values: FloatArray) -> Rebuilt:
        """Beside the values that answers are read as."""
        return _compared(found, self.values(), values, self.reference)

    def by_answers(self, found: Rebuilt, values: FloatArray) -> Rebuilt:
        """Beside the answers as they are; of one-hot ones the labels alone."""
        true, said = self.model.query(self.inputs), LINK_FUNCTIONS[found.result.evidence["link"]](values)
        beside = _compared(found, true, said, False, Kind.VALUES if self.link == "tanh" else Kind.PROBABILITIES)
        sized = found.result.evidence["accuracy"].error is not None
        return beside if sized else replace(beside, error=None, largest=None)

    def by_labels(self, found: Rebuilt, values: FloatArray) -> Rebuilt:
        """Of a network trained on labels: how often it gives the same one."""
        codes = np.asarray(found.result.evidence["labels"])
        true = labels_of(self.model.query(self.inputs), self.model.facts.kind)
        same = codes[values.argmax(axis=1)] == true
        return replace(found, agreement=float(same.mean()), commonest=commonest_share(true))

    @property
    def reference(self) -> bool:
        """True if what is rebuilt are log-ratios to the first class."""
        return self.link in TO_REFERENCE

    def values(self) -> FloatArray:
        """What a rebuilt network should give at the inputs."""
        if self.own_link != "identity":
            return Linked(Tidied(self.model, self.own_link), self.own_link).answer(self.inputs)
        values = self.model.query(self.inputs)
        return values[:, 1:] - values[:, :1] if self.reference else values


def _telling(student: Rebuilt) -> Rebuilt:
    """Without its labels where it has an error and one label alone is always right: they tell nothing then."""
    told = student.error is None or student.commonest is None or student.commonest < 1
    return student if told else replace(student, agreement=None, commonest=None)


def _compared(
    rebuilt: Rebuilt, true: FloatArray, found: FloatArray, reference: bool, kind: Kind = Kind.VALUES
) -> Rebuilt:
    """What the network gives at the inputs beside what it should give."""
    finite = np.isfinite(true).all(axis=1)  # an infinite log-ratio is a class that is certain to the last digit
    if not finite.any():
        return rebuilt
    true, found = true[finite], found[finite]
    spread = true.std(axis=0)
    errors = np.abs(found - true) / np.where(spread > 0, spread, 1.0)
    labels = _labels(true, reference, kind)
    same, alone = float((_labels(found, reference, kind) == labels).mean()), commonest_share(labels)
    rms, largest = float(np.sqrt(np.mean(errors**2))), float(errors.max())
    return replace(rebuilt, error=rms, largest=largest, agreement=same, commonest=alone)


def _labels(values: FloatArray, reference: bool, kind: Kind) -> Any:
    with_first = np.column_stack([np.zeros(len(values)), values]) if reference else values
    return labels_of(with_first, kind)
