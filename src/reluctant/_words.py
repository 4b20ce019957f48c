"""Messages in parts: text, and the keywords of the library that each edge writes in its own way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from string import Formatter
from typing import Any, Self


class Placeholder(str):
    """A value that only the user knows, in a message."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


N, LOW, HIGH = Placeholder("N"), Placeholder("low"), Placeholder("high")


@dataclass(frozen=True)
class Argument:
    """An argument of the library, named in a message."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Option:
    """A keyword of the library in a message, with its value if it has one."""

    name: str
    value: Any = None

    def __str__(self) -> str:
        return f"{self.name}={'' if self.value is None else repr(self.value)}"


class Words(str):
    """A message in parts: text, and the arguments, keywords and diagnoses between it.

    As a string these are written as in Python; another edge writes them in its own way.
    """

    parts: tuple[Any, ...]

    def __new__(cls, *parts: Any) -> Self:
        flat = [each for part in parts for each in (part.parts if isinstance(part, Words) else (part,))]
        made = super().__new__(cls, "".join(map(str, flat)))
        made.parts = tuple(each for each in flat if each != "")
        return made

    def written(self, write: Callable[[Any], str]) -> str:
        """The message, with every part that is not text as `write` gives it."""
        return "".join(part if isinstance(part, str) else write(part) for part in self.parts)

    def with_text(self, change: Callable[[str], str]) -> Words:
        """The message with its text changed, part by part."""
        return Words(*(change(part) if isinstance(part, str) else part for part in self.parts))


def words(template: str, **values: Any) -> Words:
    """Words with a keyword for each `{name}` of the template, and these values of them."""
    parts: list[Any] = []
    for text, name, _, _ in Formatter().parse(template):
        parts += [text] if name is None else [text, Option(name, values.get(name))]
    return Words(*parts)
