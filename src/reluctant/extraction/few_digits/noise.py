"""How much noise there is, near and far, for each output: what is left of answers along short lines.

Eight points a line and not three: few digits are spent well on knowing them.
"""

from __future__ import annotations

import numpy as np

from reluctant.extraction.few_digits.view import View
from reluctant.geometry import DistanceNoise
from reluctant.health.answers import rounding_noise
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["FAR_OUT", "NEAR_AND_FAR", "look_from", "short_line_noise"]

LINES, POINTS = 24, 8
NEAR_AND_FAR = 2  # looks at short lines that a view takes
SPACING = 3e-4  # of the size of an input: rounding errors of float32 are independent, and few creases lie between
JITTER = 0.3  # of the spacing
FAR_OUT = 1e3  # where noise that grows with the answers is all there is
QUIETEST = 1e-8  # of the noisiest output: one that is 0 where it was asked has no noise there, and is no unit
LEAST = float(np.finfo(np.float64).tiny) ** 0.25  # where there is none: its inverse can be squared twice and added up


def look_from(oracle: Counting, scale: float, rng: np.random.Generator) -> View:
    """The view from this scale, with its noise measured. Cost: 384 rows."""
    plain = View(oracle, scale, np.ones(oracle.outputs), DistanceNoise(0.0, 0.0))
    with oracle.stage("noise", expected=NEAR_AND_FAR * LINES * POINTS):
        near, far = short_line_noise(plain, 1.0, rng), short_line_noise(plain, FAR_OUT, rng)
    units = near / near.mean()
    growth = float(np.mean(far / units)) / (FAR_OUT * plain.size)
    return View(oracle, scale, units, DistanceNoise(float(near.mean()), growth))


def short_line_noise(view: View, scale: float, rng: np.random.Generator) -> FloatArray:
    """Standard deviation (m,) of each output around straight lines at inputs of this scale."""
    d, size = view.dim, scale * view.size
    centres = scale * view.sample(rng, LINES)[:, None]
    directions = rng.standard_normal((LINES, 1, d))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    places = np.arange(POINTS) + rng.uniform(-JITTER, JITTER, (LINES, POINTS))
    rows, answers = view.ask((centres + SPACING * size * places[:, :, None] * directions).reshape(-1, d))
    along = ((rows.reshape(LINES, POINTS, d) - centres) * directions).sum(axis=2) / (SPACING * size)
    left = _around_lines(along, answers.reshape(LINES, POINTS, -1))
    rounding = rounding_noise(answers * (view.scale * view.units)) / (view.scale * view.units)
    found = np.maximum(np.median(np.sqrt((left**2).sum(axis=1) / (POINTS - 2)), axis=0), np.maximum(rounding, LEAST))
    return np.maximum(found, QUIETEST * found.max())


def _around_lines(t: FloatArray, f: FloatArray) -> FloatArray:
    """What straight lines through (n, points) leave of the values (n, points, m)."""
    t = (t - t.mean(axis=1, keepdims=True))[:, :, None]
    f = f - f.mean(axis=1, keepdims=True)
    return np.asarray(f - t * (t * f).sum(axis=1, keepdims=True) / (t**2).sum(axis=1, keepdims=True))
