"""What is asked of a network before it is called a copy, and what chance leaves open of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reluctant.defenses.defense import MOST_DIGITS
from reluctant.learning.student.student_error import labels_allowed
from reluctant.learning.student.trainer import DIFFERING
from reluctant.percentages import percentage, told_apart
from reluctant.results import Ended, Outcome

__all__ = ["CLOSE", "Closeness", "closeness", "error_words", "is_close", "is_near"]

CLOSE = 1e-2  # of the output's deviation, root mean square: a copy this good is one, verified or not


@dataclass(frozen=True)
class Closeness:
    """Shares of one, of the answers' deviation or of labels: what was seen to differ, at most, and what is allowed.

    alone: what the commonest label alone is right for, where labels decide and few of them could differ.
    """

    seen: float
    most: float
    allowed: float
    labels: bool
    alone: float | None = None

    @property
    def is_open(self) -> bool:
        """True if it is close enough as measured, and may not be by chance."""
        return self.seen <= self.allowed < self.most

    @property
    def lacks(self) -> str:
        """What chance leaves open, beside what is asked of a copy."""
        most, allowed = told_apart(self.most, self.allowed)
        if not self.labels:
            return f"its error may be as large as {most} of the answers' deviation, and {allowed} is asked"
        one = "" if self.alone is None else f", for one label alone is right for {percentage(self.alone)}"
        return f"as many as {most} of labels may differ, and {allowed} is asked{one}"


def is_close(error: float | None) -> bool:
    """True if a copy with this error is one, verified or not."""
    return error is not None and error <= CLOSE


def error_words(error: float) -> str:
    """In as few digits as tell on which side of what is asked it is: 1.0e-02 would be a copy, 1.02e-02 is none."""
    said = (f"{error:.{digits}e}" for digits in range(1, MOST_DIGITS))
    return next((words for words in said if is_close(float(words)) == is_close(error)), f"{error:.{MOST_DIGITS}e}")


def closeness(measured: Mapping[str, Any]) -> Closeness | None:
    """By what `HeldOut.to_dict` has: the network's own error where answers have a size, else its labels."""
    error = measured.get("own") or measured
    if error.get("high") is not None and error.get("error") is not None:
        return Closeness(math.sqrt(error["error"]), math.sqrt(error["high"]), CLOSE, labels=False)
    if measured.get("differing") is None:
        return None
    allowed = labels_allowed(measured["commonest"], DIFFERING)
    alone = measured["commonest"] if allowed < DIFFERING else None
    return Closeness(1 - measured["agreement"], measured["differing"], allowed, labels=True, alone=alone)


def is_near(run: Ended) -> bool:
    """True if a trained network is not called a copy for what chance may hide alone: another run may settle it."""
    measured = run.evidence.get("accuracy") if "training" in run.evidence else None
    found = None if measured is None or run.outcome is not Outcome.NOT_ACCURATE else closeness(measured.to_dict())
    return found is not None and found.is_open
