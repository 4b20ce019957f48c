"""First layer of two: hyperplanes in a small frame, their rows in a larger one, and the side on which each is on.

All lines lie in one affine subspace of four dimensions. Beside each kink a gradient in these directions is measured;
its jump is a multiple of the hyperplane's normal. Kinks of one neuron of the first layer agree in normal and offset
on all lines, and the hyperplane is a kink wherever a line crosses it. Those of the second layer bend on the way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.deep_few_digits.answer_store import Asked, central_gradients
from reluctant.extraction.few_digits.incomplete_lines import LineReading, rank_one, read_incomplete_line
from reluctant.extraction.method import Shows, StageFailed
from reluctant.geometry import Frame
from reluctant.numerics import FloatArray

WIDTH = "width of the first layer"  # the stage that refuses more neurons than inputs: another attempt finds the same
SMALL_FRAME = 4  # dimensions: enough against chance matches of normals, and few rows a piece
LINE_SAMPLES, MOST_SAMPLES = 160, 1500
FEWEST_LINES, MOST_LINES = 5, 16
NORMAL_ERROR = 0.02  # from here on normals match by chance
HITS_A_MISS = 2.0  # crossings that are kinks, for each that is not
GRADIENT_STEP = 0.35  # of a piece
ROW_STEP = 0.45  # of half a piece
ROW_KINKS, ROW_ERROR = 4, 5e-3  # kinks that a row is measured at, one after another, until it is known to this
MOST_OUTSIDE = 0.01  # part of the gradients outside the span of the rows: 1e-4 when right, more if a neuron is missing
MOST_FALSE = 6  # hyperplanes among those found that are none of the first layer
MARGIN = 0.1  # slope along a neuron that is off over that where it is on: 0.007 if right, 0.4 if one is no neuron


@dataclass(frozen=True)
class CrossedLine:
    """A line origin + t · size · direction of the small frame, and its reading."""

    origin: FloatArray
    direction: FloatArray
    size: float
    reading: LineReading

    def at(self, t: FloatArray) -> FloatArray:
        """Coordinates (n, k) in the small frame."""
        return self.origin + np.atleast_1d(t)[:, None] * self.size * self.direction


@dataclass(frozen=True)
class NormalKink:
    """A kink with unit normal n ± error at the point y ± sd; middles (2,) and lengths (2,) of the runs beside it."""

    line: int
    normal: FloatArray
    error: float
    y: FloatArray
    sd: float
    middles: FloatArray
    lengths: FloatArray

    def matches(self, other: NormalKink) -> bool:
        """True if both can lie on one hyperplane."""
        sign, apart = np.sign(self.normal @ other.normal), other.y - self.y
        if np.linalg.norm(self.normal - sign * other.normal) >= 5 * (self.error + other.error) + 1e-6:
            return False
        away, sds = np.linalg.norm(apart), self.sd + other.sd
        return all(abs(kink.normal @ apart) < 6 * (kink.error * away + sds) for kink in (self, other))


@dataclass(frozen=True)
class Hyperplane:
    """normal · y + offset = 0 in the small frame; crossings of lines that are kinks, and that are not."""

    normal: FloatArray
    offset: float
    error: float
    kinks: list[NormalKink]
    hits: int
    misses: int

    @property
    def share(self) -> float:
        """Part of its crossings that are kinks."""
        return self.hits / (self.hits + self.misses + 0.5)


class SmallFrame:
    """Lines in a frame of few dimensions, their kinks with normals, and the hyperplanes that these share."""

    def __init__(self, asked: Asked) -> None:
        rng, d = asked.rng, asked.view.dim
        k = min(SMALL_FRAME, d)
        basis = np.linalg.qr(rng.standard_normal((d, k)))[0].T
        off_centre = 0.3  # biases of zero would make all hyperplanes meet
        self.asked, self.frame = asked, Frame(off_centre * rng.standard_normal(d) if d > k else np.zeros(d), basis)
        self.lines: list[CrossedLine] = []
        self.kinks: list[NormalKink] = []
        self.kinks_read = 0

    def find(self) -> list[Hyperplane]:
        """Read lines until two more add no hyperplane and each has three kinks. Cost: 15 to 25 rows a kink."""
        enough_kinks, still_enough = 3, 2
        found: list[Hyperplane] = []
        still = 0
        with self.asked.view.oracle.stage("first layer"):
            for lines in range(1, MOST_LINES + 1):
                self.read_line()
                if lines < FEWEST_LINES:
                    continue
                before, found = len(found), self.hyperplanes()
                still = still + 1 if len(found) == before else 0
                if still >= still_enough and all(len(plane.kinks) >= enough_kinks for plane in found):
                    break
        return found

    def read_line(self) -> None:
        """One more random line, with the normals of its kinks."""
        rng, size = self.asked.rng, self.asked.view.size
        k = len(self.frame.basis)
        direction = rng.standard_normal(k)
        direction /= np.linalg.norm(direction)
        origin = 0.7 * size * rng.standard_normal(k) / np.sqrt(k)
        origin -= (origin @ direction) * direction
        angles = np.linspace(-1.5, 1.5, LINE_SAMPLES)

        def ask(t: FloatArray) -> tuple[FloatArray, FloatArray]:
            return self.asked.ask(self.frame.points(origin + t[:, None] * size * direction))

        line = CrossedLine(origin, direction, size, read_incomplete_line(ask, np.tan(angles), most=MOST_SAMPLES))
        self.lines.append(line)
        self.kinks_read += len(line.reading.kinks)
        self.kinks += self._normals(line, len(self.lines) - 1)

    def _normals(self, line: CrossedLine, number: int) -> list[NormalKink]:
        reading, found = line.reading, []
        if not reading.kinks:
            return []
        beside, middles, lengths = reading.around(reading.kinks)
        points, steps = self.frame.points(line.at(middles)), GRADIENT_STEP * lengths * line.size
        slopes, sds = central_gradients(self.asked.ask, points, self.frame.basis, steps[:, None])
        place = {run: i for i, run in enumerate(beside)}
        for kink in reading.kinks:
            pair = [place[kink.left], place[kink.right]]
            sd = float(np.linalg.norm(sds[pair]))
            normal, amount, left = rank_one((slopes[pair[1]] - slopes[pair[0]]).T)
            size = float(np.linalg.norm(amount))
            if not sd < NORMAL_ERROR * size or left > 6 * sd:
                continue
            y = line.at(np.array([kink.t]))[0]
            found.append(NormalKink(number, normal, sd / size, y, kink.sd * line.size, middles[pair], lengths[pair]))
        return found

    def hyperplanes(self) -> list[Hyperplane]:
        """Groups of kinks that agree, the best known first, and that lines confirm."""
        kinks, used, found = sorted(self.kinks, key=lambda kink: kink.error), set[int](), []
        for i, first in enumerate(kinks):
            if i in used:
                continue
            group, lines = [i], {first.line}
            for j, other in enumerate(kinks):
                if j not in used and other.line not in lines and first.matches(other):
                    group.append(j)
                    lines.add(other.line)
            if len(group) < 2:
                continue
            plane = self._joined([kinks[j] for j in group])
            if plane.hits >= max(3, HITS_A_MISS * plane.misses):
                used.update(group)
                found.append(plane)
        return found

    def _joined(self, kinks: list[NormalKink]) -> Hyperplane:
        """The weighted mean of the normals, and through all positions."""
        errors = np.array([kink.error for kink in kinks])
        weights = errors**-2.0
        normals = np.array([kink.normal * np.sign(kink.normal @ kinks[0].normal) for kink in kinks])
        mean = (weights[:, None] * normals).sum(axis=0) / weights.sum()
        mean, error, k = mean / np.linalg.norm(mean), float(weights.sum() ** -0.5), len(mean)
        points, sds = np.array([kink.y for kink in kinks]), np.array([max(kink.sd, 1e-9) for kink in kinks])
        equations = np.concatenate(
            [
                np.column_stack([points, np.ones(len(points))]) / sds[:, None],
                np.column_stack([np.eye(k), np.zeros(k)]) / error,
            ]
        )
        solution = np.linalg.lstsq(equations, np.concatenate([np.zeros(len(points)), mean / error]), rcond=None)[0]
        solution = solution / np.linalg.norm(solution[:k])
        hits, misses = self._crossings(solution[:k], float(solution[k]), error)
        return Hyperplane(solution[:k], float(solution[k]), error, kinks, hits, misses)

    def _crossings(self, normal: FloatArray, offset: float, error: float) -> tuple[int, int]:
        """How many of the lines have a kink where they cross the hyperplane, and how many none."""
        hits = misses = 0
        for line in self.lines:
            slope, samples = float(normal @ line.direction) * line.size, line.reading.samples.t
            t = -(float(normal @ line.origin) + offset) / slope if slope else np.inf
            if not samples[0] < t < samples[-1]:
                continue
            away = float(np.linalg.norm(line.at(np.array([t]))))
            shown = line.reading.shows(t, 6 * error * away / abs(slope) + 1e-5 * (1 + abs(t)))
            hits, misses = hits + (shown is True), misses + (shown is False)
        return hits, misses


@dataclass(frozen=True)
class FirstLayer:
    """W y + b in a frame, each row turned to the side where its neuron is on.

    margin: largest slope along a neuron that is off, over that where it is on. outside: part of the gradients outside
    the span of the rows.
    """

    frame: Frame
    w: FloatArray
    b: FloatArray
    margin: float
    outside: float


@dataclass(frozen=True)
class _Row:
    """A normal (k,) in the larger frame, with its error; points (2, k) and gradients (2, m, k) beside its kink."""

    normal: FloatArray
    error: float
    points: FloatArray
    gradients: FloatArray


def find_first_layer(asked: Asked, small: SmallFrame, planes: list[Hyperplane]) -> FirstLayer:
    """Rows of the hyperplanes in a frame of 1.25 directions a neuron, and their sides. Cost: 2 gradients a neuron."""
    dim, k = asked.view.dim, len(small.frame.basis)
    size = min(dim, int(np.ceil(1.25 * len(planes))) + 4)
    frame = small.frame
    if size > k:
        frame = frame.extended(frame.new_directions(size - k, asked.rng))
    rows: list[_Row | None] = [None] * len(planes)
    with asked.view.oracle.stage("rows"):
        for turn in range(ROW_KINKS):  # a crease close to one kink is not close to the next
            wanted = [j for j, row in enumerate(rows) if row is None or row.error > ROW_ERROR]
            wanted = [j for j in wanted if turn < len(planes[j].kinks)]
            for j, row in zip(
                wanted, _measured_rows(asked, small, frame, [planes[j] for j in wanted], turn), strict=True
            ):
                best = rows[j]
                if row is not None and (best is None or row.error < best.error):
                    rows[j] = row
    known = [j for j, row in enumerate(rows) if row is not None]
    found = [row for row in rows if row is not None]
    if len(known) > size:
        sure = len(known) > size + MOST_FALSE  # else other lines may show fewer that are none
        shows, stage = (Shows.WIDE_LAYER, WIDTH) if sure else (Shows.NOTHING, "sides")
        raise StageFailed(stage, "more neurons than inputs", number=len(known), limit=size, shows=shows)
    if not known:
        raise StageFailed("rows", "no gradient beside a kink", number=0, limit=1)
    w = np.array([row.normal / np.linalg.norm(row.normal) for row in found])
    b = np.array([planes[j].offset / np.linalg.norm(row.normal) for j, row in zip(known, found, strict=True)])
    y, gradients = np.concatenate([row.points for row in found]), np.concatenate([row.gradients for row in found])
    return _turned(frame, w, b, [planes[j].share for j in known], y, gradients)


def _measured_rows(
    asked: Asked, small: SmallFrame, frame: Frame, planes: list[Hyperplane], turn: int
) -> list[_Row | None]:
    """Rows by the gradients beside each plane's kink of this number; None where no step was straight."""
    if not planes:
        return []
    k, size = len(small.frame.basis), len(frame.basis)
    points, steps = [], []
    for plane in planes:
        kink = plane.kinks[turn]
        line = small.lines[kink.line]
        points += list(line.at(kink.middles))
        steps += list(ROW_STEP * kink.lengths / 2 * line.size)
    slopes, sds = central_gradients(
        asked.ask, small.frame.points(np.array(points)), frame.basis, np.array(steps)[:, None]
    )
    y = np.zeros((len(points), size))
    y[:, :k] = points
    rows: list[_Row | None] = []
    for j, plane in enumerate(planes):
        pair = slice(2 * j, 2 * j + 2)
        if not np.isfinite(sds[pair]).all():
            rows.append(None)
            continue
        normal, amount, _ = rank_one((slopes[2 * j + 1] - slopes[2 * j]).T)
        error = float(np.linalg.norm(sds[pair])) / max(float(np.linalg.norm(amount)), 1e-300)
        normal = normal * np.sign(normal[:k] @ plane.normal) / np.linalg.norm(normal[:k])
        normal[:k] = plane.normal  # the small frame's part is known better
        rows.append(_Row(normal, error, y[pair], slopes[pair].transpose(0, 2, 1)))
    return rows


