"""First layer of two: rows of the hyperplanes that lines share, in a larger frame, and the side on which each is on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.few_digits.answer_store import Asked, central_gradients
from reluctant.extraction.few_digits.incomplete_lines import rank_one
from reluctant.extraction.few_digits.shared_hyperplanes import Hyperplane, SmallFrame
from reluctant.extraction.method import Shows, StageFailed
from reluctant.geometry import Frame
from reluctant.numerics import FloatArray

WIDTH = "width of the first layer"  # the stage that refuses more neurons than inputs: another attempt finds the same
ROW_STEP = 0.45  # of half a piece
ROW_KINKS, ROW_ERROR = 4, 5e-3  # kinks that a row is measured at, one after another, until it is known to this
MOST_OUTSIDE = 0.01  # part of the gradients outside the span of the rows: 1e-4 when right, more if a neuron is missing
MOST_FALSE = 6  # hyperplanes among those found that are none of the first layer
MARGIN = 0.1  # slope along a neuron that is off over that where it is on: 0.007 if right, 0.4 if one is no neuron


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
