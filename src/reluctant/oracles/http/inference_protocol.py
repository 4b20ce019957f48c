"""Adapter for the Open Inference Protocol v2 (KServe, MLServer, Triton and others) over HTTP.

The server's metadata say what a model takes: its input and output tensors, and which models there are where the
name is wrong. Rows go out as JSON or in the binary extension, where the body is the JSON header followed by the
numbers, little-endian, and the HTTP header `Inference-Header-Content-Length` says where they begin. Both carry
float64 to the last bit.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass, replace
from math import prod
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from reluctant.errors import (
    InvalidAnswer,
    InvalidInput,
    N,
    Option,
    TargetChanged,
    TargetError,
    TargetUnavailable,
    UnknownTarget,
    UnsupportedModel,
    Words,
    words,
)
from reluctant.numerics import FloatArray
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Facts, Kind, as_answers
from reluctant.oracles.http.served_oracle import ServedGradients, ServedOracle
from reluctant.oracles.http.transport import NOT_FOUND, Reply, Server, number_list, said_by
from reluctant.oracles.keywords import Encoding, Serving

USUAL_INPUT = "input-0"  # what servers take that do not describe their model
NOT_BINARY_STATUSES = {400, 415, 422, 500}  # what servers without the binary extension say to it


class OpenInferenceOracle(ServedOracle):
    """Asks a model of the Open Inference Protocol.

    Opening costs no row: the model's metadata say what it takes. Where they do not, `dim` must be given, and the
    outputs are learned from the first answer.
    """

    def __init__(
        self,
        server: Server,
        options: Serving,
        shape: tuple[int, ...] | None = None,
        kind: Kind = Kind.VALUES,
        gradients: ServedGradients | None = None,
    ) -> None:
        super().__init__(server, gradients)
        place = MODEL_PATH.match(server.url)
        assert place is not None
        server.url = f"{place['base']}/models/{place['name']}{place['version'] or ''}"
        metadata = read_metadata(server, place["base"], place["name"])
        if metadata.missing is not None and shape is None:
            raise metadata.missing
        self._input = _input_tensor(metadata.input(), options.datatype, shape)
        besides = "" if gradients is None else gradients.name
        output = check_output(metadata.output(options.tensor, besides), metadata.outputs)
        self._wanted = options.tensor or (None if output is None else output.name)
        self._outputs = tuple(tensor.name for tensor in metadata.outputs)
        self._encoding: Encoding = options.encoding
        self._version: str | None = None
        self._ids = itertools.count()
        self.batch = metadata.batch  # fixed by the model, None if not
        self._facts = self._first_facts(output, place["name"], kind)

    def _first_facts(self, output: TensorSpec | None, name: str, kind: Kind) -> Facts:
        assert self._input.shape is not None
        outputs = prod(output.shape) if output is not None and output.shape is not None else UNKNOWN_OUTPUTS
        facts = Facts(
            dim=prod(self._input.shape),
            outputs=outputs,
            dtype=DATATYPES[self._input.datatype],
            kind=kind,
            name=f"{name} at {urlsplit(self._server.shown).netloc}",
        )
        return facts if output is None or output.datatype not in DATATYPES else _narrowed_facts(facts, output.datatype)

    def _reply(self, rows: FloatArray, also: str | None = None) -> Reply:
        question = InferenceRequest(f"rows-{next(self._ids)}", self._input, rows, self._wanted, also)
        reply = self._ask(question)
        head = reply_head(reply)
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
        return reply

    def _slopes(self, reply: Reply) -> FloatArray:
        assert self._gradients is not None
        return decode(reply, self._gradients.name)[2]

    def _values(self, reply: Reply, rows: int, besides: str = "") -> FloatArray:
        head, tensor, numbers = decode(reply, self._wanted, besides)
        answers = self._checked(numbers, rows, head)
        if self._facts.outputs == UNKNOWN_OUTPUTS:
            self._facts = replace(_narrowed_facts(self._facts, tensor["datatype"]), outputs=answers.shape[1])
        return answers

    def _checked(self, numbers: FloatArray, rows: int, head: dict[str, Any]) -> FloatArray:
        """The answers; an error about their shape says which outputs there are."""
        try:
            return as_answers(numbers, rows, self._facts.outputs)
        except InvalidAnswer as error:
            names = sorted({*self._outputs, *(str(tensor.get("name")) for tensor in head["outputs"])})
            asked = f"output '{self._wanted}'" if self._wanted else "no output by name"
            error.advised(f"Asked for {asked}; the model has {', '.join(names)}.", NAME_ANOTHER)
            raise

    def _ask(self, question: InferenceRequest) -> Reply:
        url, rows = f"{self._server.url}/infer", len(question.rows)
        if self._encoding != "json":
            body, headers = encode_binary(question)
            if self._encoding == "binary":
                return self._server.ask("POST", url, rows=rows, body=body, headers=headers)
            reply = self._server.send("POST", url, rows=rows, body=body, headers=headers)
            if reply.ok:
                self._encoding = "binary"
                return reply
            if reply.status not in NOT_BINARY_STATUSES:
                raise self._server.failure(reply, "POST", url, rows)
        body, headers = encode_json(question)
        reply = self._server.ask("POST", url, rows=rows, body=body, headers=headers)
        self._encoding = "json"
        return reply


def _input_tensor(described: TensorSpec | None, datatype: str | None, shape: tuple[int, ...] | None) -> TensorSpec:
    """The input to send rows to: as described, with what the user says where the server says nothing."""
    described = described or TensorSpec(USUAL_INPUT, "", None)
    tensor = TensorSpec(described.name, datatype or described.datatype or "FP64", described.shape or shape)
    if tensor.shape is None:
        raise InvalidInput.about(
            "dim",
            got="None",
            expected="the number of inputs, since the server does not say",
            fix=words("Give it: {dim}.", dim=N),
        )
    return check_datatype(tensor)


def _narrowed_facts(facts: Facts, datatype: str) -> Facts:
    """Facts with the narrower of the input's and the output's number format; true and false are labels.

    Integers may be labels or scores: their answers tell, as those of a function do.
    """
    dtype = DATATYPES[datatype]
    if dtype.kind == "b":
        return replace(facts, kind=Kind.LABELS)
    if dtype.kind != "f":
        return facts
    return replace(facts, dtype=np.dtype(min(dtype, facts.dtype, key=lambda one: one.itemsize)))


# http://host:port[/prefix]/v2/models/NAME[/versions/V], with or without /infer at the end
MODEL_PATH = re.compile(r"^(?P<base>.*?/v2)/models/(?P<name>[^/]+)(?P<version>/versions/[^/]+)?(/infer|/ready)?/?$")

NAMES_SHOWN = 10
TEXT_DATATYPES = ("BYTES", "STRING")
TENSOR = Option("tensor", "NAME")
NAME_ANOTHER = Words("Name another: ", TENSOR, ".")
CHECK_NAME = "Check the name in the address (/v2/models/NAME)."


@dataclass(frozen=True)
class ModelMetadata:
    """Inputs and outputs as the server describes them (often not at all), and the rows it takes if they are fixed.

    missing: what to say of a model that is not found where it is asked what it takes, and may yet be there.
    """

    inputs: tuple[TensorSpec, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()
    batch: int | None = None
    missing: UnknownTarget | None = None

    def input(self) -> TensorSpec | None:
        """The one input, None if the server does not describe any."""
        if len(self.inputs) > 1:
            names = ", ".join(tensor.name for tensor in self.inputs)
            raise UnsupportedModel.about(
                "target", got=f"a model of {len(self.inputs)} inputs ({names})", expected="one"
            )
        return self.inputs[0] if self.inputs else None

    def output(self, wanted: str | None, besides: str = "") -> TensorSpec | None:
        """The output that is asked for: the one named, else the only one that holds floating-point numbers.

        besides: the one that holds gradients, which is another.
        """
        names = [tensor.name for tensor in self.outputs]
        if wanted is not None:
            return self.outputs[names.index(wanted)] if wanted in names else None
        numbers = [tensor for tensor in self.outputs if tensor.datatype.startswith("FP") and tensor.name != besides]
        if len(self.outputs) > 1 and len(numbers) != 1:
            raise UnsupportedModel.about(
                "tensor", got=f"None for a model with outputs {', '.join(names)}", expected="the name of one of them"
            )
        return numbers[0] if len(self.outputs) > 1 else next(iter(self.outputs), None)


def read_metadata(server: Server, base: str, name: str) -> ModelMetadata:
    """Ask for the model's metadata; if there is no such model, the error names the models there are."""
    reply = server.send("GET", server.url)
    if reply.status == NOT_FOUND:
        known = _model_names(server, base)
        if unquote(name) in known:
            return ModelMetadata()
        if known or not server.send("GET", f"{server.url}/ready").ok:
            raise _unknown_model(server, reply, unquote(name), known)
        return ModelMetadata(missing=_undescribed_model(server, reply, unquote(name)))
    data = server.ask("GET", server.url, headers={}).json() if not reply.ok else reply.json()
    if not isinstance(data, dict):
        return ModelMetadata()
    inputs, outputs = _described_tensors(data.get("inputs")), _described_tensors(data.get("outputs"))
    shapes = [tensor.get("shape") or [-1] for tensor in data.get("inputs") or [{}]]
    rows = shapes[0][0] if len(shapes[0]) > 1 else -1
    return ModelMetadata(inputs, outputs, int(rows) if int(rows) > 0 else None)


