"""Where the rows go in a request, and where the answers are in a reply: a template and a path."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reluctant.errors import InvalidAnswer, InvalidInput
from reluctant.oracles.http.shown import shown_request

__all__ = ["ReplyPath", "RequestTemplate"]

STEP = re.compile(r"\.?(?P<key>[^.\[\]]+)|\[(?P<index>-?\d+|\*)\]")
ROWS, ROW = '"$rows"', '"$row"'


@dataclass(frozen=True)
class RequestTemplate:
    """The text of a request before and after its rows; `single` if it takes one row."""

    before: bytes
    after: bytes
    single: bool

    @classmethod
    def of(cls, template: Mapping[str, Any] | str) -> RequestTemplate:
        """From JSON data, or its text, with "$rows" or "$row" in one place."""
        try:
            data = json.loads(template) if isinstance(template, str) else template
            text = json.dumps(data)
        except (TypeError, ValueError) as error:
            raise InvalidInput.about("request", got=f"text that is none ({error})", expected="JSON") from None
        places = [(placeholder, text.count(placeholder)) for placeholder in (ROWS, ROW)]
        if sum(count for _, count in places) != 1:
            raise InvalidInput.about(
                "request",
                got=shown_request(template),
                expected='JSON with "$rows" (or "$row", one row a request) in one place',
            )  # fmt: skip
        placeholder = next(placeholder for placeholder, count in places if count)
        before, after = text.encode().split(placeholder.encode())
        return cls(before, after, single=placeholder == ROW)

    def filled(self, rows: bytes) -> bytes:
        """The request with the rows, already JSON, in their place."""
        return b"".join((self.before, rows, self.after))


@dataclass(frozen=True)
class ReplyPath:
    """A path into JSON: keys with dots, [3] for one of a list, [*] for each of them; "" for the whole reply."""

    text: str
    steps: tuple[str | int | None, ...]

    @classmethod
    def of(cls, text: str) -> ReplyPath:
        """Read a path such as "outputs[0].data" or "results[*].score"."""
        steps: list[str | int | None] = []
        rest = text.removeprefix("$")
        while rest:
            step = STEP.match(rest)
            if step is None:
                raise InvalidInput.about("reply", got=repr(text), expected='a path such as "outputs[0].data"')
            index = step["index"]
            steps.append(step["key"] if index is None else None if index == "*" else int(index))
            rest = rest[step.end() :]
        return cls(text, tuple(steps))

    def find(self, data: Any) -> Any:
        """What is there, or an error that says where the path ends."""
        return self._find(data, 0)

    def _find(self, data: Any, depth: int) -> Any:
        if depth == len(self.steps):
            return data
        step = self.steps[depth]
        try:
            if step is None:
                each = data.values() if isinstance(data, dict) else data
                return [self._find(item, depth + 1) for item in each]
            inner = data[step]
        except (KeyError, IndexError, TypeError):
            raise InvalidAnswer(
                f"target: got a reply with {_contents(data)} where the path '{self.text}' asks for "
                f"{'a list' if step is None else repr(step)}, expected the answers there. Give another reply=."
            ) from None
        return self._find(inner, depth + 1)


def _contents(data: Any) -> str:
    if isinstance(data, dict):
        return f"the keys {', '.join(map(str, data))}" if data else "no keys"
    return f"{len(data)} items" if isinstance(data, list) else type(data).__name__
