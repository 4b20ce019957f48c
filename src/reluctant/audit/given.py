"""What an audit is given, checked before anything is asked."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from reluctant.audit.recovered import Price
from reluctant.errors import InvalidInput, InvalidRows
from reluctant.numerics import FloatArray, as_generator
from reluctant.oracles import Counting

__all__ = [
    "HONEST_INPUTS",
    "check_classes",
    "check_price",
    "check_rate",
    "check_seconds",
    "honest_inputs",
    "image_shape",
    "wanted_steps",
]

HONEST_INPUTS = 1000  # drawn from the domain where none are given


def check_seconds(seconds: float) -> None:
    """A time that can run out."""
    if not (np.isfinite(seconds) and seconds > 0):
        raise InvalidInput.about("seconds", got=seconds, expected="a positive number")


def check_price(price: Price | None) -> None:
    """A price for a thousand queries, before anything is spent."""
    each = None if price is None else price.get("per thousand")
    if price is not None and not (isinstance(each, int | float) and 0 <= each < np.inf):
        raise InvalidInput.about("price", got=each, expected="{'per thousand': a finite number, at least 0}")


def check_rate(rate: float | None, name: str = "rate") -> None:
    """A rate that a time follows from."""
    if rate is not None and not 0 < rate < np.inf:
        raise InvalidInput.about(name, got=rate, expected="a finite number above 0")


def check_classes(classes: Sequence[str], outputs: int) -> None:
    """A name for each output, or none at all."""
    if classes and len(classes) != outputs:
        raise InvalidInput.about("classes", got=f"{len(classes)} names", expected=f"one for each of {outputs} outputs")


def honest_inputs(inputs: FloatArray | None, oracle: Counting, rng: int) -> FloatArray:
    """The inputs given, as rows inside the domain; where there are none, rows drawn from it."""
    if inputs is None:
        own = as_generator(rng).spawn(1)[0]  # methods draw from the seed itself: copies are measured on other inputs
        return oracle.facts.domain.sample(own, HONEST_INPUTS, oracle.dim)
    rows = _as_rows(inputs)
    if rows.shape[1] != oracle.dim or not len(rows):
        raise InvalidRows.about("inputs", got=f"shape {rows.shape}", expected=f"(n, {oracle.dim})")
    if not np.isfinite(rows).all():
        wrong = int((~np.isfinite(rows).all(axis=1)).sum())
        raise InvalidRows.about("inputs", got=f"NaN or inf in {wrong} of {len(rows)} rows", expected="finite numbers")
    if not oracle.facts.domain.contains(rows):
        raise InvalidRows.about("inputs", got="some outside", expected=f"all in {oracle.facts.domain.describe()}")
    return rows[:HONEST_INPUTS]


def _as_rows(inputs: FloatArray) -> FloatArray:
    try:
        rows = np.asarray(inputs, dtype=np.float64)
        return rows.reshape(len(rows), -1)
    except (TypeError, ValueError) as error:
        raise InvalidRows.about("inputs", got=type(inputs).__name__, expected="an array of numbers (n, d)") from error


def image_shape(shape: tuple[int, int] | None, dim: int) -> tuple[int, int] | None:
    """Height and width, if they are those of the inputs."""
    if shape is not None and shape[0] * shape[1] != dim:
        raise InvalidInput.about("input_shape", got=shape, expected=f"height and width of {dim} inputs")
    return shape


def wanted_steps(steps: Collection[str], known: Collection[str]) -> Collection[str]:
    """The steps asked for, if there are such."""
    unknown = [name for name in steps if name not in known]
    if unknown:
        raise InvalidInput.about("steps", got=unknown, expected="some of " + ", ".join(known))
    return steps
