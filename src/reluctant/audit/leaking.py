"""Try what one defense leaves of an undefended local copy: the span, and the network rebuilt.

The copy stands for the model, so nothing here asks a real target. One who asks knows which defense there is: they undo
a softmax by its link, and where labels alone are left they recover the span from labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reluctant.audit.comparing import compared
from reluctant.audit.leak import NO_DEFENSE, Leak, Rebuilt, narrow_basis
from reluctant.audit.limits import Allowance, Clock
from reluctant.defenses import HonestCost, defend, honest_cost
from reluctant.defenses.disclosure import labels_of
from reluctant.extraction import extract
from reluctant.learning import learn
from reluctant.learning.student import FEWEST, ROWS, commonest_share, rows_like, train_student
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Counting, Kind, Oracle, open_oracle
from reluctant.oracles.link import AnswerLink, Linked
from reluctant.oracles.network import LINK_FUNCTIONS
from reluctant.results import Result
from reluctant.span import Span, recover_span

__all__ = ["BUDGET", "METHODS", "SECONDS", "leak"]

METHODS = ("span", "extract", "learn", "train")
FROM_LABELS = ("span", "train")  # what works where labels alone are left
BUDGET = 200_000  # rows for each method: labels take 60 to 150 for each input of each direction
SECONDS = 60.0  # of processor time, for all methods together

# What a defense makes of values, and how one who asks reads it.
LINKS: dict[str, AnswerLink] = {
    "softmax": "softmax",
    "log-softmax": "log-softmax",
    "sigmoid": "sigmoid",
    "top": "top-k",
}
TO_REFERENCE = ("softmax", "log-softmax", "top-k")  # links that leave log-ratios to the first class


def leak(
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
    rng: Rng = 0,
) -> Leak:
    """Try what one defense leaves of a local copy.

    Arguments:
        oracle: the undefended copy, as the model answers.
        defense: names as `defend` takes them, the first next to the model; none: the copy as it is.
        inputs: honest inputs (n, d), on which costs and errors are measured.
        link: what undoes the copy's own answers, where it answers probabilities.
        budget: rows that each method may ask.
        seconds: processor time of all methods together, None for no limit; what one does not need is left to the next.
        methods: which to try, of "span", "extract", "learn", "train".
        every: learn also where extraction succeeded, or took too long; try all on labels, which refuse them.
        hidden: hidden widths of a trained network; if not given, the best of a few shapes.
        span: the one behind this defense, where it is known and not to be tried.
        rng: seed of all random choices.
    """
    names = (defense,) if isinstance(defense, str) else tuple(defense)
    left = FROM_LABELS if _only_labels(oracle, names) and not every else METHODS
    methods = [name for name in methods if name in left]
    cell = _Cell(oracle, names, inputs, link, budget, Clock(seconds, len(methods)), rng)
    span = cell.span() if "span" in methods else span
    extracted = cell.rebuild("extract", extract) if "extract" in methods else None
    open_ = extracted is None or not (extracted.result.ok or extracted.undecided)
    wanted = "learn" in methods and cell.learnable and (every or open_)
    learned = cell.rebuild("learn", learn) if wanted else None
    cut = ("extract" in methods and extracted is None) or (wanted and learned is None)
    trained = cell.train(hidden, span) if "train" in methods else None
    return Leak(", ".join(names) or NO_DEFENSE, cell.honest(), span, extracted, learned, cut, trained)


@dataclass(frozen=True)
class _Cell:
    """One defense on one copy."""

    oracle: Oracle
    names: tuple[str, ...]
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
    def labels(self) -> bool:
        """True if labels alone are left."""
        return _only_labels(self.oracle, self.names)

    @property
    def link(self) -> AnswerLink:
        """How one who asks reads the defended answers."""
        made = [LINKS[kind] for kind in self.kinds if kind in LINKS]
        return "identity" if self.labels else made[-1] if made else self.own_link

    @property
    def learnable(self) -> bool:
        """Learning looks at Gaussian inputs, in all of space."""
        return self.oracle.facts.domain.is_space

    def open(self, link: AnswerLink, allowance: Allowance) -> Counting:
        """The defended copy as it is asked, with a count of its own."""
        return allowance.of(open_oracle(defend(self.oracle, *self.names), link=link))

    def span(self) -> Span | None:
        """From values; where they do not give it, from the labels they stand for. None if there is no time for it."""
        clock = Clock(self.clock.share(), 1 if self.labels else 2)
        found = None if self.labels else self.span_by(self.link, clock, labels=False)
        if found is not None and found.ok:
            return found
        by_labels = self.span_by("identity", clock, labels=True)
        return by_labels if found is None or (by_labels is not None and by_labels.ok) else found

    def span_by(self, link: AnswerLink, clock: Clock, *, labels: bool) -> Span | None:
        allowance = Allowance(self.budget, clock.share())
        if allowance.seconds == 0:
            return None
        with allowance.running():
            return recover_span(self.open(link, allowance), labels=labels, fine=False, rng=self.rng)

    def rebuild(self, name: str, method: Callable[..., Result]) -> Rebuilt | None:
        """None if there is no time for it."""
        allowance = Allowance(self.budget, self.clock.share())
        if allowance.seconds == 0:
            return None
        with allowance.running():
            result = method(self.open(self.link, allowance), rng=self.rng)
        found = Rebuilt(name, result, undecided=allowance.time_up)
        if result.network is None:
            return found
        return compared(found, self.values(), result.network(self.inputs), self.reference)

    def train(self, hidden: Sequence[int] | None, span: Span | None) -> Rebuilt | None:
        """A network trained on the defended answers as they are, inside a span that is much smaller than all inputs.

        None if there is no time for it, or hardly any rows.
        """
        seconds, most = self.clock.share(), min(ROWS, self.budget)
        if seconds == 0 or most < FEWEST:
            return None
        rows = rows_like(self.inputs, self.oracle.facts.domain, most, as_generator(self.rng).spawn(1)[0])
        result = train_student(
            defend(self.oracle, *self.names), rows=most, hidden=hidden, inputs=rows, span=narrow_basis(span),
            seconds=seconds, rng=self.rng,
        )  # fmt: skip
        found = Rebuilt("train", result)
        if result.network is None:
            return found
        if self.labels:
            return self.labelled(found, result.network(self.inputs))
        if self.as_probabilities(result):
            return self.by_probabilities(found, result.network(self.inputs))
        network = result.network.log_ratios() if self.reference else result.network
        return compared(found, self.values(), network(self.inputs), self.reference)

    def as_probabilities(self, student: Result) -> bool:
        """True if the answers are probabilities, and either the student undid a link or the one who asks, not both."""
        undone = student.evidence["link"] != "identity"
        return undone if self.link == "identity" else self.link == "sigmoid" and not undone

    def by_probabilities(self, found: Rebuilt, values: FloatArray) -> Rebuilt:
        """Beside the answers as they are; of one-hot ones the labels alone."""
        true, said = self.oracle.query(self.inputs), LINK_FUNCTIONS[found.result.evidence["link"]](values)
        beside = compared(found, true, said, False, Kind.PROBABILITIES)
        sized = found.result.evidence["accuracy"].error is not None
        return beside if sized else replace(beside, error=None, largest=None)

    def labelled(self, found: Rebuilt, values: FloatArray) -> Rebuilt:
        """Of a network trained on labels: how often it gives the same one."""
        codes = np.asarray(found.result.evidence["labels"])
        true = labels_of(self.oracle.query(self.inputs), self.oracle.facts.kind)
        same = codes[values.argmax(axis=1)] == true
        return replace(found, agreement=float(same.mean()), commonest=commonest_share(true))

    @property
    def reference(self) -> bool:
        """True if what is rebuilt are log-ratios to the first class."""
        return self.link in TO_REFERENCE

    def values(self) -> FloatArray:
        """What the rebuilt network should give at the inputs."""
        if self.own_link != "identity":
            return Linked(self.oracle, self.own_link).answer(self.inputs)
        values = self.oracle.query(self.inputs)
        return values[:, 1:] - values[:, :1] if self.reference else values

    def honest(self) -> HonestCost:
        """Against the answers before the defense; where users get answers of another kind there is no error to tell."""
        found = honest_cost(self.oracle, defend(self.oracle, *self.names), self.inputs)
        other = any(LINKS.get(kind) == "log-softmax" for kind in self.kinds)  # values too, but of something else
        return replace(found, rms_error=np.nan, max_error=np.nan) if other else found


def _kinds(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.partition(",")[0].partition("=")[0].strip() for name in names)


def _only_labels(oracle: Oracle, names: Sequence[str]) -> bool:
    return "labels" in _kinds(names) or oracle.facts.kind is Kind.LABELS
