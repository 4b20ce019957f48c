"""What happened and what to try, as facts: a slug with fields, and remedies that are verbs with options.

Every layer hands on diagnoses; nothing is decided by their text. `reluctant.messages.catalogue` holds the text, and an
edge (Python, the command line, the page of an audit) renders it with its own way to write a remedy down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

__all__ = ["Diagnosis", "Remedy", "as_python"]

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Remedy:
    """One thing to try.

    purpose: its entry in the catalogue ("read-link", "train", "more-digits", ...). verb: the function to call, "open"
    for opening the target otherwise. options: keywords of that call with their values; None stands for a value that
    only the user knows, such as the range of the inputs.
    """

    purpose: str
    verb: str
    options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True)
class Diagnosis:
    """What was found out: the slug of a catalogue entry, the numbers and names it speaks of, what to try."""

    slug: str
    fields: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    remedies: tuple[Remedy, ...] = ()

    def text(self, write: Callable[[Remedy], str]) -> str:
        """The text of the catalogue, with each remedy written down by `write`."""
        from reluctant.messages.catalogue import render

        return render(self, write)

    def __str__(self) -> str:
        return self.text(as_python)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        tried = [{"purpose": r.purpose, "verb": r.verb, "options": dict(r.options)} for r in self.remedies]
        return {"slug": self.slug, "fields": dict(self.fields), "remedies": tried}


VERBS = {
    "open": "rl.open_oracle", "extract": "rl.extract", "learn": "rl.learn", "train": "rl.train_student",
    "span": "rl.recover_span", "audit": "rl.audit", "flip": "rl.flip_sign", "verify": "rl.verify",
}  # fmt: skip


def as_python(remedy: Remedy) -> str:
    """A remedy as a call: `rl.open_oracle(..., link='softmax')`."""
    given = [f"{name}={'...' if value is None else repr(value)}" for name, value in remedy.options.items()]
    return f"{VERBS[remedy.verb]}({', '.join(['...', *given])})"
