"""What one defense leaves to those who ask: the span, and the network rebuilt, against an undefended local copy.

The copy stands for the model, so nothing here asks a real target. One who asks knows which defense there is: they undo
a softmax by its link, and where labels alone are left they recover the span from labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

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

__all__ = ["BUDGET", "CLOSE", "METHODS", "NO_DEFENSE", "SECONDS", "Leak", "Rebuilt", "leak", "narrow_basis"]

METHODS = ("span", "extract", "learn", "train")
FROM_LABELS = ("span", "train")  # what works where labels alone are left
IN_WORDS = {"extract": "extraction", "learn": "learning", "train": "training"}
BUDGET = 200_000  # rows for each method: labels take 60 to 150 for each input of each direction
SECONDS = 60.0  # of processor time, for all methods together
NARROW = 0.25  # of the inputs: training in so few directions of a span pays for finding them
CLOSE = 1e-2  # of the output's deviation, root mean square: a copy this good is one, verified or not

# What a defense makes of values, and how one who asks reads it.
LINKS: dict[str, AnswerLink] = {
    "softmax": "softmax",
    "log-softmax": "log-softmax",
    "sigmoid": "sigmoid",
    "top": "top-k",
}
TO_REFERENCE = ("softmax", "log-softmax", "top-k")  # links that leave log-ratios to the first class
NO_DEFENSE = "none"


@dataclass(frozen=True)
class Rebuilt:
    """A network rebuilt from defended answers beside the undefended copy.

    error: root mean square over the inputs, largest: the largest, both relative to the deviation of each output;
    agreement: share of the inputs that get the same label; commonest: what always saying one label gives. None where
    there is no network. undecided: the time was over before the method had ended, whatever its outcome is.
    """

    method: str
    result: Result
    error: float | None = None
    largest: float | None = None
    agreement: float | None = None
    undecided: bool = False
    commonest: float | None = None

    @property
    def cut(self) -> bool:
        """True if a training had fewer rows or steps than it wanted."""
        training = self.result.evidence.get("training")
        return training is not None and training.cut

    @property
    def copied(self) -> bool:
        """True if it is a copy: verified, as accurate as asked for, or measured to be close."""
        return self.result.ok or (self.error is not None and self.error <= CLOSE)

    @property
    def settled(self) -> bool:
        """True if the method ended by itself: not in time, rows, a fault, or a part of the network."""
        return not self.undecided and self.result.outcome.settles

    def __str__(self) -> str:
        ended = "time over" if self.undecided else self.result.outcome.slug.replace("-", " ")
        return f"{IN_WORDS.get(self.method, self.method)}: {ended}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "method": self.method,
            "outcome": self.result.outcome.slug,
            "ok": self.result.ok,
            "error": self.error,
            "largest error": self.largest,
            "labels kept": self.agreement,
            "queries": self.result.queries,
        }


@dataclass(frozen=True)
class Leak:
    """What is left of one defense; parts that were not asked for are None. cut: not all was tried to its end.

    trained: a network trained on the answers. It decides nothing about what is stopped: that is said of methods that
    rebuild the network itself.
    """

    defense: str
    honest: HonestCost
    span: Span | None = None
    extracted: Rebuilt | None = None
    learned: Rebuilt | None = None
    cut: bool = False
    trained: Rebuilt | None = None

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
        """True if every method came to its end and gave no copy, False if one did, None if that is not settled."""
        if any(each.copied for each in self.tried):
            return False
        return True if self.tried and not self.cut and all(each.settled for each in self.tried) else None

    @property
    def ending(self) -> str:
        """How each method ended, in words."""
        cut = ["not all was tried to its end"] if self.cut else []
        return ", ".join([*map(str, self.tried), *cut]) or "not tried"

    @property
    def queries(self) -> int:
        """Rows spent on the rebuilt network, on every method that was tried."""
        return sum(each.result.queries for each in self.tried)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the documented form of a row of the sweep."""
        rebuilt = self.rebuilt
        return {
            "defense": self.defense,
            "honest": {
                "error rms": self.honest.rms_error,
                "error largest": self.honest.max_error,
                "labels kept": self.honest.agreement,
                "inputs": self.honest.rows,
            },
            "span": None if self.span is None else _span_as_data(self.span),
            "rebuilt": None if rebuilt is None else rebuilt.to_dict() | {"queries": self.queries},
            "trained": None if self.trained is None else _student_as_data(self.trained, self.span),
            "stopped": self.stopped,
        }


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
        return _compared(found, self.values(), result.network(self.inputs), self.reference)

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
        return _compared(found, self.values(), network(self.inputs), self.reference)

    def as_probabilities(self, student: Result) -> bool:
        """True if the answers are probabilities, and either the student undid a link or the one who asks, not both."""
        undone = student.evidence["link"] != "identity"
        return undone if self.link == "identity" else self.link == "sigmoid" and not undone

    def by_probabilities(self, found: Rebuilt, values: FloatArray) -> Rebuilt:
        """Beside the answers as they are; of one-hot ones the labels alone."""
        true, said = self.oracle.query(self.inputs), LINK_FUNCTIONS[found.result.evidence["link"]](values)
        compared = _compared(found, true, said, False, Kind.PROBABILITIES)
        sized = found.result.evidence["accuracy"].error is not None
        return compared if sized else replace(compared, error=None, largest=None)

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


def _compared(
    rebuilt: Rebuilt, true: FloatArray, found: FloatArray, reference: bool, kind: Kind = Kind.VALUES
) -> Rebuilt:
    """What the network gives at the inputs beside what it should give."""
    told = np.isfinite(true).all(axis=1)  # an infinite log-ratio is a class that is certain to the last digit
    if not told.any():
        return rebuilt
    true, found = true[told], found[told]
    spread = true.std(axis=0)
    errors = np.abs(found - true) / np.where(spread > 0, spread, 1.0)
    labels = _labels(true, reference, kind)
    same = float((_labels(found, reference, kind) == labels).mean())
    rms, largest = float(np.sqrt(np.mean(errors**2))), float(errors.max())
    return replace(rebuilt, error=rms, largest=largest, agreement=same, commonest=commonest_share(labels))


def _labels(values: FloatArray, reference: bool, kind: Kind) -> Any:
    with_first = np.column_stack([np.zeros(len(values)), values]) if reference else values
    return labels_of(with_first, kind)


def _badness(rebuilt: Rebuilt) -> tuple[bool, float]:
    return not rebuilt.result.ok, np.inf if rebuilt.error is None else rebuilt.error


def narrow_basis(span: Span | None) -> FloatArray | None:
    """Directions (k, d) that are worth training in: all that count, and few of those there are."""
    narrow = span is not None and span.ok and 0 < span.rank <= NARROW * span.subspace.dim
    return span.basis if span is not None and narrow else None


def _student_as_data(trained: Rebuilt, span: Span | None) -> dict[str, Any]:
    """The same with the queries for a span that was used, and how it does at inputs like those of its training."""
    measured, used = trained.result.evidence.get("accuracy"), narrow_basis(span) is not None
    error = None if measured is None or measured.error is None else float(np.sqrt(measured.error))
    return trained.to_dict() | {
        "queries": trained.result.queries + (span.queries if span is not None and used else 0),
        "commonest label": trained.commonest,
        "held out error": error,
        "held out labels": None if measured is None else measured.agreement,
        "cut short": trained.cut,
    }


def _span_as_data(span: Span) -> dict[str, Any]:
    return {
        "outcome": span.outcome.slug,
        "ok": span.ok,
        "rank": span.rank,
        "angle": span.angle,
        "queries": span.queries,
    }