def _described_tensors(described: Any) -> tuple[TensorSpec, ...]:
    found = []
    for tensor in described or ():
        shape = tuple(int(size) for size in tensor.get("shape") or ())
        known = bool(shape) and all(size > 0 for size in shape[1:])
        datatype = str(tensor.get("datatype") or "").upper().removeprefix("TYPE_")
        found.append(TensorSpec(str(tensor.get("name")), datatype, shape[1:] if known else None))
    return tuple(found)


def check_output(tensor: TensorSpec | None, others: tuple[TensorSpec, ...]) -> TensorSpec | None:
    """The output to be asked for, if the server does not say that it holds texts."""
    if tensor is None or tensor.datatype not in TEXT_DATATYPES:
        return tensor
    numbers = [other.name for other in others if other.datatype in DATATYPES]
    one = Words(f"Name one that holds numbers, {' or '.join(numbers)}: ", TENSOR, ".")
    raise UnsupportedModel.about(
        "target", got=f"output '{tensor.name}' of type {tensor.datatype}", expected="numbers",
        fix=one if numbers else NUMBER_NAMES,
    )  # fmt: skip


def check_datatype(tensor: TensorSpec) -> TensorSpec:
    """The tensor, if rows of numbers can be sent to it."""
    if tensor.datatype not in DATATYPES or not tensor.datatype.startswith("FP"):
        raise UnsupportedModel.about(
            "target", got=f"input '{tensor.name}' of type {tensor.datatype}", expected="FP32 or FP64"
        )
    return tensor


