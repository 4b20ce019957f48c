"""How far answers are from the function they sample: second differences over short steps.

On a linear piece f(c-s) - 2 f(c) + f(c+s) is noise alone, √6 times that of one answer. A step of 3e-4 of
the input is long enough that rounding errors of float32 are independent, and short enough that few
steps meet a crease; the median over lines ignores those that do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.domains import Domain
from reluctant.numerics import FloatArray, Noise, unit_roundoff
from reluctant.oracles.base import Oracle

__all__ = ["NoiseReading", "measure_noise", "noise_model", "read_noise", "short_lines"]

NOISE_STEP = 3e-4  # relative to the size of the input
SECOND_DIFFERENCE_GAIN = float(np.sqrt(6.0))  # sd of f₋ - 2 f₀ + f₊ over that of one f
MEDIAN_OF_ABS_NORMAL = 0.6745  # median |z| of a standard normal


@dataclass(frozen=True)
class NoiseReading:
    """Noise found at one input scale: standard deviation, and size of the answers there."""

    scale: float
    sd: float
    magnitude: float


def short_lines(
    rng: np.random.Generator, centres: FloatArray, domain: Domain, steps: tuple[float, ...]
) -> FloatArray:
    """Offsets (steps, n, d) along one random direction per centre.

    Steps are relative to the size of the centre, or to the room around it where the domain is tighter.
    """
    directions = rng.standard_normal(centres.shape)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    reach = _reach(centres, directions, domain)
    sizes = np.linalg.norm(centres, axis=1)
    lengths = np.multiply.outer(steps, np.minimum(sizes, reach))
    return lengths[:, :, None] * directions


def _reach(centres: FloatArray, directions: FloatArray, domain: Domain) -> FloatArray:
    """How far both ways from each centre the domain goes."""
    room = np.minimum(centres - domain.low, domain.high - centres)
    with np.errstate(divide="ignore"):
        return np.asarray(np.min(room / np.abs(directions), axis=1))


def read_noise(centre: FloatArray, ahead: FloatArray, behind: FloatArray, scale: float) -> NoiseReading:
    """Noise from answers (n, m) at centres and one step to both sides."""
    second = np.abs(ahead - 2 * centre + behind) / SECOND_DIFFERENCE_GAIN / MEDIAN_OF_ABS_NORMAL
    magnitude = float(np.median(np.abs(centre).max(axis=1)))
    # Differences of exact zero are common on coarse grids: no noise is below one rounding of the answer.
    sd = max(float(np.median(second.max(axis=1))), unit_roundoff(np.float64) * magnitude)
    return NoiseReading(scale, sd, magnitude)


def noise_model(near: NoiseReading, far: NoiseReading | None) -> Noise:
    """Absolute part as read at the scale of use, relative part as read far out."""
    return Noise(near.sd, 0.0 if far is None or far.magnitude == 0 else far.sd / far.magnitude)


def measure_noise(
    oracle: Oracle, rng: np.random.Generator, scale: float = 1.0, lines: int = 6
) -> NoiseReading:
    """Noise at one scale. Cost: 3 rows a line."""
    domain = oracle.facts.domain
    centres = domain.interior(rng, lines, oracle.dim, scale)
    (offsets,) = short_lines(rng, centres, domain, (NOISE_STEP,))
    centre, ahead, behind = np.split(
        oracle.query(np.concatenate([centres, centres + offsets, centres - offsets])), 3
    )
    return read_noise(centre, ahead, behind, scale)
