"""What a server says of a model: its input and output tensors; and which models it has, where the name is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from reluctant.errors import TargetError, UnknownTarget, UnsupportedModel
from reluctant.oracles.http.connection import Server
from reluctant.oracles.http.replies import NOT_FOUND, Reply, said_by
from reluctant.oracles.http.tensors import DATATYPES, NUMBER_NAMES, Tensor

__all__ = ["MODEL_PATH", "Metadata", "check_datatype", "check_output", "read_metadata"]

# http://host:port[/prefix]/v2/models/NAME[/versions/V], with or without /infer at the end
MODEL_PATH = re.compile(r"^(?P<base>.*?/v2)/models/(?P<name>[^/]+)(?P<version>/versions/[^/]+)?(/infer|/ready)?/?$")

NAMES_SHOWN = 10
TEXTS = ("BYTES", "STRING")
CHECK_NAME = "Check the name in the address (/v2/models/NAME)."


@dataclass(frozen=True)
class Metadata:
    """Inputs and outputs as the server describes them (often not at all), and the rows it takes if they are fixed.

    missing: what to say of a model that is not found where it is asked what it takes, and may yet be there.
    """

    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    batch: int | None = None
    missing: UnknownTarget | None = None

    def input(self) -> Tensor | None:
        """The one input, None if the server does not describe any."""
        if len(self.inputs) > 1:
            names = ", ".join(tensor.name for tensor in self.inputs)
            raise UnsupportedModel.about(
                "target", got=f"a model of {len(self.inputs)} inputs ({names})", expected="one"
            )
        return self.inputs[0] if self.inputs else None

    def output(self, wanted: str | None) -> Tensor | None:
        """The output that is asked for: the one named, else the only one that holds floating-point numbers."""
        names = [tensor.name for tensor in self.outputs]
        if wanted is not None:
            return self.outputs[names.index(wanted)] if wanted in names else None
        numbers = [tensor for tensor in self.outputs if tensor.datatype.startswith("FP")]
        if len(self.outputs) > 1 and len(numbers) != 1:
            raise UnsupportedModel.about(
                "tensor", got=f"None for a model with outputs {', '.join(names)}", expected="the name of one of them"
            )
        return numbers[0] if len(self.outputs) > 1 else next(iter(self.outputs), None)


def read_metadata(server: Server, base: str, name: str) -> Metadata:
    """Ask for the model's metadata; a model that is not there is an error that names those that are."""
    reply = server.send("GET", server.url)
    if reply.status == NOT_FOUND:
        known = _models(server, base)
        if unquote(name) in known:
            return Metadata()
        if known or not server.send("GET", f"{server.url}/ready").ok:
            raise _unknown(server, reply, unquote(name), known)
        return Metadata(missing=_not_described(server, reply, unquote(name)))
    data = server.ask("GET", server.url, headers={}).json() if not reply.ok else reply.json()
    if not isinstance(data, dict):
        return Metadata()
    inputs, outputs = _tensors(data.get("inputs")), _tensors(data.get("outputs"))
    shapes = [tensor.get("shape") or [-1] for tensor in data.get("inputs") or [{}]]
    rows = shapes[0][0] if len(shapes[0]) > 1 else -1
    return Metadata(inputs, outputs, int(rows) if int(rows) > 0 else None)


def _tensors(described: Any) -> tuple[Tensor, ...]:
    found = []
    for tensor in described or ():
        shape = tuple(int(size) for size in tensor.get("shape") or ())
        known = bool(shape) and all(size > 0 for size in shape[1:])
        datatype = str(tensor.get("datatype") or "").upper().removeprefix("TYPE_")
        found.append(Tensor(str(tensor.get("name")), datatype, shape[1:] if known else None))
    return tuple(found)


def check_output(tensor: Tensor | None, others: tuple[Tensor, ...]) -> Tensor | None:
    """The output to be asked for, if the server does not say that it holds texts."""
    if tensor is None or tensor.datatype not in TEXTS:
        return tensor
    numbers = [other.name for other in others if other.datatype in DATATYPES]
    named = f"Name one that holds numbers, {' or '.join(numbers)}: tensor= (--tensor)." if numbers else NUMBER_NAMES
    raise UnsupportedModel.about(
        "target", got=f"output '{tensor.name}' of type {tensor.datatype}", expected="numbers", fix=named
    )


def check_datatype(tensor: Tensor) -> Tensor:
    """The tensor, if rows of numbers can be sent to it."""
    if tensor.datatype not in DATATYPES or not tensor.datatype.startswith("FP"):
        raise UnsupportedModel.about(
            "target", got=f"input '{tensor.name}' of type {tensor.datatype}", expected="FP32 or FP64"
        )
    return tensor


def _models(server: Server, base: str) -> list[str]:
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


def _unknown(server: Server, reply: Reply, name: str, known: list[str]) -> UnknownTarget:
    shown = ", ".join(repr(model) for model in known[:NAMES_SHOWN]) + (" ..." if len(known) > NAMES_SHOWN else "")
    error = UnknownTarget.about(
        "target", got=f"model '{name}', which {said_by(reply, server.shown, ', answering')}, does not have",
        expected=f"one of {shown}" if known else "the name of a model it has",
        fix="" if known else f"{CHECK_NAME} The server does not say which it has.",
    )  # fmt: skip
    return server.scrubbed(error)


def _not_described(server: Server, reply: Reply, name: str) -> UnknownTarget:
    error = UnknownTarget.about(
        "target", got=f"model '{name}', for which {said_by(reply, f'GET {server.shown}')}",
        expected="the name of a model that the server has",
        fix=f"{CHECK_NAME} The server does not say which it has. If it is right, give the number of inputs: "
        "dim=N (--dim N).",
    )  # fmt: skip
    return server.scrubbed(error)
