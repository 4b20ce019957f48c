"""The trial of one defense on a local copy: recover its span and rebuild its network.

The copy replaces the model, so nothing here asks a real target. An attacker knows the defense: they undo a softmax by
its link, and recover the span from labels where labels alone are left. The model's own digits are cut after the
defense, which works on all of them. Rebuilt networks are compared with the undefended copy at honest inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reluctant.audit.facts import finite, is_close, mirror
from reluctant.audit.findings import is_unlucky, settles
from reluctant.audit.record import NO_DEFENSE, DefenseRow, HonestFacts, RowSpan, Trial
from reluctant.defenses import (
    NUMBER_FORMATS,
    HonestCost,
    defend,
    defense_kind,
    honest_cost,
    labels_of,
    split_last_defenses,
)
from reluctant.evidence import Measured
from reluctant.extraction import extract
from reluctant.learning import learn
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.numerics import FloatArray, Rng
from reluctant.oracles import Counting, Kind, Oracle, open_oracle
from reluctant.oracles.ledger import Clock, Limit
from reluctant.oracles.links import AnswerLink, Linked, Tidied
from reluctant.results import Outcome, Result
from reluctant.span import Span, recover_span

METHODS = ("span", "extract", "learn")
BUDGET = 200_000  # rows for each method: labels take 60 to 150 for each input of each direction
SECONDS = 60.0  # of processor time, for all methods together

# What a defense makes of values, and the link that undoes it.
LINKS: dict[str, AnswerLink] = {
    "softmax": "softmax",
    "log-softmax": "log-softmax",
    "sigmoid": "sigmoid",
    "top": "top-k",
}
OTHER_ANSWERS = ("log-softmax", "top")  # of the same kind or shape as before, and yet of something else, or less of it
BY_MISSING = (Outcome.OUT_OF_REACH, Outcome.NON_FINITE)  # where a link has nothing to read: 0, 1, or left out


@dataclass(frozen=True)
class Rebuilt:
    """A network rebuilt from defended answers, compared with the undefended copy.

    error: root mean square over the inputs; largest: the largest, both relative to the deviation of each output.
    agreement: share of the inputs that get the same label. None where there is no network. undecided: the time ended
    before the method did, whatever its outcome is. missing: the defense leaves out what the method has to read.
    """

    method: str
    result: Result
    error: float | None = None
    largest: float | None = None
    agreement: float | None = None
    undecided: bool = False
    missing: bool = False

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
        """True if the interface alone showed that there is nothing to find."""
        return self.settled and self.result.network is None

    def facts(self, queries: int | None = None) -> Trial:
        """For the record; queries: those of all methods, in place of its own."""
        return Trial(
            self.method, self.result.outcome.slug, self.result.ok, finite(self.error), finite(self.largest),
            finite(self.agreement), self.result.queries if queries is None else queries, self.copied, self.settled,
            self.undecided, self.refused, is_unlucky(self.result),
        )  # fmt: skip


@dataclass(frozen=True)
class DefenseResult:
    """The results of the attacks behind one defense; None for methods that were not tried.

    cut: the time ended before every method was tried. no_method: labels alone are left, and gave no network.
    """

    defense: str
    honest: HonestCost
    span: Span | None = None
    extracted: Rebuilt | None = None
    learned: Rebuilt | None = None
    cut: bool = False
    no_method: bool = False

    @property
    def tried(self) -> list[Rebuilt]:
        """Every attempt to rebuild the network."""
        return [each for each in (self.extracted, self.learned) if each is not None]

    @property
    def rebuilt(self) -> Rebuilt | None:
        """The best copy: one that is verified or accurate enough, else the one that errs least."""

        def badness(each: Rebuilt) -> tuple[bool, float]:
            return not each.result.ok, np.inf if each.error is None else each.error

        return min(self.tried, key=badness, default=None)

    @property
    def stopped(self) -> bool | None:
        """True if every method came to its end and gave no copy, or none exists; False if one did, else None."""
        if any(each.copied for each in self.tried):
            return False
        if self.no_method:
            return True
        return True if self.tried and not self.cut and all(each.settled for each in self.tried) else None

    @property
    def queries(self) -> int:
        """Rows of every method that was tried for the network."""
        return sum(each.result.queries for each in self.tried)

    def facts(self, digits: float | None) -> DefenseRow:
        """For the record; digits: decimal digits that honest users still get."""
        honest, span, best = self.honest, self.span, self.rebuilt
        return DefenseRow(
            self.defense,
            HonestFacts(finite(honest.rms_error), finite(honest.max_error), finite(honest.agreement), honest.rows),
            finite(digits),
            None if span is None else mirror(
                RowSpan, span, outcome=span.outcome.slug, inputs=span.subspace.dim,
                from_labels=Measured.of(span).from_labels,
            ),
            tuple(each.facts() for each in self.tried), None if best is None else best.facts(self.queries),
            self.stopped, self.no_method, self.cut,
        )  # fmt: skip


def try_defense(
    oracle: Oracle,
    defense: str | Sequence[str] = (),
    *,
    inputs: FloatArray,
    link: AnswerLink = "identity",
    budget: int = BUDGET,
    seconds: float | None = SECONDS,
    methods: Sequence[str] = METHODS,
    every: bool = False,
    yardstick: Oracle | None = None,
    last: Sequence[str] = (),
    rng: Rng = 0,
) -> DefenseResult:
    """Attack a local copy behind one defense.

    Arguments:
        oracle: the undefended copy, before the model's own digits are cut.
        defense: names as `defend` takes them, the first next to the model; none: the copy as it is.
        inputs: honest inputs (n, d), on which costs and errors are measured.
        link: what undoes the copy's own answers, where it answers probabilities.
        budget: rows that each method may ask.
        seconds: processor time of all methods together, None for no limit; unused time is left to the next.
        methods: which to try, of "span", "extract", "learn".
        every: learn also where extraction succeeded, or took too long; try all on labels, which refuse them.
        yardstick: the same copy with all its digits, to compare networks with; if not given, the copy.
        last: what cuts the model's digits, as names of defenses; it comes after the defense.
        rng: seed of all random choices.
    """
    names = (defense,) if isinstance(defense, str) else tuple(defense)
    labels = "labels" in map(defense_kind, names) or oracle.facts.kind is Kind.LABELS
    span_alone = labels and not every
    clock = Clock(seconds, len({*methods} - {"learn"} if span_alone else {*methods}))
    defended = _DefendedCopy(oracle, yardstick or oracle, names, tuple(last), inputs, link, labels, budget, clock, rng)
    span = defended.span() if "span" in methods else None
    extracted = defended.rebuild("extract", extract) if "extract" in methods else None
    if span_alone:
        none = extracted is not None and extracted.settled and not extracted.copied
        cut = "extract" in methods and extracted is None
        return DefenseResult(
            defended.called, defended.honest(), span, None if none else extracted, cut=cut, no_method=none
        )
    failed = extracted is None or not (extracted.result.ok or extracted.undecided)
    # Learning asks Gaussian inputs, in all of space.
    to_learn = "learn" in methods and oracle.facts.domain.is_space and (every or failed)
    learned = defended.rebuild("learn", learn) if to_learn else None
    cut = ("extract" in methods and extracted is None) or (to_learn and learned is None)
    return DefenseResult(defended.called, defended.honest(), span, extracted, learned, cut)


@dataclass(frozen=True)
class _DefendedCopy:
    """One defense on one copy; labels: they alone are left."""

    oracle: Oracle
    yardstick: Oracle
    names: tuple[str, ...]
    last: tuple[str, ...]
    inputs: FloatArray
    own_link: AnswerLink
    labels: bool
    budget: int
    clock: Clock
    rng: Rng

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the defenses without their settings."""
        return tuple(defense_kind(name) for name in self.names)

    @property
    def called(self) -> str:
        """The defense; also what cuts the model's digits, if it turns values into other numbers: these are cut then."""
        other = any(kind in LINKS for kind in self.kinds) and not self.labels
        return ", ".join((*self.names, *(self.last if other else ()))) or NO_DEFENSE

    @property
    def link(self) -> AnswerLink:
        """How an attacker reads the defended answers."""
        made = [LINKS[kind] for kind in self.kinds if kind in LINKS]
        return "identity" if self.labels else made[-1] if made else self.own_link

    def behind(self, oracle: Oracle) -> Oracle:
        """An oracle behind the defense, in the digits of the model; a number format writes them, and comes last."""
        before, written = split_last_defenses(self.names, NUMBER_FORMATS)
        return defend(oracle, *before, *self.last, *written)

    def open(self, link: AnswerLink, allowance: Limit) -> Counting:
        """The defended copy within a limit, with a ledger of its own."""
        defended = self.behind(self.oracle)
        return allowance.of(open_oracle(defended if link == "identity" else Tidied(defended, link), link=link))

    def span(self) -> Span | None:
        """From values; from labels where values do not give it. None without time."""
        clock = Clock(self.clock.share(), 1 if self.labels else 2)
        found = None if self.labels else self.span_by(self.link, clock, labels=False)
        if found is not None and found.ok:
            return found
        by_labels = self.span_by("identity", clock, labels=True)
        return by_labels if found is None or (by_labels is not None and by_labels.ok) else found

    def span_by(self, link: AnswerLink, clock: Clock, *, labels: bool) -> Span | None:
        allowance = Limit(self.budget, clock.share())
        if allowance.seconds == 0:
            return None
        with allowance.running():
            return recover_span(self.open(link, allowance), labels=labels, fine=False, rng=self.rng)

    def rebuild(self, name: str, method: Callable[..., Result]) -> Rebuilt | None:
        """The network that a method finds, and its errors; None without time."""
        allowance = Limit(self.budget, self.clock.share())
        if allowance.seconds == 0:
            return None
        with allowance.running():
            result = method(self.open(self.link, allowance), rng=self.rng).with_log_ratios()
        # Some probabilities are left out; or learning asks far out, where they are certain. Extraction looks for a box
        # in which they are not, and may find one with another seed.
        missing = self.link == "top-k" or (self.link != "identity" and name == "learn")
        return self.compared(Rebuilt(name, result, undecided=allowance.time_up, missing=missing))

    def compared(self, found: Rebuilt) -> Rebuilt:
        """With the errors of its network at the honest inputs, against the values that an attacker would read."""
        if found.result.network is None:
            return found
        if self.labels:  # values are up to scale: labels alone can be compared
            asked = self.behind(self.yardstick).answer(self.inputs)
            labels = labels_of(found.result.network(self.inputs), Kind.VALUES)
            names, places = np.unique(labels_of(asked, Kind.LABELS), return_inverse=True)
            whole = len(names) == max(found.result.network.outputs, 2)
            return replace(found, agreement=float((labels == places).mean()) if whole else None)
        log_ratios = self.link not in ELEMENTWISE_LINKS  # to the first class
        if self.own_link != "identity":
            true = Linked(Tidied(self.yardstick, self.own_link), self.own_link).answer(self.inputs)
        else:
            true = self.yardstick.query(self.inputs)
            true = true[:, 1:] - true[:, :1] if log_ratios else true
        finite = np.isfinite(true).all(axis=1)  # an infinite log-ratio is a class that is certain to the last digit
        if not finite.any():
            return found
        true, values = true[finite], found.result.network(self.inputs)[finite]
        spread = true.std(axis=0)
        errors = np.abs(values - true) / np.where(spread > 0, spread, 1.0)

        def labels_in(values: FloatArray) -> Any:
            whole = np.column_stack([np.zeros(len(values)), values]) if log_ratios else values
            return labels_of(whole, Kind.VALUES)

        same = labels_in(values) == labels_in(true)
        rms, largest = float(np.sqrt(np.mean(errors**2))), float(errors.max())
        return replace(found, error=rms, largest=largest, agreement=float(same.mean()))

    def honest(self) -> HonestCost:
        """Errors of defended answers; NaN where users get answers of another kind.

        Without the noise that users have already: it is no cost of the defense.
        """
        found = honest_cost(defend(self.yardstick, *self.last), self.behind(self.yardstick), self.inputs)
        other = any(kind in OTHER_ANSWERS for kind in self.kinds)
        return replace(found, rms_error=np.nan, max_error=np.nan) if other else found
