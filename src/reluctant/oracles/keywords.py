"""The keywords of `open_oracle`, and their checks.

`InputsKeywords` has them all, for verbs that open a target themselves. `Serving`, `Reading` and `Recording` are
the same settings as values: requests to a served model, the reading of answers, files on disk. Everything is checked
here, before a target is opened; nothing here reaches a server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import isfinite, prod
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from reluctant.domains import Domain
from reluctant.engines import Engine
from reluctant.errors import InvalidInput, words
from reluctant.oracles.base import Kind
from reluctant.oracles.links import AnswerLink

RunPrecision = Literal["as-served", "float64"]
Explanation = Literal["gradient", "input-times-gradient"]
GivenGradients: TypeAlias = Callable[[Any], Any] | bool | str | None


@dataclass(frozen=True)
class OpenOptions:
    """Options for the adapters."""

    shape: tuple[int, ...] | None
    precision: RunPrecision
    kind: Kind
    trust_code: bool
    timeout: float | None
    batch: int | None
    served: Serving | None
    engine: Engine | None = None
    gradients: GivenGradients = None
    output: int | None = None

    @property
    def is_elsewhere(self) -> bool:
        """True if the target is not in this process: what was opened to reach it is ours to close."""
        return self.served is not None or self.engine is not None


def one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """The value, if it is allowed."""
    if value not in allowed:
        raise InvalidInput.about(name, got=repr(value), expected="one of " + ", ".join(f"'{a}'" for a in allowed))
    return value


def check_numbers(*, budget: int | None, timeout: float | None, retries: int, batch: int | None) -> None:
    """Refuse what cannot be a number of rows, of seconds, of repetitions."""
    for name, rows in (("budget", budget), ("batch", batch)):
        if rows is not None and not _is_positive_whole(rows):
            raise InvalidInput.about(name, got=repr(rows), expected="a whole number of rows, at least 1, or None")
    if timeout is not None and (not isinstance(timeout, int | float) or not timeout > 0):
        raise InvalidInput.about("timeout", got=repr(timeout), expected="seconds above 0, or None")
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InvalidInput.about("retries", got=retries, expected="a whole number, at least 0")


def checked_gradients(gradients: Any, is_served: bool) -> GivenGradients:
    """A function, True, the name of a served model's gradients, or None; False is None."""
    if gradients is None or gradients is False:
        return None
    if isinstance(gradients, str) and not is_served:
        raise InvalidInput.about(
            "gradients", got=f"'{gradients}' for a target that is not served", expected="a function, or True",
            fix="A name says which tensor, or which part of a reply, of a served model holds gradients.",
        )  # fmt: skip
    if gradients is True and is_served:
        raise InvalidInput.about(
            "gradients", got="True for a served model", expected="the name of the output tensor that holds them",
            fix=words("Give {gradients}, or the path of them in a JSON reply.", gradients="NAME"),
        )  # fmt: skip
    if gradients is not True and not callable(gradients) and not isinstance(gradients, str):
        raise InvalidInput.about(
            "gradients", got=type(gradients).__name__, expected="a function (n, d) -> (n, m, d), or True"
        )
    return gradients


def row_shape(dim: int | None, shape: Sequence[int] | None) -> tuple[int, ...] | None:
    """Shape of one input, as given; None if it is not."""
    if dim is not None and not _is_positive_whole(dim):
        raise InvalidInput.about("dim", got=repr(dim), expected="a positive whole number")
    if shape is None:
        return None if dim is None else (int(dim),)
    if not isinstance(shape, Iterable) or not all(_is_positive_whole(size) for size in shape):
        raise InvalidInput.about("shape", got=repr(shape), expected="a tuple of positive whole numbers")
    whole = tuple(int(size) for size in shape)
    if dim is not None and prod(whole) != dim:
        raise InvalidInput.about("shape", got=shape, expected=f"a shape of {dim} numbers, as dim says")
    return whole


def _is_positive_whole(size: object) -> bool:
    return isinstance(size, int | np.integer) and not isinstance(size, bool) and int(size) > 0


