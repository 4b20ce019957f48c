"""Fewer digits: rounding to decimals, to significant digits, or to a narrower number format."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluctant.defenses.base import Defense
from reluctant.errors import InvalidInput
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Facts, Oracle

__all__ = ["Decimals", "Digits", "NumberFormat"]

MOST_DIGITS = 17  # more are no rounding in float64


class Decimals(Defense):
    """Answers rounded to so many digits after the point."""

    def __init__(self, inner: Oracle, decimals: int) -> None:
        super().__init__(inner)
        self.decimals = _count("decimals", decimals, 0)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then round."""
        return np.round(self.inner.answer(rows), self.decimals)


class Digits(Defense):
    """Answers rounded to so many significant digits, each by its own size."""

    def __init__(self, inner: Oracle, digits: int) -> None:
        super().__init__(inner)
        self.digits = _count("digits", digits, 1)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then round."""
        answers = self.inner.answer(rows)
        sizes = np.abs(answers)
        sound = (sizes > 0) & np.isfinite(sizes)
        places = self.digits - 1 - np.floor(np.log10(sizes, where=sound, out=np.zeros_like(sizes)))
        units = 10.0 ** np.clip(-places, -300, 300)  # beyond, the unit itself would leave float64
        return np.where(sound, np.round(answers / units) * units, answers)


class NumberFormat(Defense):
    """Answers rounded to float32 or float16; what is too large for the format becomes infinite, as it would there."""

    def __init__(self, inner: Oracle, dtype: type[np.floating[Any]]) -> None:
        super().__init__(inner)
        self.dtype = np.dtype(dtype)

    def changes(self, facts: Facts) -> dict[str, Any]:
        """The number format, which more digits of the model do not change."""
        return {"dtype": min(self.dtype, facts.dtype, key=lambda dtype: dtype.itemsize), "recast": False}

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then round."""
        with np.errstate(over="ignore"):
            return self.inner.answer(rows).astype(self.dtype).astype(np.float64)


def _count(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST_DIGITS:
        raise InvalidInput.about(name, got=repr(value), expected=f"a whole number from {least} to {MOST_DIGITS}")
    return value
