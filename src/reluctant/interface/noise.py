"""Noise and digits of answers: short lines around a few inputs, decimals, number formats, probabilities before a link.

On a linear piece f(c-s) - 2 f(c) + f(c+s) is noise alone, √6 times that of one answer. A step of 3e-4 of the input is
long enough that rounding errors of float32 are independent, and short enough that few steps meet a crease. Lines whose
difference still falls at the last step are left out.

Log-ratios of rounded probabilities change in steps that short lines do not show, so they seem exact. `RawDigits`
therefore reads the digits of the probabilities themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reluctant.errors import LinkMismatch, words
from reluctant.messages.diagnosis import rounded_to
from reluctant.numerics import FloatArray, Noise, unit_roundoff
from reluctant.oracles.base import Ask, Kind, Oracle, as_answers, check_rows
from reluctant.oracles.links import (
    ROUNDED_PROBABILITY_SLACK,
    answer_ends,
    last_raw_answers,
    lost_digits,
    noun_behind,
    on_a_grid,
)

# ---- short lines

# Steps are relative to the size of the input. Asked one after the other while second differences still
# fall: then creases or curvature are in the way of the noise.
FINER_STEPS = (3e-5, 3e-6, 3e-7)
STEP_RATIO = 10.0

# Rounding errors of neighbouring inputs are alike, so noise falls a little with the step too: not by this.
NOISE_FALL = 5.0


@dataclass(frozen=True)
class ShortLines:
    """Answers along n lines; steps go from long to short."""

    centres: FloatArray  # (n, d)
    at_centres: FloatArray  # (n, m)
    ahead: FloatArray  # (steps, n, m)
    behind: FloatArray  # (steps, n, m)
    steps: tuple[float, ...]
    directions: FloatArray | None = None  # (n, d), of a step of 1

    @classmethod
    def ask(
        cls,
        oracle: Oracle,
        rng: np.random.Generator,
        centres: FloatArray,
        steps: tuple[float, ...],
        finer: tuple[float, ...] = (),
    ) -> Self:
        """Ask every line at all `steps`, then at `finer` ones as long as the noise is not reached.

        Cost: 1 + 2·steps rows a line, and 2 for each finer step. NaN and inf are let through.
        """
        vectors = rng.standard_normal(centres.shape)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        room = np.minimum(centres - oracle.facts.domain.low, oracle.facts.domain.high - centres)
        reach = np.min(room / np.abs(vectors), axis=1)
        directions = np.asarray(vectors * np.minimum(np.linalg.norm(centres, axis=1), reach)[:, None])
        lines = cls(centres, ask(oracle, centres), *_both_ways(oracle, centres, directions, steps), steps, directions)
        for step in finer:
            if not (lines.sound.any() and lines.still_falling):
                break
            ahead, behind = _both_ways(oracle, centres, directions, (step,))
            lines = replace(
                lines,
                ahead=np.concatenate([lines.ahead, ahead]),
                behind=np.concatenate([lines.behind, behind]),
                steps=(*lines.steps, step),
            )
        return lines

    def divided(self, by: float, above: float = 0.0) -> Self:
        """The lines with `above` subtracted from every answer, and divided by `by`."""
        centres, ahead, behind = ((each - above) / by for each in (self.at_centres, self.ahead, self.behind))
        return replace(self, at_centres=centres, ahead=ahead, behind=behind)

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The rows of all lines that are farthest apart, centres and longest steps, and their answers."""
        if self.directions is None or not self.steps:
            return self.centres, self.at_centres
        longest = self.steps[0] * self.directions
        rows = np.concatenate([self.centres, self.centres + longest, self.centres - longest])
        return rows, np.concatenate([self.at_centres, self.ahead[0], self.behind[0]])

    @property
    def answers(self) -> FloatArray:
        """All answers, one row each."""
        m = self.at_centres.shape[1]
        return np.concatenate([self.at_centres, self.ahead.reshape(-1, m), self.behind.reshape(-1, m)])

    @property
    def finite_answers(self) -> FloatArray:
        """The answers that hold neither NaN nor inf."""
        return self.answers[np.isfinite(self.answers).all(axis=1)]

    @property
    def sound(self) -> NDArray[np.bool_]:
        """Lines on which every answer is finite."""
        stacked = np.concatenate([self.at_centres[None], self.ahead, self.behind])
        return np.asarray(np.isfinite(stacked).all(axis=(0, 2)))

    @property
    def second_differences(self) -> FloatArray:
        """Sizes (steps, sound lines) of f₋ - 2 f₀ + f₊, largest output."""
        sound = self.sound
        second = self.ahead[:, sound] - 2 * self.at_centres[sound] + self.behind[:, sound]
        return np.asarray(np.abs(second).max(axis=2))

    def second_difference_noise(self, noise: FloatArray) -> FloatArray:
        """Noise of second differences (steps, sound lines) from that of answers (n, m), for the noisiest output."""
        n, steps = len(self.centres), len(self.steps)
        at, ahead, behind = np.split(noise, [n, n + steps * n])
        shape = steps, n, -1
        total = np.sqrt(ahead.reshape(shape) ** 2 + 4 * at**2 + behind.reshape(shape) ** 2)
        return np.asarray(total.max(axis=2)[:, self.sound])

    @property
    def still_falling(self) -> bool:
        """True if most lines have not reached the noise at the last step."""
        longer, shorter = np.median(self.second_differences[-2:], axis=1)
        return bool(longer > NOISE_FALL * shorter > 0)


