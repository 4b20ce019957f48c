"""The first words of a report: how bad it is, and what leaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reluctant.audit.states import State, state_of
from reluctant.report.student import student_of
from reluctant.report.words import percent
from reluctant.results import UNSETTLED, Outcome

__all__ = ["Leak", "Level", "has_part", "is_opened", "leaks", "level_of"]

Data = Mapping[str, Any]


@dataclass(frozen=True)
class Level:
    """A level in a few words, and its tone."""

    words: str
    tone: str


LEVELS = {
    "exact": Level("Exact copy possible", "bad"),
    "approximate": Level("Close copy possible", "bad"),
    "span": Level("What it looks at is visible", "warn"),
    "nothing": Level("No copy was made", "good"),
    "unknown": Level("Not decided", "calm"),
}


@dataclass(frozen=True)
class Leak:
    """One thing that an interface can leak, and whether it did here."""

    what: str
    state: str
    tone: str


MOST_LABELS = Level("No close copy was made, but most labels can be copied", "warn")
PART = Level("Part of it copied, the rest not decided", "warn")


def level_of(record: Data) -> Level:
    """The level of the verdict; one without a copy is no good news while something else leaks."""
    if not is_opened(record):
        return replace(LEVELS["unknown"], words="Not opened")
    if record["verdict"]["level"] == "unknown" and has_part(record):
        return PART
    level, student = LEVELS[record["verdict"]["level"]], student_of(record)
    if level.tone == "good" and student is not None and student.telling:
        return MOST_LABELS
    if level == LEVELS["span"] and student is not None and student.telling:
        return replace(level, words=f"{level.words}, and most labels can be copied")
    return replace(level, tone="warn") if level.tone == "good" and record["verdict"]["leaks"] else level


def is_opened(record: Data) -> bool:
    """False where the target could not even be opened: there is nothing to show then."""
    return not any(step["step"] == "open" and state_of(step) is State.FAILED for step in record["steps"])


def has_part(record: Data) -> bool:
    """True if neurons were found and confirmed where there is no copy of the whole network."""
    return bool(record.get("part") and record["part"]["confirmed"])


# What can leak: its name in the verdict, the parts of the record that would have shown it, its words.
LEAKS = (
    ("extractable", ("extraction",), "Exact copy"),
    ("approximable", ("learning", "extraction", "training"), "Close copy"),
    ("span", ("span",), "Directions it looks at"),
    ("flippable", ("flip",), "Flip by one small step"),
)


def leaks(record: Data) -> list[Leak]:
    """Each kind of leak: found, not found, not settled or not tried."""
    return [Leak(words, *_state(record, name, parts)) for name, parts, words in LEAKS]


def _state(record: Data, name: str, parts: tuple[str, ...]) -> tuple[str, str]:
    if name in record["verdict"]["leaks"]:
        return "yes", "bad"
    if name == "extractable" and has_part(record):
        return "a part of it", "warn"
    student = student_of(record)
    if name == "approximable" and student is not None and student.telling:
        return f"trained: {percent(student.labels)} of labels", "warn"
    found = [record[part] for part in parts if record.get(part)]
    if not found:
        return _untried(record, name, parts), "calm"
    if name == "span" and found[0]["ok"]:
        return "all of them", "calm"
    unsettled = name in record["verdict"].get("unsettled", ()) or any(each["outcome"] in UNSETTLED for each in found)
    if name == "flippable" and found[0]["ok"]:
        return ("by a large one so far", "calm") if unsettled else ("by a large one", "good")
    if found[0]["outcome"] == Outcome.FLAT.slug:
        return "no gradient here", "calm"
    return ("not settled", "calm") if unsettled else ("not found", "good")


def _untried(record: Data, name: str, parts: tuple[str, ...]) -> str:
    """Nothing was found: a step that broke off was tried all the same, one that was not reached is another matter.

    What was not tried and yet is settled gives the methods nothing to work with.
    """
    steps = [step for step in record["steps"] if step["step"] in parts]
    states = {state_of(step) for step in steps}
    if states & {State.FAILED, State.STOPPED}:
        return "broken off"
    if State.NOT_BEGUN in states:
        return "not begun"
    return "not tried" if name in record["verdict"].get("unsettled", (name,)) else "no method here"