def _turned(
    frame: Frame, w: FloatArray, b: FloatArray, shares: list[float], y: FloatArray, gradients: FloatArray
) -> FirstLayer:
    """Rows turned to the side where the slope along them is; a hyperplane that is none spoils the sides of others.

    gradients: (n, m, k) at coordinates y (n, k).
    """
    keep = np.argsort(shares)[::-1]
    sides = _sides(w[keep], b[keep], y, gradients)
    for _ in range(MOST_FALSE):
        if sides.margin < MARGIN or len(keep) < 2:
            break
        fewer = [np.delete(keep, i) for i in range(len(keep))]
        without = [_sides(w[rest], b[rest], y, gradients) for rest in fewer]
        best = int(np.argmin([np.sort(other.margins)[-3:].sum() for other in without]))
        keep, sides = fewer[best], without[best]
    if not sides.margin < MARGIN:
        raise StageFailed("sides", "slopes on both sides of a hyperplane", number=sides.margin, limit=MARGIN)
    if sides.outside > MOST_OUTSIDE:
        raise StageFailed("first layer", "slopes outside its rows", number=sides.outside, limit=MOST_OUTSIDE)
    turned = np.where(sides.on_above, 1.0, -1.0)
    return FirstLayer(frame, w[keep] * turned[:, None], b[keep] * turned, sides.margin, sides.outside)


