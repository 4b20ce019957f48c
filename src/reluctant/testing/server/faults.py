"""What can go wrong with a question to a served model, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

__all__ = ["Fault", "Schedule", "at", "every"]


class Fault(StrEnum):
    """What can go wrong with one question."""

    DROP = "the connection is closed before anything is computed"
    DROP_AFTER = "the rows are computed, then the connection is closed"
    BUSY = "503 with Retry-After"
    LIMITED = "429 with Retry-After"
    ERROR = "500"
    TRUNCATE = "the reply breaks off in the middle"
    GARBLE = "the reply is whole, but no JSON"
    SHORT = "fewer answers than rows"
    DUPLICATE = "the reply is sent twice"
    STALE = "the reply to an earlier question is sent"
    NAN = "the first answer is NaN"
    SLOW = "the reply comes late"
    TRICKLE = "the reply comes byte by byte"


Schedule = Callable[[int], "Fault | None"]


def every(period: int, *faults: Fault) -> Schedule:
    """These faults in turn, one every `period` questions, not at the first."""
    return lambda i: faults[(i // period) % len(faults)] if i % period == period - 1 else None


def at(faults: Mapping[int, Fault]) -> Schedule:
    """Faults by the number of the question."""
    return faults.get