def finite_ends(lines: Iterable[ShortLines]) -> tuple[FloatArray, FloatArray]:
    """The rows of all these that are farthest apart, and their answers, where these are finite."""
    rows, answers = (np.concatenate(each) for each in zip(*(each.ends for each in lines), strict=True))
    finite = np.isfinite(answers).all(axis=1)
    return rows[finite], answers[finite]


def ask(oracle: Oracle, rows: FloatArray) -> FloatArray:
    """Answers with NaN and inf let through: in a health check they are findings, not errors."""
    checked = check_rows(rows.reshape(-1, oracle.dim), oracle.dim, oracle.facts.domain)
    return as_answers(oracle.answer(checked), len(checked), oracle.outputs)


def _both_ways(
    oracle: Oracle, centres: FloatArray, directions: FloatArray, steps: tuple[float, ...]
) -> tuple[FloatArray, FloatArray]:
    if not steps:
        return (np.empty((0, len(centres), oracle.outputs)),) * 2
    offsets = np.multiply.outer(steps, directions)
    answers = ask(oracle, np.concatenate([centres + offsets, centres - offsets]))
    ahead, behind = answers.reshape(2, len(steps), len(centres), -1)
    return ahead, behind


@dataclass
class Paths:
    """Rows (n, d) at both ends of n ways, and the answers (n, m) to them."""

    start: FloatArray
    at_start: FloatArray
    end: FloatArray
    at_end: FloatArray

    @property
    def apart(self) -> FloatArray:
        """How far apart the answers (n,) are at both ends."""
        return np.asarray(np.abs(self.at_start - self.at_end).max(axis=1))

    def halve(self, ask: Ask, least: float = 0.0) -> None:
        """Keep the half of each way that changes more; ways that change by less than `least` stay as they are."""
        on = np.flatnonzero((self.apart >= least) & (self.apart > 0))
        if not len(on):
            return
        middle = (self.start[on] + self.end[on]) / 2
        at = ask(middle)
        to_start, to_end = (np.abs(at - side[on]).max(axis=1) for side in (self.at_start, self.at_end))
        first = to_start >= to_end
        self.end[on[first]], self.at_end[on[first]] = middle[first], at[first]
        self.start[on[~first]], self.at_start[on[~first]] = middle[~first], at[~first]


NOISE_STEPS = (3e-4, 3e-5)
MEDIAN_OF_ABS_NORMAL = 0.6745  # median |z| of a standard normal
OUTLIER = 1e4  # times the median second difference of all lines
SECOND_DIFFERENCE_GAIN = float(np.sqrt(6.0))  # sd of f₋ - 2 f₀ + f₊ over that of one f


@dataclass(frozen=True)
class NoiseReading:
    """Noise found at one input scale: standard deviation, and size of the answers there."""

    scale: float
    sd: float
    magnitude: float


def read_noise(lines: ShortLines, scale: float) -> NoiseReading:
    """Noise of the largest output, from the lines that have reached it."""
    longer, shorter = lines.second_differences[-2:]
    reached = longer <= NOISE_FALL * shorter
    # Two creases on one line can bend both steps alike; noise is not so different from line to line.
    typical = float(np.median(longer))
    reached &= (longer <= OUTLIER * typical) | (typical == 0)
    if 2 * reached.sum() >= len(reached):
        # The longer of the two steps is read: rounding errors are less alike there.
        size = float(np.sqrt(np.mean(longer[reached] ** 2)))
    else:
        size = float(np.median(shorter)) / MEDIAN_OF_ABS_NORMAL  # most lines just left a crease behind
    magnitude = float(np.median(np.abs(lines.at_centres[lines.sound]).max(axis=1)))
    # Differences of exact zero are common on coarse grids: no noise is below one rounding of the answer.
    floor = unit_roundoff(np.float64) * magnitude
    return NoiseReading(scale, max(size / SECOND_DIFFERENCE_GAIN, floor), magnitude)


def noise_model(near: NoiseReading, far: NoiseReading | None) -> Noise:
    """Absolute part as read at the scale of use, relative part as read far out."""
    return Noise(near.sd, 0.0 if far is None or far.magnitude == 0 else far.sd / far.magnitude)


