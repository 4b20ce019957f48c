"""What may be shown of how a served model is asked: an address without its query, a request without its values.

A key may stand in either. What is hidden here stays hidden in names, records, reports and errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from reluctant.oracles.http.options import is_url
from reluctant.oracles.http.secret import HIDDEN

__all__ = ["hidden_values", "shown_command_target", "shown_request", "shown_target", "shown_url"]

PLACES = ("$rows", "$row")  # of a request: where the rows go


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
        return json.dumps(_without_values(data))
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
    return [query, *given, *map(unquote_plus, given), *_texts(data)]


def _without_values(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _without_values(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_without_values(value) for value in data]
    return data if data is None or isinstance(data, bool) or data in PLACES else HIDDEN


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, Mapping | list | tuple):
        for value in data.values() if isinstance(data, Mapping) else data:
            yield from _texts(value)
    elif isinstance(data, str) and data not in PLACES:
        yield data
