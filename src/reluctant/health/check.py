"""The check itself: one batch of short lines, the same centres again, and a look far out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reluctant.errors import InvalidInput, TargetError
from reluctant.health.answers import answer_kind, find_decimals, narrowest_format
from reluctant.health.noise import SECOND_DIFFERENCE_GAIN, NoiseReading, noise_model, read_noise, short_lines
from reluctant.health.shape import FINER_STEPS, STEPS, classify_shape, still_falling
from reluctant.health.summary import Health, Shape
from reluctant.numerics import FloatArray, Noise, Rng, as_generator
from reluctant.oracles.base import Oracle
from reluctant.oracles.counting import Counting
from reluctant.oracles.opening import as_opened

__all__ = ["check_health"]

FAR_SCALES = (1e2, 1e4, 1e6)
NOISE_SCALE = 1e4  # far enough that relative noise is seen apart from absolute noise
UNCHANGED = 1e-9  # relative; a piecewise linear function grows a hundredfold between far scales
UNIFORM_SD = float(1 / np.sqrt(12))  # of a rounding error, in units of the grid


def check_health(oracle: Oracle, *, rng: Rng = 0, lines: int = 6) -> Health:
    """Look at a target's query interface: noise, rounding, shape, faults.

    Cost: 10 rows a line and, if inputs are unbounded, 5 more a line far out: 90 rows by default. A target
    that is smooth or has creases very close to each other is asked 2 to 6 more rows a line.
    """
    if lines < 2:
        raise InvalidInput.about("lines", got=lines, expected="at least 2")
    opened, generator = as_opened(oracle), as_generator(rng)
    opened.begin("health", rng)
    before = opened.queries
    with opened.stage("health", expected=15 * lines):
        near = _ask_near(opened, generator, lines)
        far = _ask_far(opened, generator, near) if opened.facts.domain.is_space else {}
    return _summarise(near, far, opened.queries - before, not opened.facts.domain.is_space)


@dataclass(frozen=True)
class _Near:
    """Answers along short lines at the scale of use; `repeated` are the centres asked once more."""

    centres: FloatArray  # (n, d)
    at_centres: FloatArray  # (n, m)
    repeated: FloatArray  # (n, m)
    ahead: FloatArray  # (steps, n, m)
    behind: FloatArray  # (steps, n, m)

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


def _ask_near(oracle: Counting, rng: np.random.Generator, lines: int) -> _Near:
    domain = oracle.facts.domain
    centres = domain.interior(rng, lines, oracle.dim)
    offsets = short_lines(rng, centres, domain, (*STEPS, *FINER_STEPS))
    # The same batch twice: a deterministic target may still round differently in a batch of another size.
    at_centres, repeated = _ask(oracle, centres), _ask(oracle, centres)
    near = _Near(centres, at_centres, repeated, *_ask_both_ways(oracle, centres, offsets[: len(STEPS)]))
    for offset in offsets[len(STEPS) :]:
        if not (near.sound.any() and still_falling(near.second_differences)):
            break
        ahead, behind = _ask_both_ways(oracle, centres, offset[None])
        near = replace(
            near, ahead=np.concatenate([near.ahead, ahead]), behind=np.concatenate([near.behind, behind])
        )
    return near


def _ask_both_ways(oracle: Counting, centres: FloatArray, offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
    answers = _ask(oracle, np.concatenate([centres + offsets, centres - offsets]))
    ahead, behind = answers.reshape(2, len(offsets), len(centres), -1)
    return ahead, behind


def _ask(oracle: Counting, rows: FloatArray) -> FloatArray:
    # `answer` lets NaN and inf through: here they are findings, not errors.
    return oracle.answer(np.ascontiguousarray(rows.reshape(-1, oracle.dim)))


def _ask_far(oracle: Counting, rng: np.random.Generator, near: _Near) -> dict[float, FloatArray]:
    """Answers (3, n, m) at centres, ahead and behind, for every far scale that is answered."""
    step = (*STEPS, *FINER_STEPS)[len(near.ahead) - 1]  # as fine as was needed near the origin
    found = {}
    for scale in FAR_SCALES:
        points = scale * near.centres
        if scale == NOISE_SCALE:
            (offset,) = short_lines(rng, points, oracle.facts.domain, (step,))
            points = np.concatenate([points, points + offset, points - offset])
        try:
            found[scale] = _ask(oracle, points).reshape(-1, len(near.centres), oracle.outputs)
        except TargetError:
            break
    return found


def _summarise(near: _Near, far: dict[float, FloatArray], queries: int, bounded: bool) -> Health:
    everything = np.concatenate(
        [near.answers, near.repeated, *(a.reshape(-1, a.shape[-1]) for a in far.values())]
    )
    decimals = find_decimals(near.answers)
    near_noise = _near_reading(near, decimals)
    far_noise = _far_reading(far)
    spread = _spread(near)
    shape = _shape(near, near_noise)
    fresh = near.repeated - near.at_centres
    finite = {scale: bool(np.isfinite(answers).all()) for scale, answers in far.items()}
    return Health(
        shape=shape,
        deterministic=np.array_equal(near.repeated, near.at_centres, equal_nan=True),
        fresh_noise=float(np.sqrt(np.nanmean(fresh**2) / 2)) if near.sound.any() else float("nan"),
        noise=noise_model(near_noise, far_noise) if near_noise else Noise(float("nan"), float("nan")),
        readings=tuple(reading for reading in (near_noise, far_noise) if reading),
        spread=spread,
        decimals=decimals,
        number_format=narrowest_format(near.answers),
        answers=answer_kind(near.answers),
        nonfinite=int((~np.isfinite(everything).all(axis=1)).sum()),
        largest_scale=None if bounded else max([1.0, *(scale for scale, good in finite.items() if good)]),
        constant_beyond=None if shape is Shape.CONSTANT else _constant_beyond(near, far),
        queries=queries,
    )


def _near_reading(near: _Near, decimals: int | None) -> NoiseReading | None:
    sound = near.sound
    if not sound.any():
        return None
    reading = read_noise(near.at_centres[sound], near.ahead[-1][sound], near.behind[-1][sound], 1.0)
    # Rounding to a coarse grid hides its own noise: short steps often change nothing at all.
    grid = 0.0 if decimals is None else UNIFORM_SD * 10.0**-decimals
    return NoiseReading(reading.scale, max(reading.sd, grid), reading.magnitude)


def _far_reading(far: dict[float, FloatArray]) -> NoiseReading | None:
    answers = far.get(NOISE_SCALE)
    if answers is None or not np.isfinite(answers).all():
        return None
    return read_noise(*answers, NOISE_SCALE)


def _spread(near: _Near) -> float:
    answers = near.finite_answers
    return float(answers.std(axis=0).max()) if len(answers) else float("nan")


def _shape(near: _Near, noise: NoiseReading | None) -> Shape:
    sound = near.sound
    if noise is None or 2 * sound.sum() < len(sound):
        return Shape.UNCLEAR
    change = np.abs(near.ahead[1] - near.at_centres).max(axis=1)[sound]
    sd = noise.sd * SECOND_DIFFERENCE_GAIN
    return classify_shape(near.second_differences, change, sd, near.finite_answers)


def _constant_beyond(near: _Near, far: dict[float, FloatArray]) -> float | None:
    """Smallest scale from which answers at the same rays stay the same, all the way out."""
    by_scale = {1.0: near.at_centres} | {scale: answers[0] for scale, answers in far.items()}
    scales = sorted(by_scale)
    start = None
    for inner, outer in zip(reversed(scales[:-1]), reversed(scales[1:]), strict=True):
        size = np.abs(by_scale[outer]).max()
        with np.errstate(invalid="ignore"):  # inf - inf is NaN, which is a change
            unchanged = np.abs(by_scale[outer] - by_scale[inner]) <= UNCHANGED * size
        if not unchanged.all():
            break
        start = inner
    return start
