"""Adapter for any service that takes JSON and answers JSON: a request template and the path of the answers."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from urllib.parse import urlsplit

import numpy as np

from reluctant.errors import InvalidAnswer, InvalidInput
from reluctant.numerics import FloatArray
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Facts, Kind, Oracle
from reluctant.oracles.checks import as_answers
from reluctant.oracles.http.connection import Server
from reluctant.oracles.http.json_path import ReplyPath, RequestTemplate
from reluctant.oracles.http.json_text import number_list
from reluctant.oracles.http.options import ServedOptions
from reluctant.oracles.http.tensors import DATATYPES, NUMBER_NAMES

__all__ = ["JsonEndpointOracle"]


class JsonEndpointOracle(Oracle):
    """Asks a JSON endpoint; one call of `answer` is one request. `dim` or `shape` must be given."""

    def __init__(
        self, server: Server, options: ServedOptions, shape: tuple[int, ...] | None, kind: Kind = Kind.VALUES
    ) -> None:
        if shape is None:
            raise InvalidInput.about(
                "dim", got="None", expected="the number of inputs", fix="Give it: dim=N (--dim N)."
            )
        self._server, self._shape = server, shape
        self._template = RequestTemplate.of(options.request or "")
        self._path = ReplyPath.of(options.reply or "")
        self._dtype = DATATYPES[options.datatype or "FP64"]
        self.batch = 1 if self._template.single else None
        place = urlsplit(server.shown)
        self._facts = Facts(prod(shape), UNKNOWN_OUTPUTS, self._dtype, kind, name=f"{place.netloc}{place.path}")

    @property
    def facts(self) -> Facts:
        """Dimension as given; outputs once they are known. A served model may change: it has no identity."""
        return self._facts

    def answer(self, rows: FloatArray) -> FloatArray:
        """One request."""
        numbers = rows.astype(self._dtype, copy=False).reshape(-1, *self._shape)
        body = self._template.filled(number_list(numbers[0] if self._template.single else numbers))
        reply = self._server.ask(
            "POST", self._server.url, rows=len(rows), body=body, headers={"Content-Type": "application/json"}
        )
        answers = as_answers(self._read(self._path.find(reply.json())), len(rows), self._facts.outputs)
        if self._facts.outputs == UNKNOWN_OUTPUTS:
            self._facts = replace(self._facts, outputs=answers.shape[1])
        return answers

    def _read(self, found: object) -> FloatArray:
        try:
            numbers = np.array(found, dtype=np.float64)  # null becomes NaN
        except (TypeError, ValueError) as error:
            raise InvalidAnswer(
                f"target: got {type(found).__name__} at '{self._path.text}' ({error}), expected numbers. {NUMBER_NAMES}"
            ) from None
        return numbers.reshape(1, -1) if self._template.single else numbers

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def __repr__(self) -> str:
        return f"JsonEndpointOracle({self._server.shown})"
