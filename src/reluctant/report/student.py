"""A network trained on the answers that is not close enough to be called a copy, and is no good news either."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reluctant.audit.leak import CLOSE
from reluctant.learning.student.driver import DIFFERING
from reluctant.report.words import count, percent, size

__all__ = ["Student", "student_of"]

Data = Mapping[str, Any]

TELLING = 0.5  # of the labels that the commonest one alone gets wrong: who gives so many of them has learned something


@dataclass(frozen=True)
class Student:
    """Its shape, the share of labels it gives, and what one label alone would give; the verdict has its error."""

    shape: str
    queries: int
    labels: float
    alone: float
    cut: bool
    lacks: str = ""

    @property
    def telling(self) -> bool:
        """True if it gives many more labels than one label alone."""
        return self.labels - self.alone >= TELLING * (1 - self.alone)

    @property
    def same(self) -> str:
        """Equal labels, beside those of the commonest one."""
        return f"{percent(self.labels)} of labels (one label alone: {percent(self.alone)})"

    @property
    def sentence(self) -> str:
        """What it gives, and that this is not called a copy."""
        cut = " Its training was cut short." if self.cut else ""
        lacks = f": {self.lacks}" if self.lacks else ""
        return (
            f"Training: a network of {self.shape}, trained on {count(self.queries)} answers, gives {self.same} at "
            f"inputs that it was not trained on. That is not close enough to be called a copy here{lacks}.{cut}"
        )


def _lacks(measured: Data) -> str:
    """What chance leaves open, beside what is asked of a copy."""
    high = (measured.get("own") or measured).get("high")
    if high is not None:
        return (
            f"its error may be as large as {size(math.sqrt(high))} of the answers' deviation, and {CLOSE:.0%} is asked"
        )
    if measured.get("differing") is None:
        return ""
    return f"as many as {percent(measured['differing'])} of labels may differ, and {DIFFERING:.0%} is asked"


def student_of(record: Data) -> Student | None:
    """The trained network of a record without a copy; None where there is none."""
    training = record.get("training")
    if not training or not training.get("network") or record.get("recovered"):
        return None
    evidence = training["evidence"]
    measured, how = evidence.get("accuracy"), evidence.get("training") or {}
    if not measured or measured.get("agreement") is None:
        return None
    return Student(
        "-".join(map(str, training["network"]["widths"])), training["queries"], measured["agreement"],
        measured["commonest"], bool(how.get("short") or how.get("hurried")), _lacks(measured),
    )  # fmt: skip
