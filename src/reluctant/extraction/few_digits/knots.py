"""Which knots a spline needs: more where a hinge would explain what is left, fewer where a bend is in the noise."""

from __future__ import annotations

import numpy as np

from reluctant.extraction.few_digits.spline import LineData, Spline, locate
from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["more_knots", "only_clear_knots", "samples_wanted"]

FEWEST = 4  # samples in which a hinge can be seen
MOST_HINGES = 400  # tried in one piece
WORTH_A_LOOK = 0.5  # of the gain asked for: what is left in a piece in all
NEIGHBOURS = 40  # samples on both sides of a piece that tell its noise: a missing knot spoils few of them
ROUGHEST = 4.0  # in squares: noise of float32 differs from piece to piece, by no more than this
MEDIAN_SQUARE = 0.455  # of a standard normal
FLAT = 1e-6  # of the largest: a hinge of which so little is left besides a straight line is none
CLEAR, CLEAR_OF_SEVERAL, PER_ROOT_OUTPUT = 4.5, 7.0, 0.5  # bend in deviations of its slopes
PER_OCTAVE = 2  # samples at each distance from a knot, doubling, on both sides
WIDEST = 0.6  # of a piece, or of the size of an input: the first octave
NARROWEST = 3.0  # deviations of a knot's position
INPUT_STEPS = 7.0  # roundings of a float32 input: samples closer to each other say nothing new


def more_knots(spline: Spline, data: LineData, residual: FloatArray, clear: float) -> FloatArray:
    """Positions at which another knot would explain more than chance does, one in a piece at most."""
    m = residual.shape[1]
    wanted_gain = clear**2 + m + clear * np.sqrt(2 * m)
    edges = np.searchsorted(data.t, spline.knots[1:-1])
    found = []
    for part in np.split(np.arange(len(data)), edges):
        left = residual[part]
        if len(part) < FEWEST or (left**2).sum() < WORTH_A_LOOK * wanted_gain:
            continue
        gain, position = _best_hinge(data.t[part], left, data.weight[part])
        if gain > wanted_gain * _roughness(residual, part[0], part[-1]):
            found.append(position)
    return np.array(found)


def _roughness(residual: FloatArray, first: int, last: int) -> float:
    """Mean square of the noise around these samples, by the median; at least one."""
    around = residual[max(first - NEIGHBOURS, 0) : last + NEIGHBOURS + 1]
    return float(np.clip(np.median(around**2) / MEDIAN_SQUARE, 1, ROUGHEST))


def _best_hinge(t: FloatArray, residual: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """How many squares the best hinge explains besides a straight line, and where it is."""
    middle, size = t.mean(), max(np.ptp(t), np.finfo(np.float64).tiny)
    x = (t - middle) / size
    places = np.concatenate([x[1:-1], (x[2:-1] + x[1:-2]) / 2])
    places = places[:: 1 + len(places) // MOST_HINGES]
    line = np.linalg.qr(np.column_stack([np.ones(len(x)), x]) * weight[:, None])[0]
    left = residual - line @ (line.T @ residual)
    hinges = np.maximum(x[:, None] - places, 0) * weight[:, None]
    hinges -= line @ (line.T @ hinges)
    sizes = np.linalg.norm(hinges, axis=0)
    usable = sizes > FLAT * sizes.max()
    explained = ((hinges.T @ left) ** 2).sum(axis=1)
    gains = np.where(usable, explained / np.where(usable, sizes, 1) ** 2, 0)
    best = int(np.argmax(gains))
    return float(gains[best]), float(middle + size * places[best])


def only_clear_knots(spline: Spline, data: LineData, residual: FloatArray) -> FloatArray:
    """The knots without those whose bend is in the noise; of two neighbours only the weaker goes."""
    if len(spline.knots) <= 2:
        return spline.knots
    sd = _slope_deviations(spline, data)
    at = np.searchsorted(data.t, spline.knots[1:-1])
    rough = np.sqrt([_roughness(residual, k, k) for k in at])
    clarity = np.linalg.norm(spline.bends, axis=1) / (rough * np.hypot(sd[:-1], sd[1:]))
    m = data.f.shape[1]
    limit = CLEAR if m == 1 else CLEAR_OF_SEVERAL + PER_ROOT_OUTPUT * np.sqrt(m)
    weakest = np.minimum(np.append(clarity[1:], np.inf), np.append(np.inf, clarity[:-1])) >= clarity
    return np.delete(spline.knots, 1 + np.flatnonzero(~(clarity >= limit) & weakest))


def _slope_deviations(spline: Spline, data: LineData) -> FloatArray:
    """Standard error of the slope of each piece, from its own samples."""
    piece, pieces = locate(spline.knots, data.t)[0], len(spline.knots) - 1
    square, tiny = data.weight**2, np.finfo(np.float64).tiny
    middle = np.bincount(piece, square * data.t, pieces) / np.maximum(np.bincount(piece, square, pieces), tiny)
    spread = np.bincount(piece, square * (data.t - middle[piece]) ** 2, pieces)
    return 1 / np.sqrt(np.maximum(spread, tiny))


def samples_wanted(spline: Spline, data: LineData, sd: FloatArray, size: float, rng: np.random.Generator) -> FloatArray:
    """New positions: a few at every distance from each knot, down to where noise hides its bend.

    sd: noise (n,) of an answer at each inner knot. size: length of a typical input.
    """
    inner, gaps = spline.knots[1:-1], np.diff(spline.knots)
    reach = size + np.abs(inner)
    bends = np.maximum(np.linalg.norm(spline.bends, axis=1), np.finfo(np.float64).tiny)
    least = np.maximum(NARROWEST * sd / bends, INPUT_STEPS * unit_roundoff(np.float32) * reach)
    found = []
    for side, gap in ((-1, gaps[:-1]), (1, gaps[1:])):
        widest = WIDEST * np.minimum(gap, reach)
        octaves = int(np.ceil(np.log2(np.max(widest / least, initial=1.0))))
        outer = widest[:, None] * 0.5 ** np.arange(octaves)
        near, far = inner[:, None] + side * outer / 2, inner[:, None] + side * outer
        low, high = np.minimum(near, far), np.maximum(near, far)
        there = np.searchsorted(data.t, high) - np.searchsorted(data.t, low)
        missing = np.where(outer > least[:, None], np.maximum(PER_OCTAVE - there, 0), 0)
        low, width = (np.repeat(part.reshape(-1), missing.reshape(-1)) for part in (low, high - low))
        found.append(low + width * rng.random(len(low)))
    return np.concatenate(found)
