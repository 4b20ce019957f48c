"""Why a part of the report is empty, in a sentence: from the step that should have filled it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reluctant.audit.states import WHY, State, state_of
from reluctant.report.levels import has_part
from reluctant.report.sentences import also_found
from reluctant.report.words import count

__all__ = ["absences"]

Data = Mapping[str, Any]

# A section, the steps that fill it, and what to say before their reasons.
SECTIONS = {
    "recovered": (("open", "extraction", "learning", "training"), "No network was recovered from the answers."),
    "search": (("open", "extraction"), "There is no search for creases to show."),
    "function": (("open", "line", "plane", "errors"), "There is nothing to draw."),
    "defenses": (("open", "defenses"), "No defenses were tried."),
    "flip": (("open", "flip", "linearity"), "No step was tried."),
    "queries": (("open", "health"), "No query reached the target."),
    "truth": (("open", "truth"), "The copy was not compared with true weights."),
    "limits": ((), "No assumptions were recorded."),
    "names": ((), "No findings were recorded."),
    "interface": (("open", "health"), "Nothing is known of the interface."),
    "steps": ((), "No steps were recorded."),
}


NO_COPY = "There is no copy to compare with true weights."
BROKEN_OFF = "The audit was stopped while this was under way."
NOT_DRAWN = "The method that found the copy asks all over input space; there is no search along one line to draw."


def absences(record: Data) -> dict[str, str]:
    """For every section the sentence that stands in it when there is nothing to show."""
    said = " ".join(also_found(record))  # stands in the first section anyway
    found = {
        name: _stopped(record, steps) or _sentence(record, steps, first, "")
        for name, (steps, first) in SECTIONS.items()
    }
    steps, first = SECTIONS["recovered"]
    if record.get("recovered"):
        found["search"] = NOT_DRAWN
    elif not has_part(record):
        found["truth"] = NO_COPY
    first, stopped = _part(record) or first, _stopped(record, steps)
    return found | {"recovered": f"{first} {stopped}" if stopped else _sentence(record, steps, first, said)}


def _stopped(record: Data, steps: tuple[str, ...]) -> str:
    """What a stop from outside did to these steps, which is all there is to say of them."""
    states = [state_of(step) for step in record["steps"] if step["step"] in steps]
    return BROKEN_OFF if State.STOPPED in states else WHY[State.NOT_BEGUN] if State.NOT_BEGUN in states else ""


def _part(record: Data) -> str:
    """What there is of the network, where there is no whole one."""
    if not has_part(record):
        return ""
    part = record["part"]
    return (
        f"No whole network was recovered, but a part: {count(part['neurons'])} neurons of its first layer. The target "
        f"was seen to bend at {count(part['confirmed'])} of them ({count(part['weights'])} weights and biases)."
    )


def _sentence(record: Data, steps: tuple[str, ...], first: str, said: str) -> str:
    """Reasons of the steps that did not run; of those that ran without result, what they say themselves."""
    named = [step for step in record["steps"] if step["step"] in steps and step.get("why")]
    tried = [step for step in named if step["why"] not in said]
    reasons = [str(step["why"]) for step in tried if state_of(step) is not State.DONE]
    reasons = reasons or [str(step["why"]) for step in tried]
    return " ".join([first, *dict.fromkeys(reasons)])