@dataclass(frozen=True)
class _Sides:
    """Of rows: on which side each is on, the slope on the other over that there, and gradients outside their span."""

    on_above: np.ndarray
    margins: FloatArray
    outside: float

    @property
    def margin(self) -> float:
        """The largest."""
        return float(self.margins.max(initial=0.0))


def _sides(w: FloatArray, b: FloatArray, y: FloatArray, gradients: FloatArray) -> _Sides:
    parts = gradients @ np.linalg.pinv(w)  # (n, m, h)
    sizes, positive = np.linalg.norm(parts, axis=1), y @ w.T + b > 0
    on, off = (_medians(sizes, side) for side in (positive, ~positive))
    margins = np.minimum(on, off) / np.maximum(np.maximum(on, off), 1e-300)
    left = np.linalg.norm(gradients - parts @ w, axis=(1, 2))
    outside = left / np.maximum(np.linalg.norm(gradients, axis=(1, 2)), 1e-300)
    return _Sides(on >= off, margins, float(np.median(outside)))


def _medians(sizes: FloatArray, side: np.ndarray) -> FloatArray:
    """Median size (h,) over the points of a side, 0 where it has none."""
    columns = [sizes[side[:, j], j] for j in range(sizes.shape[1])]
    return np.array([np.median(column) if len(column) else 0.0 for column in columns])
