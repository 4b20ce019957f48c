"""`Diagnosis` and `Remedy`: a slug with fields, and a verb with options.

Every layer passes diagnoses on, and no layer decides by their text. `reluctant.messages.catalogue` holds the text. An
edge (Python, the command line, the page of an audit) renders it and writes each remedy in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Remedy:
    """One thing to try.

    purpose: its entry in the catalogue ("read-link", "train", "more-digits", ...). verb: the function to call, "open"
    for opening the target in another way. options: keywords of that call with their values, those of opening included;
    None stands for a value that only the user knows, such as the range of the inputs.
    """

    purpose: str
    verb: str
    options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"purpose": self.purpose, "verb": self.verb, "options": dict(self.options)}


@dataclass(frozen=True)
class Diagnosis:
    """What a run or a measurement showed: the slug of a catalogue entry, its numbers and names, what to try."""

    slug: str
    fields: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    remedies: tuple[Remedy, ...] = ()

    def text(self, write: Callable[[Remedy], str] | None = None) -> str:
        """What happened, then a sentence for each remedy, which `write` writes down (by default as a Python call)."""
        from reluctant.messages.grammar import render

        return render(self, write or as_python)

    @property
    def happened(self) -> str:
        """What happened, without anything to try."""
        from reluctant.messages.grammar import happened

        return happened(self)

    def __str__(self) -> str:
        return self.text()

    def without_remedies(self) -> Self:
        """The same facts, for an edge that gives advice of its own."""
        return replace(self, remedies=())

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        remedies = [remedy.to_dict() for remedy in self.remedies]
        return {"slug": self.slug, "fields": dict(self.fields), "remedies": remedies}


VERBS = {
    "open": "rl.open_oracle", "extract": "rl.extract", "learn": "rl.learn", "train": "rl.train_student",
    "span": "rl.recover_span", "audit": "rl.audit", "flip": "rl.flip_sign", "verify": "rl.verify",
}  # fmt: skip


def as_python(remedy: Remedy) -> str:
    """A remedy as a call: `rl.open_oracle(..., link='softmax')`."""
    options = [
        f"{name}={'...' if value is None else repr(value)}"
        for name, value in remedy.options.items()
        if value is not False
    ]
    return f"{VERBS[remedy.verb]}({', '.join(['...', *options])})"
