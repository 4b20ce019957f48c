"""A network's shape as it is written, 784-128-1, and what follows from it alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from reluctant.errors import InvalidInput

__all__ = ["Widths", "answers_per_parameter", "as_widths", "parameters", "shape_name"]

Widths = tuple[int, ...]

FEWEST_LAYERS = 3  # inputs, hidden neurons, outputs
EXPECTED = "widths from inputs to outputs with at least one hidden layer, such as 784-128-1"


def as_widths(shape: str | Sequence[int]) -> Widths:
    """Widths of all layers, from "784-128-1" or from numbers; InvalidInput if they are none."""
    if not isinstance(shape, Iterable):
        raise _bad(shape)
    parts = shape.strip().split("-") if isinstance(shape, str) else list(shape)
    widths = tuple(_width(part, shape) for part in parts)
    if len(widths) < FEWEST_LAYERS:
        raise _bad(shape)
    return widths


def _width(part: object, shape: object) -> int:
    """One width, at least 1."""
    try:
        width = int(str(part))
    except ValueError as error:
        raise _bad(shape) from error
    if width < 1:
        raise InvalidInput.about("shape", got=_written(shape), expected="at least 1 neuron in every layer")
    return width


def _bad(shape: object) -> InvalidInput:
    return InvalidInput.about("shape", got=_written(shape), expected=EXPECTED)


def _written(shape: object) -> str:
    return f"'{shape}'" if isinstance(shape, str) else repr(shape)


def parameters(widths: Sequence[int]) -> int:
    """Weights and biases of a network of these widths."""
    return sum(out * (into + 1) for into, out in pairwise(widths))


def answers_per_parameter(rows: float, widths: Sequence[int], in_a_row: int | None = None) -> float:
    """Answers for each parameter, where a row brings so many: one for each output if nothing is said."""
    return rows * (widths[-1] if in_a_row is None else in_a_row) / parameters(widths)


def shape_name(widths: Sequence[int]) -> str:
    """Widths as they are written: 784-128-1."""
    return "-".join(map(str, widths))
