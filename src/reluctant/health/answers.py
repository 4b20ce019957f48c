"""What the answers themselves tell: rounded to how many decimals, which number format, which kind."""

from __future__ import annotations

import numpy as np

from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles.base import Kind
from reluctant.oracles.links import ROUNDED_PROBABILITY_SLACK

__all__ = [
    "UNIFORM_SD",
    "add_up_to_one",
    "answer_kind",
    "digits_noise",
    "find_decimals",
    "format_noise",
    "format_of_whole",
    "in_unit",
    "is_one_hot",
    "narrowest_format",
    "on_decimals",
    "rounded_to",
    "rounding_noise",
]

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


def rounded_to(decimals: int) -> str:
    """In words, of answers with so many digits after the point."""
    return "rounded to whole numbers" if decimals == 0 else f"rounded to {decimals} decimal{'s' * (decimals != 1)}"


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


def is_one_hot(values: FloatArray) -> bool:
    """True if every answer has one 1 among 0s: labels, written as probabilities."""
    finite = values[np.isfinite(values).all(axis=1)]
    return bool(
        len(finite) and finite.shape[1] > 1 and np.isin(finite, (0.0, 1.0)).all() and (finite.sum(1) == 1).all()
    )
