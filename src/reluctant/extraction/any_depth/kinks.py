"""Kinks on lines, stored for all layers, and tests for a crease at a point.

`Asker` holds the target, its noise and the sizes of things. Lines are scanned once and their kinks serve every
layer; those that known neurons explain drop out. A neuron's crossings of the stored lines must be kinks. Between
neighbouring kinks every known feature is affine: a change of sign there is a crossing without a kink. Only a function
that is constant there may hide one. That test asks nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.domains import Domain
from reluctant.extraction.any_depth.crease_equations import IncomingWeights
from reluctant.extraction.any_depth.features import FeatureSlopes, KnownLayers
from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise, Lines, Scan, gradients, scan_lines
from reluctant.geometry.gradients import EVERYWHERE, cross
from reluctant.geometry.lines import Batch, BoolArray, IntArray
from reluctant.numerics import DOUBLE, FloatArray


@dataclass(frozen=True)
class CreaseSeen:
    """Where across each place a crease was found; `constant` if nothing changes there, so nothing can be seen."""

    position: FloatArray
    found: BoolArray
    constant: BoolArray


@dataclass(frozen=True)
class Asker:
    """A target in the coordinates of the search.

    scale: typical size of an input. spacing: typical distance between kinks on a line, relative to the scale. domain:
    where it is asked; nothing shows outside.
    """

    ask: Callable[[FloatArray], FloatArray]
    noise: DistanceNoise
    rng: np.random.Generator
    scale: float
    spacing: float
    domain: Domain = EVERYWHERE

    def unit(self, points: FloatArray) -> FloatArray:
        """The scale at each point: it grows with the distance."""
        return np.hypot(self.scale, np.linalg.norm(points, axis=1))

    def test(self, points: FloatArray, normals: FloatArray, room: FloatArray) -> CreaseSeen:
        """Is there a crease across these unit normals at these points, with `room` around them?

        Cost: 4 rows a point.
        """
        test_reach = 4e-5  # of a crease test, relative to scale and distance
        reach = np.minimum(test_reach * self.unit(points), room)
        return self.cross(points, normals, reach)

    def cross(
        self, points: FloatArray, directions: FloatArray, reach: FloatArray, within: FloatArray | None = None
    ) -> CreaseSeen:
        """Is there a crease within this distance of the points, on lines that reach so far? Cost: 4 rows a point."""
        n = len(points)
        seen = CreaseSeen(np.zeros(n), np.zeros(n, dtype=bool), np.ones(n, dtype=bool))
        room = np.minimum(self.domain.room(points, directions), self.domain.room(points, -directions))
        there = np.flatnonzero(room > 0)
        if not len(there):
            return seen
        points, directions, reach = points[there], directions[there], np.minimum(reach, room)[there]
        within = None if within is None else within[there]
        crossed = cross(self.ask, points, directions, reach, self.noise, within)
        slopes = np.abs(crossed.before).max(axis=1) + np.abs(crossed.bend).max(axis=1)
        seen.position[there], seen.found[there] = crossed.position, crossed.critical
        seen.constant[there] = slopes * reach <= DOUBLE.in_line * crossed.sd
        return seen


SAME_PLACE = 1e-7  # kinks this close, relative to scale and distance, are one
SLOPE_ERROR = 1e-4  # relative; a slope along a line, and a bend there, must agree this well with gradients


@dataclass(frozen=True)
class Kinks(Batch):
    """Kinks in order of line and position; each is between two pieces of its line."""

    line: IntArray
    t: FloatArray
    point: FloatArray  # (n, d)
    direction: FloatArray  # (n, d), of the line
    bend: FloatArray  # (n, m), change of slope along the line
    width: FloatArray  # (n,), of the narrower piece beside it
    unit: FloatArray  # (n,), the scale at its distance


class KinkStore:
    """All lines scanned so far. Numbers of kinks stay the same when lines are added."""

    def __init__(
        self, ask: Callable[[FloatArray], FloatArray], dim: int, noise: DistanceNoise, rng: np.random.Generator,
        lines_end: float | None = None, domain: Domain = EVERYWHERE,
    ) -> None:  # fmt: skip
        self.lines_end = lines_end  # in units of the scale, None of whole lines
        self.domain = domain  # lines end there too
        self.ask, self.dim, self.noise, self.rng = ask, dim, noise, rng
        self.scale = float(np.sqrt(dim))
        self.lines = 0
        self.unresolved = 0
        self.followed = 0  # creases, in all layers
        self.found = 0  # neurons, in all layers, when they were most
        nothing = np.empty(0)
        rows = np.empty((0, dim))
        self.kinks = Kinks(nothing.astype(np.intp), nothing, rows, rows, np.empty((0, 0)), nothing, nothing)
        self.ends = np.empty((0, 2, dim))  # of each line, beyond its last kinks
        self.middles = np.empty((0, dim))  # of pieces: one more than kinks on every line
        self.directions = np.empty((0, dim))  # of their lines
        self.widths = np.empty(0)
        self.along: list[FloatArray] = []  # slope (m,) of each piece along its line
        self.constant = np.empty(0, dtype=bool)  # pieces on which the function does not change: nothing shows there
        self._slopes: tuple[KnownLayers, Kinks, FeatureSlopes] | None = None
        self.gradients: dict[int, FloatArray | None] = {}  # of pieces measured so far, None where it failed

    def scan(self, lines: Lines) -> None:
        """Scan more lines and keep their kinks. Cost: about five rows a kink."""
        most_rows = 20_000  # of a line: where noise is more than it seems, creases have no end
        scan = scan_lines(self.ask, lines, self.noise, self.rng, most=most_rows * len(lines))
        self.unresolved += int(scan.open.sum())
        if len(scan.samples) >= most_rows * len(lines):
            raise StageFailed("lines", "creases without end", number=len(scan.samples), limit=most_rows * len(lines))
        if scan.creases.nowhere.any():
            raise StageFailed("lines", "pieces of a line do not meet", number=scan.creases.nowhere.sum(), limit=0)
        for line in range(len(lines)):
            self._keep(lines, line, scan)

    def scan_random(self, count: int) -> None:
        """Scan random lines through the scale of use."""
        ends = {} if self.lines_end is None else {"end": self.lines_end}
        lines = Lines.random(self.rng, count, self.dim, **ends)
        if not self.domain.is_space:
            lines = self.chords(count)
        self.scan(lines)

    def chords(self, count: int) -> Lines:
        """Segments between random points of the box, many of whose coordinates are next to a bound."""
        beyond, inside = 1.6, 0.97  # of the half width: how far points are drawn, and where they end
        centre, half = np.add(self.domain.low, self.domain.high) / 2, np.subtract(self.domain.high, self.domain.low) / 2
        start, stop = centre + half * inside * np.clip(self.rng.uniform(-beyond, beyond, (2, count, self.dim)), -1, 1)
        return Lines.between(start, stop, self.scale)

    def _keep(self, lines: Lines, line: int, scan: Scan) -> None:
        here = scan.creases.line == line
        t = scan.creases.t[here]
        low, high = min(lines.low[line], 0.0), max(lines.high[line], 0.0)
        edges = np.concatenate([[self._beyond(t, -1, low)], t, [self._beyond(t, 1, high)]])
        widths = np.diff(edges)
        origin, direction = lines.origins[line], lines.directions[line]
        points = origin + t[:, None] * direction
        self.middles = np.concatenate([self.middles, origin + ((edges[1:] + edges[:-1]) / 2)[:, None] * direction])
        self.directions = np.concatenate([self.directions, np.repeat(direction[None], len(widths), axis=0)])
        self.widths = np.concatenate([self.widths, widths])
        pieces = scan.samples.line[scan.pieces.first] == line
        slope, sd = np.abs(scan.pieces.slope[pieces]).max(axis=1), scan.pieces.slope_sd()[pieces]
        self.along += [*scan.pieces.slope[pieces]]
        self.constant = np.concatenate([self.constant, slope <= DOUBLE.in_line * sd])
        self.ends = np.concatenate([self.ends, (origin + np.outer(edges[[0, -1]], direction))[None]])
        n, m = len(t), scan.creases.jump.shape[1]
        kinks = Kinks(
            np.full(n, self.lines), t, points, np.repeat(direction[None], n, axis=0), scan.creases.jump[here],
            np.minimum(widths[:-1], widths[1:]), np.hypot(self.scale, np.linalg.norm(points, axis=1)),
        )  # fmt: skip
        self.kinks = kinks if self.kinks.bend.shape[1] != m else self.kinks + kinks
        self.lines += 1

    def _beyond(self, t: FloatArray, side: int, limit: float) -> float:
        outermost = 1.0  # width of an outermost piece, in its distance or the scale
        last = t[-1 if side > 0 else 0] if len(t) else 0.0
        beyond = last + side * outermost * max(self.scale, abs(last))
        return min(beyond, limit) if side > 0 else max(beyond, limit)

    def spacing(self) -> float:
        """Typical width of pieces, relative to scale and distance."""
        return float(np.median(self.kinks.width / self.kinks.unit))

    # ---- normals

    def measure(self, which: IntArray, known: KnownLayers) -> None:
        """Gradients on both sides of these kinks. Cost: 2 rows a piece, and one for each direction known layers leave.

        A gradient is a combination of those of the known features: where units are off, it has few directions. Where
        it says another slope along the line than the line itself, features are missing, and all directions are asked.
        """
        gradient_step = 0.15  # of the width of a piece
        pieces = np.unique(np.concatenate([self.piece_before(which), self.piece_before(which) + 1]))
        new = np.array([piece for piece in pieces if int(piece) not in self.gradients], dtype=np.intp)
        whole: list[int] = []
        for piece in new:
            directions = known.directions(self.middles[piece])
            if 0 < len(directions) < self.dim:
                self._measure(np.array([piece]), directions, gradient_step)
                if self._agrees(int(piece)):
                    continue
            whole.append(int(piece))
        if whole:
            self._measure(np.array(whole), None, gradient_step)

    def _agrees(self, piece: int) -> bool:
        """True if the gradient in a piece gives the slope that its line has there."""
        gradient, along = self.gradients[piece], self.along[piece]
        if gradient is None:
            return True
        off = gradient @ self.directions[piece] - along
        return bool(np.linalg.norm(off) <= SLOPE_ERROR * np.linalg.norm(along))

    def _measure(self, pieces: IntArray, directions: FloatArray | None, step: float) -> None:
        steps = step * self.widths[pieces]
        found = gradients(self.ask, self.middles[pieces], directions, steps, self.noise, self.rng, domain=self.domain)
        slopes = found.slope if directions is None else found.slope @ directions
        for piece, slope, good in zip(pieces, slopes, found.good, strict=True):
            self.gradients[int(piece)] = slope if good else None

    def measured(self) -> BoolArray:
        """Which kinks have gradients on both sides."""
        before = self.piece_before(np.arange(len(self.kinks)))
        return np.array([int(b) in self.gradients and int(b) + 1 in self.gradients for b in before], dtype=bool)

    def normal(self, kink: int) -> tuple[FloatArray, float] | None:
        """Unit normal of the crease and the size of its bend, None where gradients failed."""
        before = int(self.piece_before(np.array([kink]))[0])
        left, right = self.gradients.get(before), self.gradients.get(before + 1)
        if left is None or right is None:
            return None
        _, sizes, rows = np.linalg.svd(right - left, full_matrices=False)
        along = (right - left) @ self.kinks.direction[kink]
        off = np.linalg.norm(along - self.kinks.bend[kink]) + sizes[1:].sum()
        return None if off > SLOPE_ERROR * sizes[0] else (rows[0], float(sizes[0]))

    def jump(self, kink: int) -> FloatArray | None:
        """Jump (d,) of the slope of one sum of the outputs, the same for all kinks; None where gradients failed."""
        if self.normal(kink) is None:
            return None
        before = int(self.piece_before(np.array([kink]))[0])
        left, right = self.gradients[before], self.gradients[before + 1]
        assert left is not None
        assert right is not None
        outputs = np.random.default_rng(len(left)).standard_normal(len(left))
        return np.asarray(outputs @ (right - left) / np.linalg.norm(outputs))

    def piece_before(self, which: IntArray) -> IntArray:
        """The piece before each of these kinks; the one after it is the next."""
        return np.asarray(which + self.kinks.line[which])

    # ---- explained kinks

    def slopes(self, known: KnownLayers) -> FeatureSlopes:
        """What known layers make of all kinks; kept until there are more of either."""
        if self._slopes is None or self._slopes[0] is not known or self._slopes[1] is not self.kinks:
            self._slopes = known, self.kinks, known.along(self.kinks.point, self.kinks.direction)
        return self._slopes[2]

    def unexplained(self, known: KnownLayers) -> BoolArray:
        """Which kinks no known neuron passes."""
        slopes = self.slopes(known)
        distance = relative_distance(slopes.values, slopes.value_slopes, self.kinks)
        return np.less(distance, SAME_PLACE).sum(axis=1) == 0


def relative_distance(values: FloatArray, slopes: FloatArray, kinks: Kinks) -> FloatArray:
    """How far along its line from each kink a value (n, k) becomes zero, relative to scale and distance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.abs(values / slopes) / kinks.unit[:, None]
    return np.where(np.isnan(distance), np.inf, distance)


