"""Questions and answers as bytes: rows out of a request, answers into a reply, and replies that are spoilt."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import numpy as np

from reluctant.numerics import FloatArray

__all__ = ["FORMATS", "HEADER_LENGTH", "Refusal", "Reply", "encoded", "rows_of", "shortened", "with_nan"]

HEADER_LENGTH = "Inference-Header-Content-Length"
FORMATS: dict[str, np.dtype[Any]] = {"FP32": np.dtype("<f4"), "FP64": np.dtype("<f8")}

Reply: TypeAlias = tuple[bytes, dict[str, str]]  # body and headers


class Refusal(Exception):
    """A request that is answered with a status and a reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def rows_of(tensor: dict[str, Any], raw: bytes | None, dim: int) -> FloatArray:
    """Rows (n, dim) of an input tensor, its numbers in JSON or as bytes."""
    kind = FORMATS.get(tensor["datatype"])
    if kind is None or tensor["shape"][1:] != [dim]:
        raise Refusal(400, f"rows of {dim} numbers are wanted, got {tensor['shape']}")
    numbers = np.array(tensor["data"], dtype=np.float64) if raw is None else np.frombuffer(raw, kind)
    return numbers.reshape(tensor["shape"]).astype(np.float64)


def encoded(reply: dict[str, Any], answers: FloatArray, datatype: str, binary: bool) -> Reply:
    """The reply with its output tensor, and the headers that go with it."""
    tensor: dict[str, Any] = {"name": "y", "datatype": datatype, "shape": list(answers.shape)}
    reply = {**reply, "outputs": [tensor]}
    if not binary:
        tensor["data"] = answers.reshape(-1).tolist()
        return json.dumps(reply).encode(), {}
    data = answers.astype(FORMATS[datatype]).tobytes()
    tensor["parameters"] = {"binary_data_size": len(data)}
    head = json.dumps(reply).encode()
    return head + data, {HEADER_LENGTH: str(len(head)), "Content-Type": "application/octet-stream"}


def with_nan(body: bytes, headers: dict[str, str], datatype: str) -> bytes:
    """The reply with NaN for its first answer."""
    if HEADER_LENGTH not in headers:
        reply = json.loads(body)
        numbers = reply["outputs"][0]["data"] if "outputs" in reply else reply["predictions"][0]
        numbers[0] = float("nan")
        return json.dumps(reply).encode()
    start, kind = int(headers[HEADER_LENGTH]), FORMATS[datatype]
    return body[:start] + np.array([np.nan], kind).tobytes() + body[start + kind.itemsize :]


def shortened(body: bytes, headers: dict[str, str]) -> bytes:
    """The reply with half of its answers."""
    if HEADER_LENGTH in headers:
        start = int(headers[HEADER_LENGTH])
        return body[: start + (len(body) - start) // 2]
    reply = json.loads(body)
    numbers = reply["outputs"][0]["data"] if "outputs" in reply else reply["predictions"]
    del numbers[len(numbers) // 2 :]
    return json.dumps(reply).encode()
