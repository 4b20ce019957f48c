"""What stands behind a link: the probabilities that its values were read from, and the digits they were told in.

Log-ratios of rounded probabilities change in steps that short lines do not see: without a look at what they were read
from they seem to be exact. Labels written as probabilities have nothing that a link could read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from reluctant.errors import LinkMismatch
from reluctant.health.answers import UNIFORM_SD, find_decimals, in_unit, narrowest_format, rounded_to
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles.base import Oracle
from reluctant.oracles.link import last_told
from reluctant.oracles.lost_digits import on_a_grid

__all__ = ["ENOUGH_DECIMALS", "Behind", "refuse_labels"]

# With fewer the values behind a link change in steps that methods see; with so many a few networks are recovered.
ENOUGH_DECIMALS = 7
LABELS = "The target answers labels, which no link can read: leave the link out (link='identity')."
ALWAYS_CERTAIN = (
    "One class is certain at all of them, by a label or by a probability without a digit left, and no link can read "
    "that: leave the link out (link='identity'), or ask where another class is likely (domain=)."
)
HALF_THE_DIGITS = float(np.sqrt(unit_roundoff(np.float64)))  # of 1: nearer to it than this more of them are lost
UNDECIDED = 1e-3  # a probability by so much away from 0 and 1


@dataclass(frozen=True)
class Behind:
    """decimals: that the probabilities are rounded to, None if they are not; noise: what that puts on the values.

    certain: every one of them was exactly 0 or 1, as labels are, and as all are where they saturate.
    number_format: the narrowest that holds them. next_to_one: some lie where few numbers are left up to 1, so that
    values read from them change in steps. on_a_grid: none has more digits than a rounding of 1 leaves.
    """

    decimals: int | None
    noise: float
    certain: bool = False
    number_format: str = "float64"
    next_to_one: bool = False
    on_a_grid: bool = False

    @property
    def too_coarse(self) -> bool:
        """True if no method can read values from so few digits."""
        return self.number_format == "float16" or (self.decimals is not None and self.decimals < ENOUGH_DECIMALS)

    @property
    def told(self) -> str:
        """In which digits the probabilities were told."""
        return f"in {self.number_format}" if self.decimals is None else rounded_to(self.decimals)

    @classmethod
    def last_of(cls, oracle: Oracle, told: Sequence[FloatArray] = ()) -> Self | None:
        """Those of the last rows that were asked; None without a link. Their digits are known by all that was told."""
        p = last_told(oracle)
        return None if p is None else cls.of(p, ratios=oracle.facts.reference, told=told)

    @classmethod
    def of(cls, p: FloatArray, *, ratios: bool, told: Sequence[FloatArray] = ()) -> Self:
        """Probabilities of classes whose ratios are read, or of which each is read by itself."""
        everything = np.concatenate(told) if len(told) else p
        p, everything = (np.where(np.isnan(each), 0.0, each) for each in (p, everything))  # not told
        decimals = _decimals(everything) if in_unit(everything) else None  # log-probabilities are values themselves
        certain = bool(np.isin(p, (0.0, 1.0)).all() and (p == 1).any())
        number_format = "float64" if certain else narrowest_format(everything)
        seen = number_format, _next_to_one(p), on_a_grid(everything, number_format)
        if not in_unit(p) or certain or (decimals is None and number_format == "float64"):
            return cls(None, 0.0, certain, *seen)
        unit = _unit(p, number_format) if decimals is None else np.full_like(p, 10.0**-decimals)
        room = _completed(p, unit) if ratios else np.minimum(p, 1 - p)
        with np.errstate(divide="ignore", invalid="ignore"):
            worst = np.max(unit / room, axis=1, initial=0.0, where=room > 0)  # error of a logarithm
        return cls(decimals, float(UNIFORM_SD * np.median(worst)), False, *seen)


def _next_to_one(p: FloatArray) -> bool:
    return bool(np.any((p <= 1) & (p > 1 - HALF_THE_DIGITS)))


def _decimals(p: FloatArray) -> int | None:
    """Decimals of probabilities; of those that are nearly certain, which lie near 0 and 1 anyhow, nothing is told."""
    open_ = p[(p > UNDECIDED) & (p < 1 - UNDECIDED)]
    return None if find_decimals(open_) is None else find_decimals(p)


def _unit(p: FloatArray, number_format: str) -> FloatArray:
    """Distance of numbers of a format; of one that follows from the others in its row, that of the largest."""
    return np.asarray(2 * unit_roundoff(number_format) * np.where(p > 0, p, p.max(axis=1, keepdims=True)))


def _completed(p: FloatArray, unit: FloatArray) -> FloatArray:
    """With the one probability that is missing in a row, where the others leave more to it than their digits do."""
    left = 1 - p.sum(axis=1, keepdims=True)
    follows = ((p == 0).sum(axis=1, keepdims=True) == 1) & (left > unit.sum(axis=1, keepdims=True))
    return np.where((p == 0) & follows, left, p)


def refuse_labels(oracle: Oracle) -> None:
    """Raise `LinkMismatch` if all that the last rows were answered with behind a link is 0 or 1."""
    behind, p = Behind.last_of(oracle), last_told(oracle)
    if behind is not None and p is not None and behind.certain:
        raise LinkMismatch(
            "link: got nothing but 0 and 1, also at inputs close to the origin, expected probabilities. "
            + (LABELS if np.ptp(p, axis=0).any() else ALWAYS_CERTAIN)
        )
