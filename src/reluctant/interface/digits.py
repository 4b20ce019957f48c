"""The digits of answers: decimals, number format, and the noise they cause behind a link.

Log-ratios of rounded probabilities change in steps that short lines do not see, so they seem exact. `Behind` therefore
reads the digits of the probabilities themselves. Labels written as probabilities hold nothing that a link could read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from reluctant.errors import LinkMismatch
from reluctant.messages.diagnosis import rounded_to
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles.base import Kind, Oracle
from reluctant.oracles.links import (
    ROUNDED_PROBABILITY_SLACK,
    answer_ends,
    last_raw_answers,
    link_of,
    noun_behind,
    on_a_grid,
)

MOST_DECIMALS = 12
FEWEST_VALUES = 5  # below this many different answers a grid could be chance

VALUE_ROUNDINGS = 4.0  # of a value on its way here
BEYOND = 4.0  # times the largest whole numbers of a format: it holds one in eight
UNIFORM_SD = float(1 / np.sqrt(12))  # of a rounding error, in units of the grid

# A value counts as rounded if it is this close to the grid, in units of the grid, at most: five different
# values hit it by chance once in ten million times.
GRID_SLACK = 0.02


def find_decimals(values: FloatArray) -> int | None:
    """Smallest number of decimals that holds every value, or None if they are not rounded."""
    flat = np.unique(values[np.isfinite(values) & (values != 0)])
    if flat.size < FEWEST_VALUES:
        return None
    for decimals in range(MOST_DECIMALS + 1):
        # Values that differ by less than the grid would all lie near one point of it by chance.
        with np.errstate(over="ignore"):  # answers close to the largest number
            different = np.unique(np.round(flat * 10.0**decimals)).size
        if different >= FEWEST_VALUES and on_decimals(flat, decimals):
            return None if _coarser(narrowest_format(flat), flat, decimals) else decimals
    return None


def on_decimals(values: FloatArray, decimals: int) -> bool:
    """True if every value is one of so many decimals, in float64 or float32, and could be another."""
    with np.errstate(over="ignore", invalid="ignore"):  # answers close to the largest number: on no grid
        grid = values * 10.0**decimals
        off, size = np.abs(grid - np.round(grid)), np.abs(grid).max(initial=0.0)
    slacks = (VALUE_ROUNDINGS * unit_roundoff(dtype) * size for dtype in (np.float64, np.float32))
    return any(slack < GRID_SLACK and bool(np.all(off <= slack)) for slack in slacks)


def _coarser(number_format: str, values: FloatArray, decimals: int) -> bool:
    """True if the number format leaves fewer digits than so many decimals: few bits are decimals in the end, too."""
    return bool(unit_roundoff(number_format) * np.abs(values).max() > 10.0**-decimals)


def rounding_noise(values: FloatArray) -> float:
    """Noise that rounding to decimals puts on these values, 0 if they are not rounded.

    Second differences over short steps do not see it: such steps often change nothing at all.
    """
    decimals = find_decimals(values)
    return 0.0 if decimals is None else UNIFORM_SD * 10.0**-decimals


def digits_noise(values: FloatArray) -> float:
    """Noise that all rounding puts on these values, to decimals or to a number format, as far as they tell it."""
    finite = values[np.isfinite(values)]
    size = float(np.median(np.abs(finite))) if finite.size else 0.0
    return max(rounding_noise(values), format_noise(finite) * size)


def format_noise(values: FloatArray) -> float:
    """Noise that the number format puts on each of these values, as a part of it; a few fit any format by chance."""
    if np.unique(values[np.isfinite(values)]).size < FEWEST_VALUES:
        return 0.0
    return UNIFORM_SD * unit_roundoff(narrowest_format(values))


def narrowest_format(values: FloatArray) -> str:
    """The narrowest of float16, float32 and float64 that holds every value."""
    finite = values[np.isfinite(values)]
    with np.errstate(over="ignore", under="ignore"):
        for name in ("float16", "float32"):
            if np.array_equal(finite.astype(name).astype(np.float64), finite):
                return name
    return "float64"


def format_of_whole(values: FloatArray) -> str:
    """The narrowest format that holds whole numbers, if it does not hold most others of their size too."""
    finite = values[np.isfinite(values)]
    found = narrowest_format(finite)
    beyond = np.unique(finite[unit_roundoff(found) * np.abs(finite) > BEYOND])
    return found if beyond.size >= FEWEST_VALUES else "float64"


def answer_kind(values: FloatArray, noise: float = 0.0) -> Kind:
    """Values, probabilities that add up to one, or labels; `noise` is the most that answers are off by."""
    finite = values[np.isfinite(values).all(axis=1)]
    if not len(finite):
        return Kind.VALUES
    whole = np.array_equal(finite, np.round(finite))
    if whole and finite.shape[1] == 1 and np.unique(finite).size < len(finite) / 2:
        return Kind.LABELS
    if finite.shape[1] > 1 and in_unit(finite, noise) and add_up_to_one(finite, noise):
        return Kind.PROBABILITIES
    return Kind.VALUES


def add_up_to_one(p: FloatArray, noise: float = 0.0) -> bool:
    """True of every row (n, m), but for rounding and noise."""
    return bool(np.all(np.abs(p.sum(axis=1) - 1) <= _off(p, noise)))


def _off(p: FloatArray, noise: float) -> float:
    """How far sums of probabilities may be from one: by what rounding and noise change each of them."""
    decimals, outputs = find_decimals(p), p.shape[1]
    rounding = 0.0 if decimals is None else outputs * 10.0**-decimals / 2 + unit_roundoff(np.float32)
    return max(ROUNDED_PROBABILITY_SLACK, rounding, float(np.sqrt(outputs)) * noise)


def in_unit(values: FloatArray, noise: float = 0.0) -> bool:
    """True if there are values, and all lie between 0 and 1, or beyond by no more than noise."""
    return bool(values.size and np.all((values >= -noise) & (values <= 1 + noise)))


def are_labels(values: FloatArray) -> bool:
    """True if answers are labels, as numbers or as a 1 among 0s."""
    return is_one_hot(values) or answer_kind(values) is Kind.LABELS


def look_like_labels(answers: FloatArray, kind: Kind, *, still: bool) -> bool:
    """True of labels, and of whole numbers that look like them; still: they did not change under small steps."""
    if kind is Kind.LABELS or is_one_hot(answers):
        return True
    whole = answers.shape[1] == 1 and np.array_equal(answers, np.round(answers)) and (answers.min() >= 0 or still)
    return bool(whole and (still or find_decimals(answers) is None))


def is_one_hot(values: FloatArray) -> bool:
    """True if every answer has one 1 among 0s: labels, written as probabilities."""
    finite = values[np.isfinite(values).all(axis=1)]
    return bool(
        len(finite) and finite.shape[1] > 1 and np.isin(finite, (0.0, 1.0)).all() and (finite.sum(1) == 1).all()
    )


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
