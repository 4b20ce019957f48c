"""Credentials, sent in one header and hidden everywhere else.

The credential comes from an environment variable. An address is shown without its query and a request without its
values, since a key may be in either. A secret stays hidden in names, records, reports and errors.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from reluctant.errors import InvalidInput
from reluctant.oracles.keywords import is_url

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
    """The text without secrets, the longest first."""
    for part in sorted({part for part in hidden if len(part) >= SHORTEST_SCRUBBED}, key=len, reverse=True):
        text = text.replace(part, HIDDEN)
    return text


ROW_PLACES = ("$rows", "$row")  # of a request: where the rows go


def shown_url(url: str) -> str:
    """Scheme, host and path of an address: a user, a query or a fragment may hold a key."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:  # no address at all
        return HIDDEN
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def shown_target(target: str) -> str:
    """The name of a target: an address as it may be shown, anything else as it is."""
    return shown_url(target) if is_url(target) else target


def shown_command_target(target: str) -> str:
    """The target as an argument of a command, with a mark where something is left to fill in."""
    rest = is_url(target) and ("?" in target or "#" in target)
    return shown_target(target) + (f"?{HIDDEN}" if rest else "")


def shown_request(template: Mapping[str, Any] | str) -> str:
    """A request with its keys and the place of the rows; its other values are hidden."""
    try:
        data = json.loads(template) if isinstance(template, str) else template
        return json.dumps(_hide_values(data))
    except (TypeError, ValueError):
        return HIDDEN


def hidden_values(url: str, template: Mapping[str, Any] | str | None) -> list[str]:
    """Texts of an address's query and of a request that a server may repeat in what it says."""
    query = urlsplit(url).query
    try:
        data = json.loads(template) if isinstance(template, str) else template
    except ValueError:
        data = None
    given = [part.partition("=")[2] or part for part in query.split("&")]
    return [query, *given, *map(unquote_plus, given), *_texts_in(data)]


def _hide_values(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _hide_values(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_hide_values(value) for value in data]
    return data if data is None or isinstance(data, bool) or data in ROW_PLACES else HIDDEN


def _texts_in(data: Any) -> Iterator[str]:
    if isinstance(data, Mapping | list | tuple):
        for value in data.values() if isinstance(data, Mapping) else data:
            yield from _texts_in(value)
    elif isinstance(data, str) and data not in ROW_PLACES:
        yield data
