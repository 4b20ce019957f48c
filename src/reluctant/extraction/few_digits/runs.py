"""Longest straight runs of samples along a line: where a spline's knots are looked for first."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from reluctant.extraction.few_digits.spline import LineData
from reluctant.numerics import FloatArray

__all__ = ["first_knots", "straight_runs"]

LENIENT = 1.6  # times the noise: where it is larger than elsewhere runs must not fall apart
LARGEST = 4.5  # residual of a straight run, in deviations of the noise; a little more with several outputs
ROUGH_OUTPUTS = 2.0  # mean square up to which several outputs, of unlike noise, count as straight
SPREAD = 4.0  # deviations of a mean square
FEWEST = 4  # samples of a run whose slope is good for anything
LOOSE_ENDS = 2  # samples by which the crossing of two runs may lie inside one of them


def straight_runs(data: LineData) -> list[tuple[int, int]]:
    """First and last sample of each run, greedily from the left: as long as possible, found by doubling."""
    runs, start, last = [], 0, len(data) - 1
    while start < last:
        good, stride = start + 1, 1
        while good < last and _straight(data, start, min(good + stride, last)):
            good, stride = min(good + stride, last), 2 * stride
        bad = min(good + stride, last)
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if _straight(data, start, middle) else (good, middle)
        runs.append((start, good))
        start = good + 1
    return runs


def _straight(data: LineData, first: int, last: int) -> bool:
    part = slice(first, last + 1)
    left = _around_a_line(data.t[part], data.f[part], data.weight[part] / LENIENT)
    m, spare = left.shape[1], last - first - 1
    limit = (1.0 if m == 1 else ROUGH_OUTPUTS) + SPREAD / np.sqrt(max(spare, 1) * m)
    small = np.abs(left).max() < LARGEST + np.log(m)
    return bool(small and (spare <= 0 or (left**2).sum() / (spare * m) < limit))


def _around_a_line(t: FloatArray, f: FloatArray, weight: FloatArray) -> FloatArray:
    square = weight**2
    t, f = t - square @ t / square.sum(), f - square @ f / square.sum()
    slope = (square * t) @ f / max((square * t * t).sum(), np.finfo(np.float64).tiny)
    return np.asarray((f - t[:, None] * slope) * weight[:, None])


def first_knots(data: LineData, runs: list[tuple[int, int]], end: float) -> FloatArray:
    """Where neighbouring runs meet: at the crossing of their lines if that is between them, else half way."""
    inner = [_meeting(data, before, after) for before, after in pairwise(runs)]
    return np.unique([-end, *inner, end])


def _meeting(data: LineData, before: tuple[int, int], after: tuple[int, int]) -> float:
    half_way = float(data.t[before[1]] + data.t[after[0]]) / 2
    if min(before[1] - before[0], after[1] - after[0]) + 1 < FEWEST:
        return half_way
    (slope, value), (other_slope, other_value) = (_line(data, run, half_way) for run in (before, after))
    bend = slope - other_slope
    if not bend @ bend > 0:
        return half_way
    crossing = half_way + float((other_value - value) @ bend / (bend @ bend))
    low = data.t[max(before[1] - LOOSE_ENDS, before[0])]
    high = data.t[min(after[0] + LOOSE_ENDS, after[1])]
    return crossing if low < crossing < high else half_way


def _line(data: LineData, run: tuple[int, int], at: float) -> tuple[FloatArray, FloatArray]:
    """Slope (m,) and value (m,) of the straight line through a run."""
    part = slice(run[0], run[1] + 1)
    slope, value = np.polyfit(data.t[part] - at, data.f[part], 1, w=data.weight[part])
    return slope, value
