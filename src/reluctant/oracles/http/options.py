"""How a served model is asked: the keywords of `open_oracle` that only such a target has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, get_args

from reluctant.errors import InvalidInput

__all__ = ["Encoding", "ServedKeywords", "ServedOptions", "is_url"]

Encoding: TypeAlias = Literal["auto", "json", "binary"]
Datatype: TypeAlias = Literal["FP32", "FP64"]

CONNECTIONS = 4
WATCH_EVERY = 1000  # rows between two looks at old rows: 0.2 % more rows


class ServedKeywords(TypedDict, total=False):
    """Keywords for served models; see `ServedOptions`."""

    connections: int
    rate: float | None
    auth_env: str | None
    auth_header: str
    encoding: Encoding
    datatype: Datatype | None
    tensor: str | None
    request: Mapping[str, Any] | str | None
    reply: str | None
    watch: int | None
    ca: str | Path | None


@dataclass(frozen=True)
class ServedOptions:
    """How a served model is asked.

    connections: requests in flight at once.
    rate: most rows a second, over all connections.
    batch: most rows a request; None begins with a size of its own and learns from refusals.
    auth_env: name of the environment variable that holds the credential.
    auth_header: header that carries it; a bare token in Authorization is sent as Bearer.
    encoding: "json", "binary", or "auto": binary unless the server refuses it.
    datatype: number format of the rows, FP32 or FP64; None takes what the model's metadata say, else FP64.
    tensor: name of the output tensor to ask for, where the model has several.
    request: for an endpoint of another kind: the JSON to send, with "$rows" where the rows go ("$row": one a request).
    reply: path of the answers in its reply, such as "predictions" or "outputs[0].data" or "results[*].score".
    watch: rows between two looks at old rows, to notice that another model is served; None never looks.
    ca: file of certificates to trust beside the system's, for a private authority.
    """

    connections: int = CONNECTIONS
    rate: float | None = None
    batch: int | None = None
    auth_env: str | None = None
    auth_header: str = "Authorization"
    encoding: Encoding = "auto"
    datatype: Datatype | None = None
    tensor: str | None = None
    request: Mapping[str, Any] | str | None = None
    reply: str | None = None
    watch: int | None = WATCH_EVERY
    ca: str | Path | None = None

    @classmethod
    def of(cls, keywords: Mapping[str, Any]) -> ServedOptions:
        """Options from keywords; an unknown one is named."""
        known = [field.name for field in fields(cls)]
        for name in keywords:
            if name not in known:
                raise TypeError(f"open_oracle() got an unexpected keyword argument '{name}'")
        return cls(**keywords)

    def __post_init__(self) -> None:
        for name in ("connections", "batch", "watch"):
            size = getattr(self, name)
            optional = name != "connections" and size is None
            if not optional and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
                raise InvalidInput.about(name, got=repr(size), expected="a whole number, at least 1")
        if self.rate is not None and not (isinstance(self.rate, int | float) and self.rate > 0 and isfinite(self.rate)):
            raise InvalidInput.about("rate", got=repr(self.rate), expected="rows a second, above 0, or None")
        _one_of("encoding", self.encoding, get_args(Encoding))
        if self.datatype is not None:
            _one_of("datatype", self.datatype, get_args(Datatype))
        if (self.request is None) != (self.reply is None):
            got = "request= without reply=" if self.reply is None else "reply= without request="
            raise InvalidInput.about(
                "request, reply", got=got, expected="both, for an endpoint that answers plain JSON"
            )


def is_url(name: str) -> bool:
    """True for something that begins like an address."""
    return re.match(r"^[A-Za-z][A-Za-z0-9+.-]*://", name) is not None


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidInput.about(name, got=repr(value), expected="one of " + ", ".join(f"'{a}'" for a in allowed))
