"""How much an answer tells: all digits of float64, fewer, or a label alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reluctant.errors import InvalidInput

__all__ = ["KINDS", "Answers"]

FLOAT64, FLOAT32, FLOAT16, DECIMALS, NOISE, LABELS = "float64", "float32", "float16", "decimals", "noise", "labels"
PLAIN = (FLOAT64, FLOAT32, FLOAT16, LABELS)
KINDS = (*PLAIN, "decimals=K", "noise=S")
MOST_DECIMALS = 15
OF_ROUNDING = 1 / math.sqrt(12)  # deviation of an error that is even between two neighbours, of their distance
UNMEASURED_DECIMALS = 9  # from here on neither noisy enough to be looked at from afar nor as exact as float64


@dataclass(frozen=True)
class Answers:
    """A kind of answers; `amount` is the number of decimals, or the noise over the output's deviation."""

    kind: str = FLOAT64
    amount: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Answers:
        """From "float64", "float32", "float16", "labels", "decimals=3" or "noise=1e-4"."""
        name, _, value = text.strip().partition("=")
        if text.strip() in PLAIN:
            return cls(text.strip())
        if name == DECIMALS and value.isdecimal() and 1 <= int(value) <= MOST_DECIMALS:
            return cls(DECIMALS, float(value))
        amount = _number(value) if name == NOISE else math.nan
        if 0 < amount < 1:
            return cls(NOISE, amount)
        raise InvalidInput.about(
            "precision", got=f"'{text}'",
            expected=f"one of {', '.join(KINDS)} (K from 1 to {MOST_DECIMALS}, S between 0 and 1)",
        )  # fmt: skip

    def __str__(self) -> str:
        return self.kind if self.kind in PLAIN else f"{self.kind}={self.amount:g}"

    @property
    def noise(self) -> float:
        """Deviation of an answer's error where it does not grow with the answer, for outputs of deviation one."""
        return OF_ROUNDING * 10**-self.amount if self.kind == DECIMALS else self.amount

    @property
    def steady_noise(self) -> bool:
        """True for noise that is the same however large the answer is, and too large for exact methods."""
        return self.kind == NOISE or (self.kind == DECIMALS and not self.between)

    @property
    def between(self) -> bool:
        """True for decimals so many that exact methods begin, and so few that they see the rounding."""
        return self.kind == DECIMALS and self.amount >= UNMEASURED_DECIMALS


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
