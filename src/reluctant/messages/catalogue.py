"""The one catalogue of text: what each diagnosis says, and what each remedy is for.

Entries are plain English, active voice, one idea a sentence. A text is a template over the fields of its diagnosis; the
text of a remedy has `{call}`, which the edge fills with a Python call, a command line or a form for the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reluctant.messages.diagnosis import Diagnosis, Remedy

__all__ = ["PURPOSES", "TEXTS", "render"]

TEXTS: Mapping[str, str] = {}

PURPOSES: Mapping[str, str] = {
    "read-link": "Read the answers through their link: {call}.",
    "more-digits": "Open the model in float64: {call}.",
    "give-domain": "Give the range of inputs that the target expects: {call}.",
    "train": "Train a network on the answers: {call}.",
    "span-from-labels": "Recover the subspace from labels alone: {call}.",
    "another-seed": "Try another seed: {call}.",
    "more-budget": "Raise the budget: {call}. With a transcript no answer is paid for twice.",
    "one-output": "Look at one output alone: {call}.",
}


def render(diagnosis: Diagnosis, write: Callable[[Remedy], str]) -> str:
    """The text of a diagnosis, then a sentence for each remedy."""
    said = TEXTS[diagnosis.slug].format(**diagnosis.fields)
    tried = [PURPOSES[remedy.purpose].format(call=write(remedy), **remedy.options) for remedy in diagnosis.remedies]
    return " ".join([said, *tried])
