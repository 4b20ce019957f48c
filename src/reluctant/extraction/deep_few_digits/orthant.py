"""Second layer of two, where every neuron of the first is on: there each of its hyperplanes is straight.

For values z = W y + b > 0 the function is one hidden layer in z. Segments from axis to axis cross every hyperplane
whose weights differ in sign; random ones add those that are left. A jump of the gradient in z is the row of a neuron.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog

from reluctant.extraction.deep_few_digits.first_hyperplanes import FirstLayer
from reluctant.extraction.few_digits.answer_store import Asked, central_gradients, scatter, steps_both_ways
from reluctant.extraction.few_digits.incomplete_lines import Kink, LineReading, rank_one, read_incomplete_line
from reluctant.extraction.method import StageFailed
from reluctant.numerics import FloatArray

SEGMENT_SAMPLES = 25
ROW_ERROR = 0.05  # within the basin of the fit
KNOWN_ERROR = 3e-3  # of a row that other kinks are laid to: one known worse would swallow those of its neighbours
HIT_TOLERANCE = 0.03  # of a segment: a kink is that close by chance
HITS_A_MISS = 2.0
SAME_PLACE, SAME_ANGLE = 1e-3, 0.03  # of values, and between normals: a kink that close is on a neuron's crease
LEAST_MARGIN = 1e-3  # of the middle of a box from its walls, and of values there from 0, in their sizes


@dataclass(frozen=True)
class SecondRow:
    """v · z + c = 0 with unit v, its error as a whole and by weight (h,), and the crossings that are kinks or not."""

    v: FloatArray
    c: float
    error: float
    errors: FloatArray
    hits: int = 0
    misses: int = 0

    @property
    def share(self) -> float:
        """Part of its crossings that are kinks."""
        return self.hits / (self.hits + self.misses + 0.5)


@dataclass(frozen=True)
class Segment:
    """A straight way between two points of the orthant, and its reading."""

    start: FloatArray
    stop: FloatArray
    reading: LineReading

    def at(self, t: FloatArray) -> FloatArray:
        """Values (n, h) there."""
        return self.start + np.atleast_1d(t)[:, None] * (self.stop - self.start)


@dataclass(frozen=True)
class OrthantJump:
    """A kink at z (h,): the jump there is size · normal ⊗ output, with its error over the size."""

    z: FloatArray
    normal: FloatArray
    size: float
    output: FloatArray
    error: float

    def is_of(self, v: FloatArray, c: FloatArray) -> bool:
        """True if it is on the crease of one of the neurons v (n, h), c (n,), whose rows have norm one."""
        close = np.abs(v @ self.z + c) < (8 * self.error + SAME_PLACE) * np.linalg.norm(self.z)
        return bool((close & (1 - np.abs(v @ self.normal) < SAME_ANGLE**2 / 2)).any())


class Orthant:
    """The part of a frame in which all first-layer neurons are on, and the second layer's rows there."""

    def __init__(self, asked: Asked, layer: FirstLayer) -> None:
        self.asked, self.layer = asked, layer
        self.inverse = np.linalg.pinv(layer.w)
        k = len(layer.frame.basis)
        self.sizes = np.linalg.norm(layer.w, axis=1) * asked.view.size / np.sqrt(k)  # of z at typical inputs
        self.middle = np.zeros(len(layer.b)) if asked.view.is_space else self._middle_of_box()
        self.segments: list[Segment] = []
        self.rows: list[SecondRow] = []
        self.jumps: list[OrthantJump] = []
        self.slopes: list[tuple[FloatArray, FloatArray, FloatArray]] = []  # values (n, h), gradients (n, m, h), noise
        self.noise = self._measured_noise() if asked.grows else None

    @property
    def width(self) -> int:
        """Neurons of the first layer."""
        return len(self.layer.b)

    def search(self, quiet: int, most: int) -> list[SecondRow]:
        """Read segments until so many in a row show nothing new. Cost: 25 rows a segment, 4h a row found."""
        still = 0
        axes = self.asked.rng.permutation(self.width)
        with self.asked.view.oracle.stage("second layer"):
            for number in range(most):
                if still >= quiet and number >= 2 * self.width:
                    break
                still = 0 if self._read_segment(*self._ends(number, axes)) else still + 1
        return apart([row for row in self.met() if row.hits and row.hits >= HITS_A_MISS * row.misses])

    def met(self) -> list[SecondRow]:
        """All rows so far, with their crossings."""
        return [self._confirmed(row) for row in self.rows]

    def bends(self, rows: list[SecondRow]) -> bool:
        """True if most kinks are of no straight crease, so that there is a third layer."""
        few, v, c = 6, np.array([row.v for row in rows]), np.array([row.c for row in rows])
        straight = sum(jump.is_of(v, c) for jump in self.jumps) if rows else 0
        return len(self.jumps) > 2 * straight + few

    def _ends(self, number: int, axes: np.ndarray) -> tuple[FloatArray, FloatArray]:
        """From axis to axis, farther out the second time round, then anywhere."""
        return self._inside(self._free_ends(number, axes))

    def _free_ends(self, number: int, axes: np.ndarray) -> FloatArray:
        rng, h = self.asked.rng, self.width
        if number < 2 * h:
            low, high = ((0.3, 6.0), (0.05, 12.0))[number // h]
            ends = low * self.sizes * np.exp(0.4 * rng.standard_normal((2, h)))
            for end, axis in zip(ends, (axes[number % h], axes[(number + 1) % h]), strict=True):
                end[axis] = high * self.sizes[axis]
            return ends
        spread = rng.choice([0.5, 1.0, 1.8, 2.5])
        ends = self.sizes * np.exp(spread * rng.standard_normal((2, h)))
        return np.asarray(ends * np.exp(rng.standard_normal((2, 1)) - spread**2 / 4))

    def _inside(self, ends: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both ends, nearer to the middle of the orthant where the target may not be asked as far out."""
        middle = self._points(self.middle)
        room = self.asked.view.room(middle, self._points(ends) - middle)
        start, stop = self.middle + np.minimum(1.0, room)[:, None] * (ends - self.middle)
        return start, stop

    def _middle_of_box(self) -> FloatArray:
        """The values (h,) that are farthest from 0, in their sizes, and from the walls alike."""
        moves, at_zero = self.inverse.T @ self.layer.frame.basis, self._points(np.zeros((1, self.width)))[0]
        walls = np.concatenate([moves.T, -moves.T])
        below = np.column_stack([-np.eye(self.width), self.sizes])
        within = np.column_stack([walls, np.ones(len(walls))])
        limits = np.concatenate([np.zeros(self.width), 1 - at_zero, 1 + at_zero])
        goal = np.append(np.zeros(self.width), -1.0)
        found = linprog(goal, np.concatenate([below, within]), limits, bounds=(None, None))
        margin = float(found.x[-1]) if found.status == 0 else 0.0
        if not margin > LEAST_MARGIN:
            reason = "nowhere inside the box are all neurons of the first layer on"
            raise StageFailed("second layer", reason, number=margin, limit=LEAST_MARGIN)
        return np.asarray(found.x[:-1])

    def _measured_noise(self) -> FloatArray:
        """Noise (m,) of an answer where values have their sizes: it grows with the values, not with the input.

        In many dimensions inputs of the orthant are short, and their answers large. Cost: 192 rows.
        """
        pairs, quantile = 12, 0.75
        axes = self.asked.rng.permutation(self.width)
        ends = [end for number in range(pairs) for end in self._ends(number * self.width // 4, axes)]
        z = np.array(ends)
        ways = self.sizes * self.asked.rng.standard_normal(z.shape) @ (self.inverse.T @ self.layer.frame.basis)
        noise = scatter(self.asked, self._points(z), ways) / self._lengths(z)[:, None]
        shown = [each[each > 0] for each in noise.T]  # where answers are constant there is none
        return np.array([np.quantile(each, quantile) if len(each) else 1.0 for each in shown])

    def _lengths(self, z: FloatArray) -> FloatArray:
        """Of values (n, h), in their sizes."""
        return np.linalg.norm(z / self.sizes, axis=1) / np.sqrt(self.width)

    def _ask(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Answers (n, m) in units of noise and its deviation (n,)."""
        f, sd = self.asked.ask(rows)
        if self.noise is None:
            return f, sd
        z = (rows - self.layer.frame.origin) @ self.layer.frame.basis.T @ self.layer.w.T + self.layer.b
        return f / self.noise, self._lengths(z)

    def _points(self, z: FloatArray) -> FloatArray:
        return self.layer.frame.points((z - self.layer.b) @ self.inverse.T)

    def _read_segment(self, start: FloatArray, stop: FloatArray) -> bool:
        """Read one more segment; True if it shows a new row."""

        def ask(t: FloatArray) -> tuple[FloatArray, FloatArray]:
            return self._ask(self._points(start + t[:, None] * (stop - start)))

        segment = Segment(start, stop, read_incomplete_line(ask, np.linspace(0, 1, SEGMENT_SAMPLES), least_gap=1e-4))
        self.segments.append(segment)
        unknown = [kink for kink in segment.reading.kinks if not self._is_known(segment, kink)]
        return bool(unknown) and self._add_rows(segment, unknown)

    def _is_known(self, segment: Segment, kink: Kink) -> bool:
        z, way = segment.at(np.array([kink.t]))[0], segment.stop - segment.start
        for row in self.rows:
            if row.error > KNOWN_ERROR:
                continue
            slope = abs(row.v @ way)
            if abs(row.v @ z + row.c) < (6 * kink.sd + 1e-5) * slope + 8 * row.error * np.linalg.norm(z):
                return True
        return False

    def _add_rows(self, segment: Segment, kinks: list[Kink]) -> bool:
        beside, middles, lengths = segment.reading.around(kinks)
        z = segment.at(middles)
        reach = lengths * np.linalg.norm(segment.stop - segment.start) / np.sqrt(self.width)
        steps = np.minimum(0.35 * reach[:, None], 0.45 * z)  # short of where a neuron of the first layer is off
        directions = self.inverse.T @ self.layer.frame.basis
        points = self._points(z)
        steps = steps_both_ways(self.asked.view, points, directions, steps)
        slopes, sds = central_gradients(self._ask, points, directions, steps)
        place, new = {run: i for i, run in enumerate(beside)}, False
        straight = np.isfinite(sds).all(axis=1)
        gradients = np.swapaxes(slopes[straight], 1, 2)
        self.slopes.append((z[straight], gradients, np.linalg.norm(sds[straight], axis=1)))
        for kink in kinks:
            pair = [place[kink.left], place[kink.right]]
            sd = np.linalg.norm(sds[pair], axis=0)
            v, amount, left = rank_one((slopes[pair[1]] - slopes[pair[0]]).T)
            size, noise = float(np.linalg.norm(amount)), float(np.linalg.norm(sd))
            if not noise < ROW_ERROR * size or left > 8 * noise:
                continue
            at = segment.at(np.array([kink.t]))[0]
            self.jumps.append(OrthantJump(at, v, size, amount / size, noise / size))
            new |= self._joined(SecondRow(v, -float(v @ at), noise / size, sd / size))
        return new

    def _joined(self, row: SecondRow) -> bool:
        """True if the row is new; a better reading of a known one replaces it."""
        for i, other in enumerate(self.rows):
            sign = np.sign(other.v @ row.v)
            if np.all(np.abs(other.v - sign * row.v) < 7 * np.hypot(other.errors, row.errors) + 2e-4):
                self.rows[i] = row if row.error < other.error else other
                return False
        self.rows.append(row)
        return True

    def _confirmed(self, row: SecondRow) -> SecondRow:
        """With its crossings of all segments: kinks, or straight."""
        hits = misses = 0
        for segment in self.segments:
            slope = float(row.v @ (segment.stop - segment.start))
            t = -(float(row.v @ segment.start) + row.c) / slope if slope else np.inf
            if not 0 < t < 1:
                continue
            away = float(np.linalg.norm(segment.at(np.array([t]))))
            tolerance = 6 * row.error * away / abs(slope) + 1e-5
            shown = segment.reading.shows(t, tolerance) if tolerance < HIT_TOLERANCE else None
            hits, misses = hits + (shown is True), misses + (shown is False)
        return replace(row, hits=hits, misses=misses)


def apart(rows: list[SecondRow]) -> list[SecondRow]:
    """One of those that are nearly the same hyperplane, the one known best: two of them, and the fit is lost."""
    same = 2 * ROW_ERROR
    kept: list[SecondRow] = []
    for row in sorted(rows, key=lambda row: row.error):
        signs = [np.sign(other.v @ row.v) for other in kept]
        near = (np.linalg.norm(other.v - sign * row.v) < same for other, sign in zip(kept, signs, strict=True))
        if not any(near):
            kept.append(row)
    return kept
