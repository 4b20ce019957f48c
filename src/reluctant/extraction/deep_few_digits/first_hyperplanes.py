"""First layer of two: rows of the hyperplanes that lines share, in a larger frame, and the side on which each is on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.few_digits.answer_store import Asked, central_gradients, steps_both_ways
from reluctant.extraction.few_digits.incomplete_lines import rank_one
from reluctant.extraction.few_digits.shared_hyperplanes import Hyperplane, NormalKink, SmallFrame
from reluctant.extraction.method import Shows, StageFailed
from reluctant.geometry import Frame
from reluctant.numerics import FloatArray

WIDTH = "width of the first layer"  # the stage that refuses more neurons than inputs: another attempt finds the same
ROW_STEP = 0.45  # of half a piece
ROW_KINKS, ROW_ERROR = 4, 5e-3  # kinks that a row is measured at, one after another, until it is known to this
LOOKS, MORE_LINES = 3, 4  # at the hyperplanes, and lines that are read before the next
MOST_OUTSIDE = 0.01  # part of the gradients outside the span of the rows: 1e-4 when right, more if a neuron is missing
MOSTLY = 0.9  # of the gradients
MOST_FALSE = 6  # hyperplanes among those found that are none of the first layer
MARGIN = 0.1  # slope along a neuron that is off over that where it is on: 0.007 if right, 0.4 if one is no neuron


@dataclass(frozen=True)
class FirstLayer:
    """W y + b in a frame, each row turned to the side where its neuron is on.

    margin: largest slope along a neuron that is off, over that where it is on. outside, most_outside: part of the
    gradients outside the span of the rows, in the median and where a neuron that is missing is on.
    """

    frame: Frame
    w: FloatArray
    b: FloatArray
    margin: float
    outside: float
    most_outside: float = 0.0


@dataclass(frozen=True)
class MeasuredRow:
    """A normal (k,) in the larger frame, with its error; points (2, k) and gradients (2, m, k) beside its kink."""

    normal: FloatArray
    error: float
    points: FloatArray
    gradients: FloatArray


def find_first_layer(asked: Asked, small: SmallFrame, planes: list[Hyperplane]) -> tuple[FirstLayer, KinkGradients]:
    """Rows of the hyperplanes in a frame of 1.25 directions a neuron, and their sides. Cost: 2 gradients a neuron.

    Rows that do not explain the slopes lack a neuron, or hold one that is none: more lines tell.
    """
    beside = KinkGradients(asked, small, larger_frame(asked, small.frame, len(planes)))
    best: FirstLayer | None = None
    for looks_left in reversed(range(LOOKS)):
        try:
            layer = _first_layer(beside, planes)
        except StageFailed as failure:
            if failure.shows is Shows.WIDE_LAYER or not (looks_left or best):
                raise
        else:
            best = layer if best is None or layer.most_outside < best.most_outside else best
        if best is not None and best.most_outside < MOST_OUTSIDE:
            break
        if looks_left:
            planes = small.find_more(MORE_LINES)
        if len(beside.frame.basis) < min(len(planes), asked.view.dim):
            beside = KinkGradients(asked, small, larger_frame(asked, small.frame, len(planes)))
    assert best is not None
    return best, beside


def larger_frame(asked: Asked, frame: Frame, neurons: int) -> Frame:
    """A frame with 1.25 directions a neuron, and a few; with more in a box, where short inputs have to reach far."""
    share = 1.25 if asked.view.is_space else 2.0
    size = min(asked.view.dim, int(np.ceil(share * neurons)) + 4)
    more = size - len(frame.basis)
    return frame.extended(frame.new_directions(more, asked.rng)) if more > 0 else frame


def _first_layer(beside: KinkGradients, planes: list[Hyperplane]) -> FirstLayer:
    """The first layer, if these are its hyperplanes."""
    rows, size = beside.rows(planes), len(beside.frame.basis)
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
    return turned(beside.frame, w, b, [planes[j].share for j in known], y, gradients)


class KinkGradients:
    """Gradients in a larger frame beside kinks of a small one; a kink is asked once."""

    def __init__(self, asked: Asked, small: SmallFrame, frame: Frame) -> None:
        self.asked, self.small, self.frame = asked, small, frame
        self.known: dict[NormalKink, MeasuredRow | None] = {}  # by the kink; None where no step was straight

    def rows(self, planes: list[Hyperplane]) -> list[MeasuredRow | None]:
        """The best known row of each plane; it is measured at one kink after another until it is known well."""
        with self.asked.view.oracle.stage("rows"):
            for turn in range(ROW_KINKS):  # a crease close to one kink is not close to the next
                open_ = [plane for plane in planes if not self._best_error(plane) <= ROW_ERROR]
                self.measure([plane.kinks[turn] for plane in open_ if turn < len(plane.kinks)])
        return [self._best(plane) for plane in planes]

    def _found(self, plane: Hyperplane) -> list[MeasuredRow]:
        rows = (self.known.get(kink) for kink in plane.kinks)
        return [row for row in rows if row is not None]

    def _best_error(self, plane: Hyperplane) -> float:
        return min((row.error for row in self._found(plane)), default=np.inf)

    def _best(self, plane: Hyperplane) -> MeasuredRow | None:
        found = self._found(plane)
        if not found:
            return None
        row, k = min(found, key=lambda row: row.error), len(plane.normal)
        normal = row.normal * np.sign(row.normal[:k] @ plane.normal) / np.linalg.norm(row.normal[:k])
        normal[:k] = plane.normal  # the small frame's part is known better
        return replace(row, normal=normal)

    def measure(self, kinks: list[NormalKink]) -> None:
        """Gradients on both sides of these kinks. Cost: 4k + 2 rows a kink."""
        kinks = [kink for kink in kinks if kink not in self.known]
        if not kinks:
            return
        lines = [self.small.lines[kink.line] for kink in kinks]
        y = np.zeros((len(kinks), 2, len(self.frame.basis)))
        y[:, :, : len(self.small.frame.basis)] = [
            line.at(kink.middles) for kink, line in zip(kinks, lines, strict=True)
        ]
        lengths = np.array([kink.lengths * line.size for kink, line in zip(kinks, lines, strict=True)])
        self.known.update(zip(kinks, self.between(y, lengths), strict=True))

    def between(self, y: FloatArray, lengths: FloatArray) -> list[MeasuredRow | None]:
        """Rows from gradients in the middles y (n, 2, k) of pieces of these lengths (n, 2); None: no straight step."""
        asked, frame = self.asked, self.frame
        rows = frame.points(y.reshape(-1, y.shape[2]))
        steps = steps_both_ways(asked.view, rows, frame.basis, ROW_STEP * lengths.reshape(-1, 1) / 2)
        slopes, sds = central_gradients(asked.ask, rows, frame.basis, steps)
        found: list[MeasuredRow | None] = []
        for j, middles in enumerate(y):
            pair = slice(2 * j, 2 * j + 2)
            if not np.isfinite(sds[pair]).all():
                found.append(None)
                continue
            normal, amount, _ = rank_one((slopes[2 * j + 1] - slopes[2 * j]).T)
            error = float(np.linalg.norm(sds[pair])) / max(float(np.linalg.norm(amount)), 1e-300)
            found.append(MeasuredRow(normal, error, middles, slopes[pair].transpose(0, 2, 1)))
        return found


def turned(
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
    return FirstLayer(
        frame, w[keep] * turned[:, None], b[keep] * turned, sides.margin, sides.outside, sides.most_outside
    )


@dataclass(frozen=True)
class _Sides:
    """Of rows: on which side each is on, the slope on the other over that there, and gradients outside their span."""

    on_above: np.ndarray
    margins: FloatArray
    outside: float
    most_outside: float

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
    return _Sides(on >= off, margins, float(np.median(outside)), float(np.quantile(outside, MOSTLY)))


def _medians(sizes: FloatArray, side: np.ndarray) -> FloatArray:
    """Median size (h,) over the points of a side, 0 where it has none."""
    columns = [sizes[side[:, j], j] for j in range(sizes.shape[1])]
    return np.array([np.median(column) if len(column) else 0.0 for column in columns])
