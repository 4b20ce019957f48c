"""Weights and biases as a network keeps them: finite float64 that nobody changes, of shapes that fit together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from reluctant.errors import InvalidInput
from reluctant.numerics import FloatArray, all_finite

__all__ = ["check_layers", "frozen"]


def check_layers(weights: Sequence[FloatArray], biases: Sequence[FloatArray], skip: FloatArray | None) -> None:
    """Raise where layers do not follow on each other, or the affine term does not go from the first to the last."""
    if not weights or len(weights) != len(biases):
        raise InvalidInput.about(
            "weights, biases",
            got=f"{len(weights)} weight and {len(biases)} bias arrays",
            expected="one of each per layer",
        )
    for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
        inputs = weights[k - 1].shape[0] if k else w.shape[1]
        if w.shape != (len(b), inputs):
            raise InvalidInput.about(f"weights[{k}]", got=f"shape {w.shape}", expected=f"({len(b)}, {inputs})")
    around = weights[-1].shape[0], weights[0].shape[1]
    if skip is not None and skip.shape != around:
        raise InvalidInput.about("skip", got=f"shape {skip.shape}", expected=f"({around[0]}, {around[1]})")


def frozen(values: ArrayLike, ndim: int, name: str) -> FloatArray:
    """A read-only copy; raises on what is not finite numbers with so many axes."""
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InvalidInput.about(name, got=type(values).__name__, expected="an array of numbers") from error
    if array.ndim != ndim or not all_finite(array):
        finite = "" if all_finite(array) else " with NaN or inf"
        raise InvalidInput.about(name, got=f"shape {array.shape}{finite}", expected=f"{ndim} finite axes")
    array.flags.writeable = False
    return array
