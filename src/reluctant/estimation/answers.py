"""How much an answer tells: all digits of float64, fewer, or a label alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reluctant.errors import InvalidInput
from reluctant.health.answers import UNIFORM_SD

__all__ = ["KINDS", "Answers"]

FLOAT64, FLOAT32, FLOAT16, DECIMALS, NOISE, LABELS = "float64", "float32", "float16", "decimals", "noise", "labels"
ROUNDED_SINGLE = f"{FLOAT32},{DECIMALS}"
PLAIN = (FLOAT64, FLOAT32, FLOAT16, LABELS)
ROUNDED = (DECIMALS, ROUNDED_SINGLE)  # float64 or float32 behind it
KINDS = (*PLAIN, *(f"{name}=K" for name in ROUNDED), "noise=S")
MOST_DECIMALS = 15
UNMEASURED_SINGLE = 5  # decimals of float32: from here on its own digits are seen beside the rounding
UNMEASURED_DECIMALS = 9  # from here on neither noisy enough to be looked at from afar nor as exact as float64


@dataclass(frozen=True)
class Answers:
    """A kind of answers; `amount` is the number of decimals, or the noise over the output's deviation.

    "decimals=3" is float64 that is rounded, "float32,decimals=3" what a model that computes in float32 gives then.
    """

    kind: str = FLOAT64
    amount: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Answers:
        """From "float64", "float32", "float16", "labels", "decimals=3", "float32,decimals=3" or "noise=1e-4"."""
        asked = str(text).replace(" ", "")
        name, _, value = asked.partition("=")
        if asked in PLAIN:
            return cls(asked)
        if name in ROUNDED and value.isdecimal() and 1 <= int(value) <= MOST_DECIMALS:
            return cls(name, float(value))
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
        return UNIFORM_SD * 10**-self.amount if self.kind in ROUNDED else self.amount

    @property
    def steady_noise(self) -> bool:
        """True for noise that is the same however large the answer is, and too large for exact methods."""
        return self.kind == NOISE or (self.kind in ROUNDED and not self.between)

    @property
    def between(self) -> bool:
        """True for so many decimals that another way begins, and so few that it sees the rounding."""
        return self.kind in ROUNDED and self.amount >= (
            UNMEASURED_DECIMALS if self.kind == DECIMALS else UNMEASURED_SINGLE
        )

    def in_a_row(self, outputs: int) -> int:
        """How many answers a row brings: one for each output, and one label for all of them."""
        return 1 if self.kind == LABELS else outputs


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
