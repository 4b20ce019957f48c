"""Positive numbers of any size, kept as their logarithm: a theorem may ask for 10^600 queries, floats end at 10^308."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Magnitude"]

PLAIN = (-4.0, 9.0)  # log10 of what is written out; everything else is written as a power of ten
LARGEST = math.log10(2) * 1023
SMALLEST = -LARGEST
ROUNDING = 1e-12  # relative, of a number that comes back from its logarithm
EXACT = 15.0  # log10 up to which a float still tells a number from the next integer


@dataclass(frozen=True, order=True)
class Magnitude:
    """A number x ≥ 0 as log10(x); sums, products and powers of such numbers and of plain ones."""

    log10: float

    @classmethod
    def of(cls, x: float | Magnitude) -> Magnitude:
        """From a plain number that is not negative."""
        if isinstance(x, Magnitude):
            return x
        return cls(math.log10(x) if x else -math.inf)

    def __mul__(self, other: float | Magnitude) -> Magnitude:
        return Magnitude(self.log10 + Magnitude.of(other).log10)

    __rmul__ = __mul__

    def __truediv__(self, other: float | Magnitude) -> Magnitude:
        return Magnitude(self.log10 - Magnitude.of(other).log10)

    def __rtruediv__(self, other: float) -> Magnitude:
        return Magnitude.of(other) / self

    def __pow__(self, power: float) -> Magnitude:
        return Magnitude(self.log10 * power)

    def __add__(self, other: float | Magnitude) -> Magnitude:
        small, large = sorted((self.log10, Magnitude.of(other).log10))
        if small == -math.inf:
            return Magnitude(large)
        return Magnitude(large + math.log1p(10 ** (small - large)) / math.log(10))

    __radd__ = __add__

    def ceil(self) -> Magnitude:
        """The next integer; the number itself where a float no longer tells integers apart."""
        if self.log10 > EXACT:
            return self
        x = float(self)
        nearest = round(x)
        # The logarithm keeps about 15 digits: an integer that comes back a rounding too large is that integer.
        return Magnitude.of(nearest if math.isclose(x, nearest, rel_tol=ROUNDING) else math.ceil(x))

    def __float__(self) -> float:
        """The plain number; never 0 or inf in place of one that a float cannot hold."""
        if self.log10 == -math.inf:
            return 0.0
        if not SMALLEST <= self.log10 <= LARGEST:
            raise OverflowError(f"10^{self.log10:.1f} does not fit a float; use log10")
        return float(10.0**self.log10)

    def __str__(self) -> str:
        if self.log10 == -math.inf:
            return "0"
        if not PLAIN[0] <= self.log10 <= PLAIN[1]:
            return f"10^{self.log10:.1f}"
        x = float(self)
        return f"{x:,.0f}" if x >= 1000 else f"{x:.3g}"
