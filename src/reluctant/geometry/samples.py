"""Samples on lines, their noise, and the pieces they fall into.

The noise of an answer grows with the distance from the origin (`DistanceNoise`). A sample whose two neighbours are
in line with it is flat; a run of samples joined by flat ones is a piece. Two samples that were asked as a pair and
belong to no run are a piece too, until something contradicts it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reluctant.interface import Interface
from reluctant.numerics import DOUBLE, FloatArray

__all__ = [
    "NO_NUMBER",
    "BoolArray",
    "DistanceNoise",
    "ExtraNoise",
    "IntArray",
    "Pieces",
    "Samples",
    "answer_roundings",
    "find_pieces",
]

IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]

NO_NUMBER = -1  # no pair, no check


@dataclass(frozen=True)
class Samples:
    """Answers on lines, sorted by line and position.

    pair: samples asked together to find a slope share a number. check: those asked on the two sides of an
    expected crease do. sd: noise of each answer. round: when it was asked, counted from 0.
    """

    line: IntArray
    t: FloatArray
    f: FloatArray  # (n, m)
    sd: FloatArray
    pair: IntArray
    check: IntArray
    round: IntArray

    def __add__(self, other: Samples) -> Samples:
        parts = [np.concatenate([getattr(self, field.name), getattr(other, field.name)]) for field in fields(self)]
        order = np.lexsort([parts[1], parts[0]])
        return Samples(*(part[order] for part in parts))

    def chosen(self, which: IntArray) -> Samples:
        """These samples only."""
        return Samples(*(getattr(self, field.name)[which] for field in fields(self)))

    def room_after(self, which: IntArray) -> FloatArray:
        """Distance to the next sample of the line, 0 for its last."""
        following = np.minimum(which + 1, len(self) - 1)
        return np.where(self.line[following] == self.line[which], self.t[following] - self.t[which], 0.0)

    def room_before(self, which: IntArray) -> FloatArray:
        """Distance to the sample before, 0 for the first of a line."""
        before = np.maximum(which - 1, 0)
        return np.where(self.line[before] == self.line[which], self.t[which] - self.t[before], 0.0)

    def without_any(self) -> Samples:
        """None of them."""
        return self.chosen(np.empty(0, dtype=np.intp))

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True)
class Pieces:
    """Pieces in order: index of first and last sample, whether a third sample agrees, and the line they lie on."""

    first: IntArray
    last: IntArray
    certified: BoolArray
    length: FloatArray
    slope: FloatArray  # (n, m)
    sd: FloatArray  # noise of the two end samples together

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def between(cls, s: Samples, first: IntArray, last: IntArray, certified: BoolArray) -> Pieces:
        """Pieces from sample `first` to sample `last`, with the slope their ends give."""
        length = s.t[last] - s.t[first]
        slope = (s.f[last] - s.f[first]) / length[:, None]
        return cls(first, last, certified, length, slope, np.hypot(s.sd[first], s.sd[last]))

    def slope_sd(self) -> FloatArray:
        """Noise of the slopes."""
        return self.sd / self.length

    def tolerance(self, s: Samples, which: IntArray, t: FloatArray, sd: FloatArray) -> FloatArray:
        """How far an answer of noise `sd` at t may be from the line of a piece and still belong to it."""
        first, last = self.first[which], self.last[which]
        to_first, to_last = np.abs(t - s.t[first]), np.abs(t - s.t[last])
        # From the nearer end: the farther one may be very far out, and has lost its digits.
        near_sd = np.where(to_first < to_last, s.sd[first], s.sd[last])
        slope = self.sd[which] * np.minimum(to_first, to_last) / self.length[which]
        return DOUBLE.in_line * np.hypot(sd, near_sd + slope)


def find_pieces(s: Samples) -> Pieces:
    """Runs of samples joined by flat ones, and pairs that no run touches."""
    inside = s.line[1:] == s.line[:-1]  # edge k joins samples k and k + 1
    joined = np.zeros(len(inside), dtype=bool)
    joined[1:] = inside[1:] & inside[:-1] & _is_flat(s)[1:-1]
    starts = np.flatnonzero(inside & ~joined)
    stops = np.flatnonzero(inside & ~np.append(joined[1:], False))
    is_run = stops > starts
    touched = np.zeros(len(inside) + 2, dtype=bool)  # edge k is at k + 1
    touched[starts[is_run] + 1] = touched[stops[is_run] + 1] = True
    is_pair = (s.pair[starts] == s.pair[starts + 1]) & (s.pair[starts] != NO_NUMBER)
    keep = is_run | (is_pair & ~touched[starts] & ~touched[starts + 2])
    return Pieces.between(s, starts[keep], stops[keep] + 1, is_run[keep])


def _is_flat(s: Samples) -> BoolArray:
    flat = np.zeros(len(s), dtype=bool)
    same = s.line[2:] == s.line[:-2]
    length = s.t[2:] - s.t[:-2]  # zero where rounding puts three positions in one place
    share = (s.t[1:-1] - s.t[:-2]) / np.where(same & (length > 0), length, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):  # answers close to the largest number
        off = np.abs(s.f[1:-1] - (s.f[:-2] + (s.f[2:] - s.f[:-2]) * share[:, None])).max(axis=1)
        sd = np.sqrt(s.sd[1:-1] ** 2 + ((1 - share) * s.sd[:-2]) ** 2 + (share * s.sd[2:]) ** 2)
        flat[1:-1] = same & (off <= DOUBLE.in_line * sd)
    return flat


ExtraNoise: TypeAlias = Callable[
    [FloatArray, FloatArray], FloatArray
]  # rows and answers (n, m) to more noise (n,) of these

LEAST_NOISE = DOUBLE.rounding / 1000  # of the spread: a target that computes exactly is not taken for noiseless


@dataclass(frozen=True)
class DistanceNoise:
    """Standard deviation hypot(near, growth · distance): what sums inside a network leave of its digits."""

    near: float
    growth: float

    @classmethod
    def of(cls, health: Interface, dim: int) -> DistanceNoise:
        """From the readings of a health check: one at the scale of use, one far out if there is one."""
        shared_growth = 0.5  # of what noise read at the scale of use would be, if it grew like the inputs
        near, far = health.readings[0], health.readings[-1]
        at_origin = max(DOUBLE.safety * near.sd, LEAST_NOISE * health.spread)
        growth = DOUBLE.safety * far.sd / (far.scale * np.sqrt(dim))
        # Far out all of a few lines may meet a flat place, but sums inside the network round as inputs grow.
        return cls(at_origin, max(float(growth), shared_growth * at_origin / float(np.sqrt(dim))))

    def times(self, factor: float) -> DistanceNoise:
        """So many times the noise."""
        return DistanceNoise(factor * self.near, factor * self.growth)

    def at(self, distance: FloatArray) -> FloatArray:
        """Standard deviation of an answer at this distance."""
        return np.hypot(self.near, self.growth * np.abs(distance))


def answer_roundings(size: FloatArray) -> FloatArray:
    """A few roundings of an answer of this size."""
    return np.asarray(DOUBLE.answer * size)