def _model_names(server: Server, base: str) -> list[str]:
    """Names of the models the server has, as far as it tells: two customs, neither part of the protocol proper."""
    for method, path, body in (("POST", "/repository/index", b"{}"), ("GET", "/models", b"")):
        try:
            reply = server.send(method, base + path, body=body, headers={"Content-Type": "application/json"})
            data = reply.json() if reply.ok else None
        except TargetError:
            continue
        models = data.get("models") if isinstance(data, dict) else data
        if isinstance(models, list):
            return [str(model.get("name") if isinstance(model, dict) else model) for model in models]
    return []


def _unknown_model(server: Server, reply: Reply, name: str, known: list[str]) -> UnknownTarget:
    shown = ", ".join(repr(model) for model in known[:NAMES_SHOWN]) + (" ..." if len(known) > NAMES_SHOWN else "")
    error = UnknownTarget.about(
        "target", got=f"model '{name}', which {said_by(reply, server.shown, ', answering')}, does not have",
        expected=f"one of {shown}" if known else "the name of a model it has",
        fix="" if known else f"{CHECK_NAME} The server does not say which it has.",
    )  # fmt: skip
    return server.scrubbed(error)


def _undescribed_model(server: Server, reply: Reply, name: str) -> UnknownTarget:
    error = UnknownTarget.about(
        "target", got=f"model '{name}', for which {said_by(reply, f'GET {server.shown}')}",
        expected="the name of a model that the server has",
        fix=Words(
            f"{CHECK_NAME} The server does not say which it has. If it is right, give the number of inputs: ",
            Option("dim", N), ".",
        ),
    )  # fmt: skip
    return server.scrubbed(error)


