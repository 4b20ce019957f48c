"""Rows to requests and replies to answers, in the Open Inference Protocol: JSON, and its binary extension.

In the binary form the body is the JSON header followed by the numbers, little-endian, and the HTTP header
`Inference-Header-Content-Length` says where they begin. Both carry float64 to the last bit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from reluctant.errors import InvalidAnswer
from reluctant.numerics import FloatArray
from reluctant.oracles.http.json_text import number_list
from reluctant.oracles.http.replies import Reply

__all__ = ["DATATYPES", "HEADER_LENGTH", "NUMBER_NAMES", "Question", "Tensor", "decode", "encode_binary", "encode_json"]

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
class Tensor:
    """An input or output of a model: its name, number format, and the shape of one row (None: not told)."""

    name: str
    datatype: str
    shape: tuple[int, ...] | None


@dataclass(frozen=True)
class Question:
    """Rows for one input tensor; `wanted` names the output to be answered, if the model has several."""

    id: str
    tensor: Tensor
    rows: FloatArray
    wanted: str | None

    @property
    def numbers(self) -> Any:
        """The rows in the number format of the tensor."""
        return self.rows.astype(DATATYPES[self.tensor.datatype], copy=False)

    def header(self, tensor: dict[str, Any]) -> dict[str, Any]:
        """The request, with what is said of the tensor besides its name, shape and format."""
        shape = [len(self.rows), *(self.tensor.shape or (self.rows.shape[1],))]
        inputs = [{"name": self.tensor.name, "shape": shape, "datatype": self.tensor.datatype, **tensor}]
        outputs = {} if self.wanted is None else {"outputs": [{"name": self.wanted}]}
        return {"id": self.id, "inputs": inputs, **outputs}


def encode_json(question: Question) -> tuple[bytes, dict[str, str]]:
    """Body and headers, the numbers as text that reads back exactly."""
    # The numbers are by far the most of it: written once, and put into their place.
    head, tail = json.dumps(question.header({"data": 0})).encode().split(b'"data": 0')
    numbers = number_list(question.numbers.reshape(-1))
    return b"".join((head, b'"data": ', numbers, tail)), {"Content-Type": "application/json"}


def encode_binary(question: Question) -> tuple[bytes, dict[str, str]]:
    """Body and headers, the numbers as bytes; the answer is asked for in bytes too."""
    data = np.ascontiguousarray(question.numbers).tobytes()
    request = question.header({"parameters": {"binary_data_size": len(data)}})
    if question.wanted is None:
        request["parameters"] = {"binary_data_output": True}
    else:
        request["outputs"][0]["parameters"] = {"binary_data": True}
    head = json.dumps(request).encode()
    return head + data, {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(len(head))}


def decode(reply: Reply, wanted: str | None) -> tuple[dict[str, Any], dict[str, Any], FloatArray]:
    """The reply without its numbers, the chosen output tensor, and its numbers as float64 in its shape."""
    length = reply.headers.get(HEADER_LENGTH.lower())
    head = Reply(reply.status, reply.headers, reply.body[: int(length)] if length else reply.body).json()
    tail = memoryview(reply.body)[int(length) :] if length else memoryview(b"")
    outputs = head.get("outputs") if isinstance(head, dict) else None
    if not isinstance(outputs, list) or not all(isinstance(tensor, dict) for tensor in outputs):
        raise InvalidAnswer("target: got a reply without 'outputs', expected one of the Open Inference Protocol v2.")
    start = 0
    for tensor in outputs:
        size = int((tensor.get("parameters") or {}).get("binary_data_size") or 0)
        if wanted is None or tensor.get("name") == wanted:
            return head, tensor, _numbers(tensor, tail[start : start + size] if size else None)
        start += size
    names = ", ".join(repr(tensor.get("name")) for tensor in outputs)
    raise InvalidAnswer(
        f"target: got outputs {names or 'none'}, expected {wanted or 'one'!r}. Give tensor= (--tensor)."
    )


def _numbers(tensor: dict[str, Any], data: memoryview | None) -> FloatArray:
    datatype, shape = tensor.get("datatype"), tuple(tensor.get("shape") or ())
    if datatype not in DATATYPES:
        raise InvalidAnswer(
            f"target: got answers of type {datatype} in output '{tensor.get('name')}', expected numbers. If it has an "
            f"output of numbers name it: tensor= (--tensor). {NUMBER_NAMES}"
        )
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
