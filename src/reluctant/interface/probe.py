"""Short lines around a few inputs, and the noise of the answers on them.

On a linear piece f(c-s) - 2 f(c) + f(c+s) is noise alone, √6 times that of one answer. A step of 3e-4 of the input is
long enough that rounding errors of float32 are independent, and short enough that few steps meet a crease. Lines whose
difference still falls at the last step are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reluctant.domains import Domain
from reluctant.numerics import FloatArray, Noise, unit_roundoff
from reluctant.oracles.base import Oracle, as_answers, check_rows

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
        directions = _directions(rng, centres, oracle.facts.domain)
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
        """The same lines with every answer, less so much, so many times smaller."""
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


def _directions(rng: np.random.Generator, centres: FloatArray, domain: Domain) -> FloatArray:
    """One random direction per centre, as long as the centre, or as the room around it if that is less."""
    directions = rng.standard_normal(centres.shape)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    room = np.minimum(centres - domain.low, domain.high - centres)
    reach = np.min(room / np.abs(directions), axis=1)
    return np.asarray(directions * np.minimum(np.linalg.norm(centres, axis=1), reach)[:, None])


Ask = Callable[[FloatArray], FloatArray]


@dataclass
class Ways:
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
