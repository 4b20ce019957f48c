"""The trial of one defense on a local copy: recover its span and rebuild its network.

The copy stands for the model, so nothing here asks a real target. One who asks knows which defense there is: they undo
a softmax by its link, and where labels alone are left they recover the span from labels. Digits that the model does not
give are cut after the defense: what it makes of values is made of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reluctant.audit.defense_result import NO_DEFENSE, OF_LABELS, Beside, DefenseResult, Rebuilt, narrow_basis
from reluctant.audit.target_view import Tidied
from reluctant.defenses import HonestCost, defend, honest_cost
from reluctant.defenses.registry import LESS_TO_ASK, NUMBER_FORMATS, defense_kind, split_last_defenses
from reluctant.extraction import extract
from reluctant.learning import learn
from reluctant.learning.student import FEWEST, ROWS, rows_like, train_student
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Counting, Kind, Oracle, open_oracle
from reluctant.oracles.ledger import Clock, Limit
from reluctant.oracles.links import AnswerLink
from reluctant.results import Result
from reluctant.span import Span, recover_span

METHODS = ("span", "extract", "learn", "train")
FROM_LABELS = ("span", "train")  # what works where labels alone are left
BUDGET = 200_000  # rows for each method: labels take 60 to 150 for each input of each direction
SECONDS = 60.0  # of processor time, for all methods together
KEPT_FOR_TRAINING = 0.5  # of it: the other methods may take the rest and no more

# What a defense makes of values, and how one who asks reads it.
LINKS: dict[str, AnswerLink] = {
    "softmax": "softmax",
    "log-softmax": "log-softmax",
    "sigmoid": "sigmoid",
    "top": "top-k",
}
OTHER_ANSWERS = ("log-softmax", "top")  # of the same kind or shape as before, and yet of something else, or less of it
HARDLY = 0.1  # of a network's error: answers that differ by less lead to one with the same error


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
    hidden: Sequence[int] | None = None,
    span: Span | None = None,
    yardstick: Oracle | None = None,
    last: Sequence[str] = (),
    first: Rebuilt | None = None,
    rng: Rng = 0,
) -> DefenseResult:
    """Try what one defense leaves of a local copy.

    Arguments:
        oracle: the undefended copy, before the model's own digits are cut.
        defense: names as `defend` takes them, the first next to the model; none: the copy as it is.
        inputs: honest inputs (n, d), on which costs and errors are measured.
        link: what undoes the copy's own answers, where it answers probabilities.
        budget: rows that each method may ask.
        seconds: processor time of all methods together, None for no limit; what one does not need is left to the next,
            and half of it is kept for training.
        methods: which to try, of "span", "extract", "learn", "train".
        every: learn also where extraction succeeded, or took too long; try all on labels, which refuse them.
        hidden: hidden widths of a trained network; if not given, the best of a few shapes.
        span: the one behind this defense, where it is known and not to be tried.
        yardstick: the same copy with all its digits, which networks are held against; if not given, the copy.
        last: what cuts the model's digits, as names of defenses; it comes after the defense.
        first: the network trained without a defense; it is taken where answers hardly differ from those it knows.
        rng: seed of all random choices.
    """
    names = (defense,) if isinstance(defense, str) else tuple(defense)
    no_method = _only_labels(oracle, names) and not every and "extract" in methods
    left = FROM_LABELS if _only_labels(oracle, names) and not every else METHODS
    methods = [name for name in methods if name in left]
    whole, kept = Clock(seconds, 1), KEPT_FOR_TRAINING if "train" in methods else 0.0
    clock = Clock(None if seconds is None else (1 - kept) * seconds, len(set(methods) - {"train"}))
    cell = _Cell(oracle, yardstick or oracle, names, tuple(last), inputs, link, budget, clock, rng)
    span = cell.span() if "span" in methods else span
    extracted, learned, cut = cell.rebuild_all(methods, every)
    trained = cell.train(hidden, span, whole.left, first) if "train" in methods else None
    return DefenseResult(cell.called, cell.honest(), span, extracted, learned, cut, trained, no_method)


@dataclass(frozen=True)
class _Cell:
    """One defense on one copy."""

    oracle: Oracle
    yardstick: Oracle
    names: tuple[str, ...]
    last: tuple[str, ...]
    inputs: FloatArray
    own_link: AnswerLink
    budget: int
    clock: Clock
    rng: Rng

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the defenses without their settings."""
        return _kinds(self.names)

    @property
    def called(self) -> str:
        """The defense, with the digits of what it makes of values: of other numbers they are other digits than now."""
        other = any(kind in LINKS for kind in self.kinds) and not self.labels
        return ", ".join((*self.names, *(self.last if other else ()))) or NO_DEFENSE

    @property
    def defended(self) -> Oracle:
        """The copy behind the defense, in the digits of the model."""
        return self.behind(self.oracle)

    def behind(self, oracle: Oracle) -> Oracle:
        """Any other behind the same: a number format is how the digits that are left are written."""
        before, written = split_last_defenses(self.names, NUMBER_FORMATS)
        return defend(oracle, *before, *self.last, *written)

    @property
    def labels(self) -> bool:
        """True if labels alone are left."""
        return _only_labels(self.oracle, self.names)

    @property
    def link(self) -> AnswerLink:
        """How one who asks reads the defended answers."""
        made = [LINKS[kind] for kind in self.kinds if kind in LINKS]
        return "identity" if self.labels else made[-1] if made else self.own_link

    @property
    def beside(self) -> Beside:
        """What networks are held against."""
        return Beside(self.yardstick, self.inputs, self.own_link, self.link, self.labels)

    @property
    def learnable(self) -> bool:
        """Learning looks at Gaussian inputs, in all of space."""
        return self.oracle.facts.domain.is_space

    def open(self, link: AnswerLink, allowance: Limit) -> Counting:
        """The defended copy as it is asked, with a count of its own."""
        asked = self.defended if link == "identity" else Tidied(self.defended, link)
        return allowance.of(open_oracle(asked, link=link))

    def span(self) -> Span | None:
        """From values; where they do not give it, from the labels they stand for. None if there is no time for it."""
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
            found = recover_span(self.open(link, allowance), labels=labels, fine=False, rng=self.rng)
        return replace(found, evidence={**found.evidence, OF_LABELS: labels})

    def rebuild_all(self, methods: Sequence[str], every: bool) -> tuple[Rebuilt | None, Rebuilt | None, bool]:
        """By extraction and, where that did not succeed, by learning; True if there was no time for one of them."""
        extracted = self.rebuild("extract", extract) if "extract" in methods else None
        open_ = extracted is None or not (extracted.result.ok or extracted.undecided)
        wanted = "learn" in methods and self.learnable and (every or open_)
        learned = self.rebuild("learn", learn) if wanted else None
        return extracted, learned, ("extract" in methods and extracted is None) or (wanted and learned is None)

    def rebuild(self, name: str, method: Callable[..., Result]) -> Rebuilt | None:
        """None if there is no time for it."""
        allowance = Limit(self.budget, self.clock.share())
        if allowance.seconds == 0:
            return None
        with allowance.running():
            result = method(self.open(self.link, allowance), rng=self.rng).with_log_ratios()
        found = Rebuilt(name, result, undecided=allowance.time_up, missing=self.misses(name))
        return self.beside.rebuilt(found)

    def misses(self, name: str) -> bool:
        """True if values that a method has to read are not told, whatever it asks.

        Some probabilities are left out; or it looks far out, where they are certain. Extraction looks for a box in
        which they are not, and may find one with another seed.
        """
        return self.link == "top-k" or (self.link != "identity" and name == "learn")

    def train(
        self, hidden: Sequence[int] | None, span: Span | None, seconds: float | None, first: Rebuilt | None
    ) -> Rebuilt | None:
        """A network trained on the defended answers as they are, inside a span that is much smaller than all inputs.

        The first one again where answers hardly differ. None if there is no time for it, or hardly any rows.
        """
        basis, most = narrow_basis(span), min(ROWS, self.budget)
        if first is not None and first.narrow == (basis is not None) and self.hardly_differs(first):
            return replace(first, reused=True)
        if seconds == 0 or most < FEWEST:
            return None
        rows = rows_like(self.inputs, self.oracle.facts.domain, most, as_generator(self.rng).spawn(1)[0])
        result = train_student(
            self.defended, rows=most, hidden=hidden, inputs=rows, span=basis,
            seconds=seconds, rng=self.rng,
        )  # fmt: skip
        return self.beside.trained(Rebuilt("train", result, narrow=basis is not None))

    def hardly_differs(self, first: Rebuilt) -> bool:
        """True if what the defense changes in the answers is far below what a network without it is off by."""
        accuracy, changed = first.result.evidence.get("accuracy"), self.honest().rms_error
        error = None if accuracy is None else accuracy.of_copy  # of the answers, not of what a link makes of them
        as_often = bool(self.names) and not LESS_TO_ASK.intersection(self.kinds)
        return as_often and error is not None and changed <= HARDLY * np.sqrt(error)

    def honest(self) -> HonestCost:
        """Against the answers before the defense; where users get answers of another kind there is no error to tell.

        Without the noise that users have already: it is no cost of the defense.
        """
        now = defend(self.yardstick, *self.last)
        found = honest_cost(now, self.behind(self.yardstick), self.inputs)
        other = any(kind in OTHER_ANSWERS for kind in self.kinds)
        return replace(found, rms_error=np.nan, max_error=np.nan) if other else found


def _kinds(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(defense_kind(name) for name in names)


def _only_labels(oracle: Oracle, names: Sequence[str]) -> bool:
    return "labels" in _kinds(names) or oracle.facts.kind is Kind.LABELS
