"""The keywords of `open_oracle`: what an adapter may want to know, and what each of them may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np

from reluctant.engines import Engine
from reluctant.errors import InvalidInput
from reluctant.oracles.base import Kind
from reluctant.oracles.http import ServedOptions

__all__ = ["Options", "Precision", "check_numbers", "one_of", "row_shape", "served_options"]

Precision = Literal["as-served", "float64"]


@dataclass(frozen=True)
class Options:
    """What an adapter may want to know."""

    shape: tuple[int, ...] | None
    precision: Precision
    kind: Kind
    trust_code: bool
    timeout: float | None
    batch: int | None
    served: ServedOptions | None
    engine: Engine | None = None

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
        if rows is not None and not _is_size(rows):
            raise InvalidInput.about(name, got=repr(rows), expected="a whole number of rows, at least 1, or None")
    if timeout is not None and (not isinstance(timeout, int | float) or not timeout > 0):
        raise InvalidInput.about("timeout", got=repr(timeout), expected="seconds above 0, or None")
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InvalidInput.about("retries", got=retries, expected="a whole number, at least 0")


def row_shape(dim: int | None, shape: Sequence[int] | None) -> tuple[int, ...] | None:
    """Shape of one input, from what is said of it; None if nothing is."""
    if dim is not None and not _is_size(dim):
        raise InvalidInput.about("dim", got=repr(dim), expected="a positive whole number")
    if shape is None:
        return None if dim is None else (int(dim),)
    if not isinstance(shape, Iterable) or not all(_is_size(size) for size in shape):
        raise InvalidInput.about("shape", got=repr(shape), expected="a tuple of positive whole numbers")
    whole = tuple(int(size) for size in shape)
    if dim is not None and prod(whole) != dim:
        raise InvalidInput.about("shape", got=shape, expected=f"a shape of {dim} numbers, as dim says")
    return whole


def _is_size(size: object) -> bool:
    return isinstance(size, int | np.integer) and not isinstance(size, bool) and int(size) > 0


def served_options(keywords: Mapping[str, Any], is_served: bool, batch: int | None) -> ServedOptions | None:
    """Options of a served model, None for any other target; there none of these keywords may be given."""
    options = ServedOptions.of({**keywords, "batch": batch})
    if keywords and not is_served:
        raise InvalidInput.about(
            next(iter(keywords)), got="a value for a local target", expected="it for a served model (http://...) alone"
        )
    return options if is_served else None
