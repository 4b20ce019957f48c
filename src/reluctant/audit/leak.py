"""What one defense leaves to those who ask, as data: the span, networks rebuilt from the answers, a trained one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reluctant.audit.closeness import is_close
from reluctant.audit.settling import is_unlucky, settles
from reluctant.defenses import HonestCost
from reluctant.numerics import FloatArray
from reluctant.results import Outcome, Result
from reluctant.span import Span

__all__ = ["NO_DEFENSE", "NO_METHOD", "OF_LABELS", "Leak", "Rebuilt", "narrow_basis"]

BY_MISSING = (Outcome.OUT_OF_REACH, Outcome.NON_FINITE)  # where a link has nothing to read: 0, 1, or not told
IN_WORDS = {"extract": "extraction", "learn": "learning", "train": "training"}
NARROW = 0.25  # of the inputs: training in so few directions of a span pays for finding them
NO_DEFENSE = "none"
OF_LABELS = "from labels"  # evidence of a span: values may show more directions than labels do
IN_VAIN = " (few digits tried in vain)"
NO_METHOD = "no exact method here takes labels"


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

    @property
    def ending(self) -> str:
        """How it ended, and after how many answers."""
        after = "refused after a look at" if self.refused else "after"
        return f"{self}, {after} {self.result.queries:,} answers"

    def __str__(self) -> str:
        ended = "time over" if self.undecided else self.result.outcome.slug.replace("-", " ")
        ended += IN_VAIN if is_unlucky(self.result) and not self.undecided else ""
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
    def student(self) -> dict[str, Any] | None:
        """The trained network as data."""
        return None if self.trained is None else _student_as_data(self.trained, self.span)

    @property
    def ending(self) -> str:
        """How each method ended, in words."""
        if self.no_method:
            return NO_METHOD
        cut = ["not all was tried to its end"] if self.cut else []
        return ", ".join([*map(str, self.tried), *cut]) or "not tried"

    @property
    def ending_in_full(self) -> str:
        """The same with the answers that each method took."""
        return NO_METHOD if self.no_method else "; ".join(each.ending for each in self.tried)

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
            "trained": self.student,
            "stopped": self.stopped,
        }


def _badness(rebuilt: Rebuilt) -> tuple[bool, float]:
    return not rebuilt.result.ok, np.inf if rebuilt.error is None else rebuilt.error


def narrow_basis(span: Span | None) -> FloatArray | None:
    """Directions (k, d) that are worth training in: all that count, and few of those there are."""
    narrow = span is not None and span.ok and 0 < span.rank <= NARROW * span.subspace.dim
    return span.basis if span is not None and narrow else None


def _student_as_data(trained: Rebuilt, span: Span | None) -> dict[str, Any]:
    """The same with the queries for a span that was used, and how it does at inputs like those of its training."""
    measured, used = trained.result.evidence.get("accuracy"), narrow_basis(span) is not None
    error = None if measured is None or measured.of_copy is None else float(np.sqrt(measured.of_copy))
    return trained.to_dict() | {
        "queries": trained.result.queries + (span.queries if span is not None and used else 0),
        "commonest label": trained.commonest,
        "held out error": error,
        "held out labels": None if measured is None else measured.agreement,
        "cut short": trained.cut,
        "as undefended": trained.reused,
    }


def _span_as_data(span: Span) -> dict[str, Any]:
    return {
        "outcome": span.outcome.slug,
        "ok": span.ok,
        "rank": span.rank,
        "angle": span.angle,
        "queries": span.queries,
    }