def served_options(
    keywords: Mapping[str, Any], serving: Serving | None, is_served: bool, batch: int | None
) -> Serving | None:
    """Options of a served model, None for any other target; there none of these keywords may be given."""
    options = merged("serving", serving, Serving.of({**keywords, "batch": batch}))
    given = [*keywords, *([] if serving is None else ["serving"])]
    if given and not is_served:
        raise InvalidInput.about(
            given[0], got="a value for a local target", expected="it for a served model (http://...) alone"
        )
    return options if is_served else None


Encoding: TypeAlias = Literal["auto", "json", "binary"]
Datatype: TypeAlias = Literal["FP32", "FP64"]

CONNECTIONS = 4
WATCH_EVERY = 1000  # rows between two looks at old rows: 0.2 % more rows


class ServedKeywords(TypedDict, total=False):
    """Keywords for served models; see `Serving`."""

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
class Serving:
    """Settings of requests to a served model.

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
    def of(cls, keywords: Mapping[str, Any]) -> Serving:
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
        one_of("encoding", self.encoding, get_args(Encoding))
        if self.datatype is not None:
            one_of("datatype", self.datatype, get_args(Datatype))
        if (self.request is None) != (self.reply is None):
            got = words("{request} without {reply}" if self.reply is None else "{reply} without {request}")
            raise InvalidInput.about(
                "request, reply", got=got, expected="both, for an endpoint that answers plain JSON"
            )


@dataclass(frozen=True)
class Reading:
    """How the answers of a target are read.

    link: the function after the last layer: "softmax", "sigmoid", "log-softmax", "top-k" or "tanh"; "identity" or
        "none" if answers are the values. None leaves it to the verb, which finds a link and undoes it.
    percent: they are probabilities in percent.
    output: index of the output to use, or several; None for all.
    """

    link: AnswerLink | None = None
    percent: bool = False
    output: int | Sequence[int] | None = None


@dataclass(frozen=True)
class Recording:
    """Which questions and answers are kept.

    transcript: folder where every answer is written before it is used; None keeps nothing.
    keep_rows: write the rows too.
    """

    transcript: str | Path | None = None
    keep_rows: bool = False


class ReachingKeywords(TypedDict, total=False):
    """Keywords of `open_oracle` that no verb has for itself; see there."""

    dim: int | None
    shape: Sequence[int] | None
    transcript: str | Path | None
    keep_rows: bool
    domain: Domain | tuple[Any, Any] | None
    kind: Kind | str
    timeout: float | None
    retries: int | None
    batch: int | None
    trust_code: bool
    gradients: GivenGradients
    explanation: Explanation
    serving: Serving | None
    recording: Recording | None


class OpeningKeywords(ReachingKeywords, ServedKeywords, total=False):
    """Every keyword of `open_oracle` but `inputs`; see there."""

    budget: int | None
    output: int | Sequence[int] | None
    link: AnswerLink | None
    percent: bool
    precision: RunPrecision
    engine: Engine | None
    reading: Reading | None


class InputsKeywords(OpeningKeywords, total=False):
    """Every keyword of `open_oracle`, for verbs without rows of their own."""

    inputs: ArrayLike | None


Group = TypeVar("Group", Serving, Reading, Recording)


def merged(name: str, group: Group | None, flat: Group) -> Group:
    """The settings of a group and those given one by one, together; no setting may be given twice."""
    if group is None:
        return flat
    if not isinstance(group, type(flat)):
        raise InvalidInput.about(name, got=type(group).__name__, expected=f"rl.{type(flat).__name__}(...)")
    in_group, alone = _changed(group), _changed(flat)
    both = [setting for setting in in_group if setting in alone]
    if both:
        raise InvalidInput.about(
            both[0], got=f"it twice, as {both[0]}= and in {name}=", expected="it in one place", fix="Leave one out."
        )
    return replace(group, **alone)


def _changed(group: Serving | Reading | Recording) -> dict[str, Any]:
    """The settings that differ from their defaults."""
    values = {field.name: (getattr(group, field.name), field.default) for field in fields(group)}
    return {
        name: value
        for name, (value, default) in values.items()
        if value is not default and not (type(value) is type(default) and value == default)
    }


def is_url(name: str) -> bool:
    """True for something that begins like an address."""
    return re.match(r"^[A-Za-z][A-Za-z0-9+.-]*://", name) is not None
