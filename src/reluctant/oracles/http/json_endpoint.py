"""Adapter for any JSON service: a template for the request, a path to the answers in the reply.

A template says where the rows go in a request, and a path says where the answers are in a reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from reluctant.errors import InvalidAnswer, InvalidInput, N, words
from reluctant.numerics import FloatArray
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Facts, Kind, as_answers
from reluctant.oracles.http.inference_protocol import DATATYPES, NUMBER_NAMES
from reluctant.oracles.http.security import shown_request
from reluctant.oracles.http.served_oracle import ServedGradients, ServedOracle
from reluctant.oracles.http.transport import Server, number_list
from reluctant.oracles.keywords import Serving


class JsonEndpointOracle(ServedOracle):
    """Asks a JSON endpoint. `dim` or `shape` must be given."""

    def __init__(
        self,
        server: Server,
        options: Serving,
        shape: tuple[int, ...] | None,
        kind: Kind = Kind.VALUES,
        gradients: ServedGradients | None = None,
    ) -> None:
        if shape is None:
            raise InvalidInput.about(
                "dim", got="None", expected="the number of inputs", fix=words("Give it: {dim}.", dim=N)
            )
        super().__init__(server, gradients)
        self._shape = shape
        self._template = RequestTemplate.of(options.request or "")
        self._path = ReplyPath.of(options.reply or "")
        self._gradient_path = ReplyPath.of("" if gradients is None else gradients.name)
        self._dtype = DATATYPES[options.datatype or "FP64"]
        self.batch = 1 if self._template.single else None
        place = urlsplit(server.shown)
        self._facts = Facts(prod(shape), UNKNOWN_OUTPUTS, self._dtype, kind, name=f"{place.netloc}{place.path}")

    def _reply(self, rows: FloatArray, also: str | None = None) -> Any:
        numbers = rows.astype(self._dtype, copy=False).reshape(-1, *self._shape)
        body = self._template.filled(number_list(numbers[0] if self._template.single else numbers))
        headers = {"Content-Type": "application/json"}
        return self._server.ask("POST", self._server.url, rows=len(rows), body=body, headers=headers).json()

    def _values(self, reply: Any, rows: int, besides: str = "") -> FloatArray:
        answers = as_answers(self._read(reply, self._path), rows, self._facts.outputs)
        if self._facts.outputs == UNKNOWN_OUTPUTS:
            self._facts = replace(self._facts, outputs=answers.shape[1])
        return answers

    def _slopes(self, reply: Any) -> FloatArray:
        return self._read(reply, self._gradient_path)

    def _read(self, reply: Any, path: ReplyPath) -> FloatArray:
        found = path.find(reply)
        try:
            numbers = np.array(found, dtype=np.float64)  # null becomes NaN
        except (TypeError, ValueError) as error:
            raise InvalidAnswer(
                f"target: got {type(found).__name__} at '{path.text}' ({error}), expected numbers. {NUMBER_NAMES}"
            ) from None
        return numbers.reshape(1, -1) if self._template.single else numbers  # of one row


PATH_STEP = re.compile(r"\.?(?P<key>[^.\[\]]+)|\[(?P<index>-?\d+|\*)\]")
ROWS_PLACE, ROW_PLACE = '"$rows"', '"$row"'


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
        places = [(placeholder, text.count(placeholder)) for placeholder in (ROWS_PLACE, ROW_PLACE)]
        if sum(count for _, count in places) != 1:
            raise InvalidInput.about(
                "request",
                got=shown_request(template),
                expected='JSON with "$rows" (or "$row", one row a request) in one place',
            )  # fmt: skip
        placeholder = next(placeholder for placeholder, count in places if count)
        before, after = text.encode().split(placeholder.encode())
        return cls(before, after, single=placeholder == ROW_PLACE)

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
            step = PATH_STEP.match(rest)
            if step is None:
                raise InvalidInput.about("reply", got=repr(text), expected='a path such as "outputs[0].data"')
            index = step["index"]
            steps.append(step["key"] if index is None else None if index == "*" else int(index))
            rest = rest[step.end() :]
        return cls(text, tuple(steps))

    def find(self, data: Any) -> Any:
        """The value there, or an error that says where the path ends."""
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
                f"target: got a reply with {_contents_of(data)} where the path '{self.text}' asks for "
                f"{'a list' if step is None else repr(step)}, expected the answers there."
            ).advised(words("Give another {reply}.")) from None
        return self._find(inner, depth + 1)


def _contents_of(data: Any) -> str:
    if isinstance(data, dict):
        return f"the keys {', '.join(map(str, data))}" if data else "no keys"
    return f"{len(data)} items" if isinstance(data, list) else type(data).__name__
