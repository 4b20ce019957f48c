"""A credential from an environment variable. It goes into a header and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterable

from reluctant.errors import InvalidInput

__all__ = ["HIDDEN", "Secret", "scrub"]

HIDDEN = "[hidden]"


class Secret:
    """The value of an environment variable that must never be printed, logged or written.

    Its text forms are hidden, it cannot be pickled, and `scrub` takes it out of what a server says.
    """

    __slots__ = ("_value", "name")

    def __init__(self, name: str) -> None:
        value = os.environ.get(name, "").strip()
        if not value or not value.isprintable() or not value.isascii():
            raise InvalidInput.about(
                "auth_env", got=f"'{name}', which is {'no header value' if value else 'not set or empty'}",
                expected="the name of an environment variable that holds the credential", fix=f"export {name}=...",
            )  # fmt: skip
        self.name, self._value = name, value

    def header(self, field: str) -> dict[str, str]:
        """The header that carries it; a bare token in Authorization is sent as Bearer."""
        bare = field.lower() == "authorization" and " " not in self._value
        return {field: f"Bearer {self._value}" if bare else self._value}

    def scrub(self, text: str) -> str:
        """The text without the credential, nor the token in it."""
        return scrub(text, [self._value, *self._value.split()])

    def __repr__(self) -> str:
        return f"Secret({self.name})"

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written anywhere")


SHORTEST_SCRUBBED = 4  # shorter parts, such as a word like 'Key', are no secret and would spoil every text


def scrub(text: str, hidden: Iterable[str]) -> str:
    """The text without what is to be hidden, the longest first."""
    for part in sorted({part for part in hidden if len(part) >= SHORTEST_SCRUBBED}, key=len, reverse=True):
        text = text.replace(part, HIDDEN)
    return text
