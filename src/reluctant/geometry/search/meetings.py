"""Where the lines of neighbouring pieces meet: where one crease is expected, and whether it is certain by now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.geometry.creases import intersect, lines_apart
from reluctant.geometry.samples import NONE, SPACING, BoolArray, IntArray, Pieces, Samples
from reluctant.geometry.search.asking import CROWDED, Usual
from reluctant.numerics import FloatArray

__all__ = ["SIDE", "Meetings"]

SIDE = 4.0  # blurs, or spacings of numbers, from an expected crease to each side of its check, at least
TOO_WIDE = 8 * SIDE  # blurs between the two sides of a check; twice SIDE is asked for
LOOSE = 1e-3  # of the pieces beside it: a check wider than that, and than blur asks for, is made again
WEAK = 0.1  # of the usual bend
AT_THE_END = 1e-3  # of the interval: a crease this close to a sample is at the sample


@dataclass(frozen=True)
class Meetings:
    """Where the lines of neighbouring pieces meet, in the interval from sample i to sample i + 1.

    Arguments:
        i: the last sample of the piece before.
        gap: length of the interval.
        end: the end of the interval farther from the origin.
        x: meeting point, from sample i.
        t: its position, inside the interval.
        blur: its uncertainty.
        share: of the usual width of a check; < 1 for a weak bend, where two creases may cancel, and in a crowd.
        checked: whether it was looked at from both sides, near enough for what is known now.
        certified: whether the crease is certain.
        usual: what creases are usually like.
    """

    i: IntArray
    gap: FloatArray
    end: FloatArray
    x: FloatArray
    t: FloatArray
    blur: FloatArray
    share: FloatArray
    checked: BoolArray
    certified: BoolArray
    usual: Usual

    @classmethod
    def of(
        cls,
        s: Samples,
        p: Pieces,
        left: IntArray,
        sd: Callable[[FloatArray], FloatArray],
        usual: Usual | None = None,
    ) -> Meetings:
        """Those of these pieces with the next ones; `sd` is the noise of an answer at a position.

        What creases are usually like follows from these, unless it is given.
        """
        i = p.last[left]
        gap = s.t[i + 1] - s.t[i]
        end = np.maximum(np.abs(s.t[i]), np.abs(s.t[i + 1]))
        x, bend = intersect(s, p, left)
        t = s.t[i] + np.clip(x, 0, gap)
        blur = _blur(s, p, left, t, sd(t), bend)
        usual = usual or _usual(s, p, bend)
        share = _share(bend, usual)
        both = p.certified[left] & p.certified[left + 1]
        shortest = np.minimum(p.length[left], p.length[left + 1])
        # What was blurred when it was checked may be sharp by now: then the check was too wide to tell.
        sharp = np.maximum.reduce([TOO_WIDE * blur, LOOSE * share * shortest, TOO_WIDE * SPACING * end])
        checked = (s.check[i] == s.check[i + 1]) & (s.check[i] != NONE) & (~both | (gap < sharp))
        seen = checked & (x > 0) & (x < gap)
        no_sharper = (x > -blur) & (x < gap + blur) & (gap < 2 * SIDE * blur) & (gap < shortest / 2)
        certified = both & (seen | _at_an_end(s, p, left, x, gap) | no_sharper)
        return cls(i, gap, end, x, t, blur, share, checked, certified, usual)

    @property
    def inside(self) -> BoolArray:
        """Whether they meet inside the interval, away from its ends."""
        rim = np.maximum(SPACING * self.gap, SPACING * self.end)
        return (self.x > rim) & (self.x < self.gap - rim)

    @property
    def stuck(self) -> BoolArray:
        """Whether it is uncertain, and no number fits between the samples any more."""
        return ~self.certified & (self.gap < SIDE * SPACING * self.end)


def _blur(s: Samples, p: Pieces, left: IntArray, t: FloatArray, sd: FloatArray, bend: FloatArray) -> FloatArray:
    """How far from a meeting point the lines are still within the noise of each other."""
    allowed = p.tolerance(s, left, t, sd) + p.tolerance(s, left + 1, t, sd)
    with np.errstate(divide="ignore"):
        return np.asarray(allowed / bend)


def _usual(s: Samples, p: Pieces, bend: FloatArray) -> Usual:
    bend = bend[np.isfinite(bend)]  # positions that rounding makes one give no slope, and no bend
    median = max(float(np.median(bend)), np.finfo(float).tiny) if len(bend) else 1.0
    return Usual(median, min(1.0, CROWDED * int(s.line[-1] + 1) / max(len(p), 1)))


def _share(bend: FloatArray, usual: Usual) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.minimum(1, bend / (WEAK * usual.bend)) * usual.narrower


def _at_an_end(s: Samples, p: Pieces, left: IntArray, x: FloatArray, gap: FloatArray) -> BoolArray:
    """The crease is at one of the two samples, and that sample lies on both pieces."""
    i, right = p.last[left], left + 1
    off_right = np.abs(lines_apart(s, p, left, np.zeros(len(left)))).max(axis=1)
    off_left = np.abs(lines_apart(s, p, left, gap)).max(axis=1)
    at_start = (off_right <= p.tolerance(s, right, s.t[i], s.sd[i])) & (np.abs(x) < AT_THE_END * gap)
    at_stop = (off_left <= p.tolerance(s, left, s.t[i + 1], s.sd[i + 1])) & (np.abs(x - gap) < AT_THE_END * gap)
    return at_start | at_stop
