"""Why a part of the report is empty, in a sentence: from the step that should have filled it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["absences"]

Data = Mapping[str, Any]

# A section, words in the names of the steps that fill it, and what to say where no step says why.
SECTIONS = {
    "recovered": (("extract", "learn"), "No network was recovered from the answers."),
    "search": (("extract", "health"), "No search for creases was made."),
    "function": (("picture", "health"), "No pictures were asked for."),
    "defenses": (("defense", "sweep"), "No defenses were tried: there was no local copy of the model to try them on."),
    "flip": (("flip", "adversarial", "linear"), "No input was given or found from which to try a step."),
    "queries": (("open", "health"), "No query reached the target."),
    "truth": (("truth",), "The true weights are not known here: everything on this page was learned from answers."),
    "limits": ((), "No assumptions were recorded."),
    "names": ((), "No findings were recorded."),
    "interface": (("open", "health"), "The target did not say anything of itself."),
    "steps": ((), "No steps were recorded."),
}


def absences(record: Data) -> dict[str, str]:
    """For every section the sentence that stands in it when there is nothing to show."""
    return {name: _sentence(record, words, otherwise) for name, (words, otherwise) in SECTIONS.items()}


def _sentence(record: Data, words: tuple[str, ...], otherwise: str) -> str:
    reasons = [
        str(step["why"])
        for step in record["steps"]
        if step["state"] != "done" and step.get("why") and any(word in step["step"].lower() for word in words)
    ]
    return " ".join([otherwise, *dict.fromkeys(reasons)]) if reasons else otherwise
