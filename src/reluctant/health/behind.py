"""What stands behind a link: the answers that its values were read from, and the digits they were told in.

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
from reluctant.oracles.links import answer_ends, last_raw_answers, link_of, noun_behind, on_a_grid

__all__ = ["ENOUGH_DECIMALS", "Behind", "refuse_labels"]

# With fewer the values behind a link change in steps that methods see; with so many a few networks are recovered.
ENOUGH_DECIMALS = 7
LABELS = "The target answers labels, which no link can read: leave the link out (link='identity')."
ALWAYS_CERTAIN = (
    "They are the same at all of them, as one label is, or an answer without a digit left, and no link can read "
    "that: leave the link out (link='identity'), or ask where answers are not certain (domain=)."
)
HALF_THE_DIGITS = float(np.sqrt(unit_roundoff(np.float64)))  # of 1: nearer to it than this more of them are lost
UNDECIDED = 1e-3  # a probability by so much away from 0 and 1


@dataclass(frozen=True)
class Behind:
    """decimals: that the probabilities are rounded to, None if they are not; noise: what that puts on the values.

    certain: every one of them was exactly 0 or 1, as labels are, and as all are where they saturate.
    number_format: the narrowest that holds them. link: which it is. Behind a tanh they are answers, and not
    probabilities, and certain at -1 and 1. next_to_one: some lie where few numbers are left up to 1, or -1 behind a
    tanh, so that values read from them change in steps. on_a_grid: none has more
    digits than a rounding of 1 leaves."""

    decimals: int | None
    noise: float
    certain: bool = False
    number_format: str = "float64"
    link: str | None = None
    next_to_one: bool = False
    on_a_grid: bool = False

    @property
    def noun(self) -> str:
        """What they are, in a word."""
        return noun_behind(self.link)

    def ends(self, joint: str = "or") -> str:
        """Where nothing can be read."""
        low, high = answer_ends(self.link)
        return f"{low} {joint} {high}"

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
        p = last_raw_answers(oracle)
        return None if p is None else cls.of(p, link_of(oracle), ratios=oracle.facts.reference, told=told)

    @classmethod
    def of(cls, p: FloatArray, link: str | None, *, ratios: bool, told: Sequence[FloatArray] = ()) -> Self:
        """Answers that this link reads: probabilities of classes by their ratios, or each by itself."""
        low, high = answer_ends(link)
        everything = np.concatenate(told) if len(told) else p
        p, everything = (np.where(np.isnan(each), 0.0, each) for each in (p, everything))  # not told
        # Log-probabilities are values themselves.
        decimals = _decimals(everything, low) if _within(everything, low) else None
        certain = bool(np.isin(p, (low, high)).all() and (p == 1).any())
        number_format = "float64" if certain else narrowest_format(everything)
        seen = number_format, link, _next_to_one(p), on_a_grid(everything, number_format)
        if not _within(p, low) or certain or (decimals is None and number_format == "float64"):
            return cls(None, 0.0, certain, *seen)
        unit = _unit(p, number_format) if decimals is None else np.full_like(p, 10.0**-decimals)
        room = _completed(p, unit) if ratios else np.minimum(p - low, 1 - p)
        with np.errstate(divide="ignore", invalid="ignore"):
            worst = np.max(unit / room, axis=1, initial=0.0, where=room > 0)  # error of a logarithm
        return cls(decimals, float(UNIFORM_SD * np.median(worst)), False, *seen)


def _next_to_one(p: FloatArray) -> bool:
    return bool(np.any((np.abs(p) <= 1) & (np.abs(p) > 1 - HALF_THE_DIGITS)))


def _within(p: FloatArray, low: float) -> bool:
    return in_unit((p - low) / (1 - low))


def _decimals(p: FloatArray, low: float) -> int | None:
    """Decimals of answers from low to 1; of those that are nearly certain, near the ends anyhow, nothing is told."""
    open_ = p[(p > low + UNDECIDED) & (p < 1 - UNDECIDED)]
    return None if find_decimals(open_) is None else find_decimals(p)


def _unit(p: FloatArray, number_format: str) -> FloatArray:
    """Distance of numbers of a format; of one that follows from the others in its row, that of the largest."""
    return np.asarray(2 * unit_roundoff(number_format) * np.where(p != 0, np.abs(p), p.max(axis=1, keepdims=True)))


def _completed(p: FloatArray, unit: FloatArray) -> FloatArray:
    """With the one probability that is missing in a row, where the others leave more to it than their digits do."""
    left = 1 - p.sum(axis=1, keepdims=True)
    follows = ((p == 0).sum(axis=1, keepdims=True) == 1) & (left > unit.sum(axis=1, keepdims=True))
    return np.where((p == 0) & follows, left, p)


def refuse_labels(oracle: Oracle) -> None:
    """Raise `LinkMismatch` if all that the last rows were answered with behind a link is an end, as 0 or 1."""
    behind, p = Behind.last_of(oracle), last_raw_answers(oracle)
    if behind is not None and p is not None and behind.certain:
        raise LinkMismatch(
            f"link: got nothing but {behind.ends('and')}, also at inputs close to the origin, expected {behind.noun}. "
            + (LABELS if np.ptp(p, axis=0).any() else ALWAYS_CERTAIN)
        )