NUMBER_NAMES = "Class names are to be served as numbers: 0 for the first, 1 for the second, and so on."
HEADER_LENGTH = "Inference-Header-Content-Length"
DATATYPES: dict[str, np.dtype[Any]] = {
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
    "INT8": np.dtype("<i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "UINT8": np.dtype("<u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "BOOL": np.dtype("?"),
}


@dataclass(frozen=True)
class TensorSpec:
    """An input or output of a model: its name, number format, and the shape of one row (None: not given)."""

    name: str
    datatype: str
    shape: tuple[int, ...] | None


@dataclass(frozen=True)
class InferenceRequest:
    """Rows for one input tensor; `wanted` names the output to be answered, if the model has several; also: another."""

    id: str
    tensor: TensorSpec
    rows: FloatArray
    wanted: str | None
    also: str | None = None

    @property
    def numbers(self) -> Any:
        """The rows in the number format of the tensor."""
        return self.rows.astype(DATATYPES[self.tensor.datatype], copy=False)

    def header(self, tensor: dict[str, Any]) -> dict[str, Any]:
        """The request, with the tensor's parameters besides its name, shape and format."""
        shape = [len(self.rows), *(self.tensor.shape or (self.rows.shape[1],))]
        inputs = [{"name": self.tensor.name, "shape": shape, "datatype": self.tensor.datatype, **tensor}]
        names = [name for name in (self.wanted, self.also) if name is not None]
        outputs = {} if self.wanted is None else {"outputs": [{"name": name} for name in names]}
        return {"id": self.id, "inputs": inputs, **outputs}


def encode_json(question: InferenceRequest) -> tuple[bytes, dict[str, str]]:
    """Body and headers, the numbers as text that reads back exactly."""
    # The numbers are by far the most of it: written once, and put into their place.
    head, tail = json.dumps(question.header({"data": 0})).encode().split(b'"data": 0')
    numbers = number_list(question.numbers.reshape(-1))
    return b"".join((head, b'"data": ', numbers, tail)), {"Content-Type": "application/json"}


def encode_binary(question: InferenceRequest) -> tuple[bytes, dict[str, str]]:
    """Body and headers, the numbers as bytes; the answer is asked for in bytes too."""
    data = np.ascontiguousarray(question.numbers).tobytes()
    request = question.header({"parameters": {"binary_data_size": len(data)}})
    if question.wanted is None:
        request["parameters"] = {"binary_data_output": True}
    else:
        for output in request["outputs"]:
            output["parameters"] = {"binary_data": True}
    head = json.dumps(request).encode()
    return head + data, {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(len(head))}


def reply_head(reply: Reply) -> Any:
    """The reply without numbers that follow as bytes."""
    length = reply.headers.get(HEADER_LENGTH.lower())
    return Reply(reply.status, reply.headers, reply.body[: int(length)] if length else reply.body).json()


def decode(reply: Reply, wanted: str | None, besides: str = "") -> tuple[dict[str, Any], dict[str, Any], FloatArray]:
    """The reply without its numbers, the chosen output tensor, and its numbers as float64 in its shape.

    besides: a tensor that is not meant where none is named.
    """
    length, head = reply.headers.get(HEADER_LENGTH.lower()), reply_head(reply)
    tail = memoryview(reply.body)[int(length) :] if length else memoryview(b"")
    outputs = head.get("outputs") if isinstance(head, dict) else None
    if not isinstance(outputs, list) or not all(isinstance(tensor, dict) for tensor in outputs):
        raise InvalidAnswer("target: got a reply without 'outputs', expected one of the Open Inference Protocol v2.")
    start = 0
    for tensor in outputs:
        size = int((tensor.get("parameters") or {}).get("binary_data_size") or 0)
        if tensor.get("name") == wanted or (wanted is None and tensor.get("name") != besides):
            return head, tensor, _tensor_numbers(tensor, tail[start : start + size] if size else None)
        start += size
    names = ", ".join(repr(tensor.get("name")) for tensor in outputs)
    raise InvalidAnswer(f"target: got outputs {names or 'none'}, expected {wanted or 'one'!r}.").advised(
        Words("Give ", TENSOR, ".")
    )


def _tensor_numbers(tensor: dict[str, Any], data: memoryview | None) -> FloatArray:
    datatype, shape = tensor.get("datatype"), tuple(tensor.get("shape") or ())
    if datatype not in DATATYPES:
        raise InvalidAnswer(
            f"target: got answers of type {datatype} in output '{tensor.get('name')}', expected numbers."
        ).advised(Words("If it has an output of numbers name it: ", TENSOR, "."), NUMBER_NAMES)
    try:
        if data is None:
            flat = np.array(tensor["data"], dtype=np.float64).reshape(-1)  # null becomes NaN
        else:
            flat = np.frombuffer(data, dtype=DATATYPES[datatype]).astype(np.float64)
        return flat.reshape(shape or (len(flat),))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidAnswer(
            f"target: got a tensor of shape {shape} ({prod(shape)} numbers) that does not hold them ({error}), "
            "expected one row of answers per row."
        ) from None