def measure_noise(oracle: Oracle, rng: np.random.Generator, scale: float = 1.0, lines: int = 6) -> NoiseReading | None:
    """Noise at one scale, None if no line is answered with finite numbers.

    Cost: 5 rows a line, a few more where creases are close to each other.
    """
    centres = oracle.facts.domain.interior(rng, lines, oracle.dim, scale)
    asked = ShortLines.ask(oracle, rng, centres, NOISE_STEPS, FINER_STEPS[1:])
    return read_noise(asked, scale) if asked.sound.any() else None


# ---- decimals and number formats

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


def integer_format(values: FloatArray) -> str:
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


def are_log_probabilities(values: FloatArray) -> bool:
    """True of several outputs whose exponentials add up to one."""
    with np.errstate(over="ignore"):
        return values.shape[1] > 1 and answer_kind(np.exp(values)) is Kind.PROBABILITIES


def add_up_to_one(p: FloatArray, noise: float = 0.0) -> bool:
    """True of every row (n, m), but for rounding and noise."""
    decimals, outputs = find_decimals(p), p.shape[1]
    rounding = 0.0 if decimals is None else outputs * 10.0**-decimals / 2 + unit_roundoff(np.float32)
    slack = max(ROUNDED_PROBABILITY_SLACK, rounding, float(np.sqrt(outputs)) * noise)
    return bool(np.all(np.abs(p.sum(axis=1) - 1) <= slack))


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
FITTED_DECIMALS = 3  # a fit of one hidden layer to probabilities needs no more
LABELS = words("The target answers labels, which no link can read: leave the link out ({link}).", link="identity")
ALWAYS_CERTAIN = words(
    "They are the same at all of them, as one label is, or an answer without a digit left, and no link can read "
    "that: leave the link out ({link}), or ask where answers are not certain ({domain}).",
    link="identity",
)
HALF_THE_DIGITS = float(np.sqrt(unit_roundoff(np.float64)))  # of 1: nearer to it than this more of them are lost
UNDECIDED = 1e-3  # a probability by so much away from 0 and 1


@dataclass(frozen=True)
class RawDigits:
    """The digits of a target's own answers, from which a link reads values.

    decimals: that the answers are rounded to; None if they are not.
    noise: what that rounding puts on the values.
    certain: every answer was at an end (0 or 1; -1 or 1 behind a tanh), as labels are, and as all are where they
        saturate.
    number_format: the narrowest that holds the answers.
    link: its name.
    next_to_one: some answers lie so close to 1 (or -1 behind a tanh) that values read from them change in steps.
    on_a_grid: none has more digits than a rounding of 1 leaves.
    """

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

    def may_be_fitted(self, outputs: int) -> bool:
        """True if so many values, of one hidden layer, may be fitted to the probabilities themselves."""
        one = self.link == "softmax" or (self.link == "sigmoid" and outputs == 1)
        enough = self.number_format == "float32" if self.decimals is None else self.decimals >= FITTED_DECIMALS
        return one and enough

    @property
    def digits_text(self) -> str:
        """The digits of the probabilities, as text."""
        return f"in {self.number_format}" if self.decimals is None else rounded_to(self.decimals)

    def lost(self, values: FloatArray, oracle: Oracle) -> FloatArray:
        """Noise (n, m) of values of this target for digits that such probabilities have lost next to 0 and 1."""
        made_of_others = self.link == "top-k"  # the missing one is what the others leave of 1
        rounding = None if self.decimals is None else UNIFORM_SD * 10.0**-self.decimals
        grid = self.on_a_grid or made_of_others or rounding is not None
        return lost_digits(values, oracle, self.number_format, grid=grid, rounding=rounding)

    @classmethod
    def last_of(cls, oracle: Oracle, every: Sequence[FloatArray] = ()) -> Self | None:
        """The digits of the last rows; None without a link. every: all answers so far, which show the digits."""
        p = last_raw_answers(oracle)
        return None if p is None else cls.of(p, oracle.facts.link, ratios=oracle.facts.reference, every=every)

    @classmethod
    def behind(cls, oracle: Oracle, raw: Sequence[FloatArray]) -> Self:
        """The answers that the link of this oracle read; some were noted."""
        return cls.of(np.concatenate(raw), oracle.facts.link, ratios=oracle.facts.reference)

    @classmethod
    def of(cls, p: FloatArray, link: str | None, *, ratios: bool, every: Sequence[FloatArray] = ()) -> Self:
        """Answers that this link reads: probabilities of classes by their ratios, or each by itself."""
        low, high = answer_ends(link)
        everything = np.concatenate(every) if len(every) else p
        p, everything = (np.where(np.isnan(each), 0.0, each) for each in (p, everything))  # not given
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
    """Decimals of answers from low to 1; of those that are nearly certain, near the ends anyhow, nothing is known."""
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
    behind, p = RawDigits.last_of(oracle), last_raw_answers(oracle)
    if behind is not None and p is not None and behind.certain:
        raise LinkMismatch(
            f"link: got nothing but {behind.ends('and')}, also at inputs close to the origin, expected {behind.noun}."
        ).advised(LABELS if np.ptp(p, axis=0).any() else ALWAYS_CERTAIN)
