"""Adapter for the Open Inference Protocol v2 (KServe, MLServer, Triton and others) over HTTP."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import prod
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from reluctant.errors import InvalidInput, TargetChanged, TargetUnavailable
from reluctant.numerics import FloatArray
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Facts, Kind, Oracle
from reluctant.oracles.checks import as_answers
from reluctant.oracles.http.connection import Server
from reluctant.oracles.http.metadata import MODEL_PATH, check_datatype, check_output, read_metadata
from reluctant.oracles.http.options import Encoding, ServedOptions
from reluctant.oracles.http.tensors import DATATYPES, Question, Tensor, decode, encode_binary, encode_json

__all__ = ["OpenInferenceOracle"]

USUAL_INPUT = "input-0"  # what servers take that do not describe their model
NOT_BINARY = {400, 415, 422, 500}  # what servers without the binary extension say to it


class OpenInferenceOracle(Oracle):
    """Asks a served model; one call of `answer` is one request.

    Opening costs no row: the model's metadata say what it takes. Where they do not, `dim` must be given, and the
    outputs are learned from the first answer.
    """

    def __init__(
        self,
        server: Server,
        options: ServedOptions,
        shape: tuple[int, ...] | None = None,
        kind: Kind = Kind.VALUES,
    ) -> None:
        place = MODEL_PATH.match(server.url)
        assert place is not None
        self._server = server
        server.url = f"{place['base']}/models/{place['name']}{place['version'] or ''}"
        metadata = read_metadata(server, place["base"], place["name"])
        if metadata.missing is not None and shape is None:
            raise metadata.missing
        self._input = _input_tensor(metadata.input(), options.datatype, shape)
        output = check_output(metadata.output(options.tensor), metadata.outputs)
        self._wanted = options.tensor or (output.name if output and len(metadata.outputs) > 1 else None)
        self._encoding: Encoding = options.encoding
        self._version: str | None = None
        self._ids = itertools.count()
        self.batch = metadata.batch  # fixed by the model, None if not
        self._facts = self._first_facts(output, place["name"], kind)

    def _first_facts(self, output: Tensor | None, name: str, kind: Kind) -> Facts:
        assert self._input.shape is not None
        outputs = prod(output.shape) if output is not None and output.shape is not None else UNKNOWN_OUTPUTS
        facts = Facts(
            dim=prod(self._input.shape),
            outputs=outputs,
            dtype=DATATYPES[self._input.datatype],
            kind=kind,
            name=f"{name} at {urlsplit(self._server.shown).netloc}",
        )
        return facts if output is None or output.datatype not in DATATYPES else _narrowed(facts, output.datatype)

    @property
    def facts(self) -> Facts:
        """What the metadata or the first answer say. A served model may change: it has no identity."""
        return self._facts

    def answer(self, rows: FloatArray) -> FloatArray:
        """One request."""
        question = Question(f"rows-{next(self._ids)}", self._input, rows, self._wanted)
        reply = self._ask(question)
        head, tensor, numbers = decode(reply, self._wanted)
        self._check_place(question, head)
        answers = as_answers(numbers, len(rows), self._facts.outputs)
        if self._facts.outputs == UNKNOWN_OUTPUTS:
            self._facts = replace(_narrowed(self._facts, tensor["datatype"]), outputs=answers.shape[1])
        return answers

    def _ask(self, question: Question) -> Any:
        url, rows = f"{self._server.url}/infer", len(question.rows)
        if self._encoding != "json":
            body, headers = encode_binary(question)
            if self._encoding == "binary":
                return self._server.ask("POST", url, rows=rows, body=body, headers=headers)
            reply = self._server.send("POST", url, rows=rows, body=body, headers=headers)
            if reply.ok:
                self._encoding = "binary"
                return reply
            if reply.status not in NOT_BINARY:
                raise self._server.failure(reply, "POST", url, rows)
        body, headers = encode_json(question)
        reply = self._server.ask("POST", url, rows=rows, body=body, headers=headers)
        self._encoding = "json"
        return reply

    def _check_place(self, question: Question, head: dict[str, Any]) -> None:
        """The reply belongs to this question, and comes from the model that answered the others."""
        if head.get("id") not in (None, "", question.id):
            self._server.drop_idle()
            raise TargetUnavailable(
                f"target: got the reply to request {head.get('id')!r}, expected that to {question.id!r}: replies are "
                "out of step. The connections were dropped and the request is repeated if retries allow."
            )
        version = str(head.get("model_version") or "")
        self._version = self._version if self._version is not None else version
        if version != self._version:
            raise TargetChanged(
                f"target: got an answer of model version '{version}', expected version '{self._version}' that answered "
                "before. Name the version (/v2/models/NAME/versions/V), and start with a new transcript folder."
            )

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def __repr__(self) -> str:
        return f"OpenInferenceOracle({self._server.shown})"


def _input_tensor(described: Tensor | None, datatype: str | None, shape: tuple[int, ...] | None) -> Tensor:
    """The input to send rows to: as described, with what the user says where the server says nothing."""
    described = described or Tensor(USUAL_INPUT, "", None)
    tensor = Tensor(described.name, datatype or described.datatype or "FP64", described.shape or shape)
    if tensor.shape is None:
        raise InvalidInput.about(
            "dim",
            got="None",
            expected="the number of inputs, since the server does not say",
            fix="Give it: dim=N (--dim N).",
        )
    return check_datatype(tensor)


def _narrowed(facts: Facts, datatype: str) -> Facts:
    """Facts with the narrower of the input's and the output's number format; true and false are labels.

    Integers may be labels or scores: their answers tell, as those of a function do.
    """
    dtype = DATATYPES[datatype]
    if dtype.kind == "b":
        return replace(facts, kind=Kind.LABELS)
    if dtype.kind != "f":
        return facts
    return replace(facts, dtype=np.dtype(min(dtype, facts.dtype, key=lambda one: one.itemsize)))
