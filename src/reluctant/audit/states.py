"""How a step of an audit ended, as one word: what others decide by, while the reason beside it is for people."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

__all__ = ["WHY", "State", "state_of"]


class State(StrEnum):
    """stopped: broken off from outside while it ran; not begun: the stop came before it."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    STOPPED = "stopped"
    NOT_BEGUN = "not begun"


WHY = {State.STOPPED: "Stopped from outside while it ran.", State.NOT_BEGUN: "Not begun."}

# As records were written that had no words for a stop: state and reason.
BEFORE = {
    ("failed", "Stopped from outside while it ran."): State.STOPPED,
    ("skipped", "Not begun."): State.NOT_BEGUN,
}


def state_of(step: Mapping[str, Any]) -> State:
    """The state of a step in a record, older ones included."""
    return BEFORE.get((step["state"], step.get("why", "")), State(step["state"]))