@dataclass(frozen=True)
class LineScore:
    """Crossings that are kinks, and crossings that are not."""

    hits: int
    misses: int

    def share(self) -> float:
        """Part of the crossings that was seen; where they are many, one may be too close to another one."""
        many = 6
        misses = max(self.misses - (self.hits >= many), 0)
        return self.hits / max(self.hits + misses, 1)


def passes_kinks(store: KinkStore, known: KnownLayers, incoming: IncomingWeights) -> BoolArray:
    """At which kinks the neuron's value is zero."""
    slopes = store.slopes(known)
    values = incoming.values(slopes.features)[:, None]
    near = relative_distance(values, (slopes.feature_slopes @ incoming.weights)[:, None], store.kinks)[:, 0]
    return np.asarray((near < SAME_PLACE) & incoming.determined(slopes.features))


def _is_rounding(incoming: IncomingWeights, features: FloatArray, values: FloatArray) -> BoolArray:
    """Values (n,) of no sign: zero up to rounding, as where all units below are off and there is no bias."""
    of_the_terms = 1e-12
    terms = np.linalg.norm(features - incoming.start, axis=1) * np.linalg.norm(incoming.weights)
    return np.asarray(np.abs(values) <= of_the_terms * terms)


def line_score(store: KinkStore, known: KnownLayers, incoming: IncomingWeights) -> LineScore:
    """Count hits and misses on all lines, where the neuron is determined."""
    kinks = store.kinks
    hit = passes_kinks(store, known, incoming)
    points = np.concatenate([kinks.point, store.ends[:, 0], store.ends[:, 1]])
    features = known.features(points)
    values = incoming.values(features)
    positive, sure = values > 0, incoming.determined(features) & ~_is_rounding(incoming, features, values)
    on = np.concatenate([hit, np.zeros(2 * store.lines, dtype=bool)])
    line = np.concatenate([kinks.line, np.arange(store.lines), np.arange(store.lines)])
    rank = np.concatenate([np.ones(len(kinks)), np.zeros(store.lines), np.full(store.lines, 2.0)])
    order = np.lexsort([np.arange(len(line)), rank, line])  # ends before and after the kinks of each line
    line, positive, sure, on = line[order], positive[order], sure[order], on[order]
    pieces = np.flatnonzero(line[1:] == line[:-1])
    visible = pieces[~store.constant]
    missed = (sure & ~on)[visible] & (sure & ~on)[visible + 1] & (positive[visible] != positive[visible + 1])
    return LineScore(int(hit.sum()), int(missed.sum()))
