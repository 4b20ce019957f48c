"""Segments where as many known neurons as possible are on: creases there have all incoming weights.

In such a cell the known layers are one affine map. A linear programme finds a point of it, and random steps inside it
find others; nothing is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.extraction.deep_gradients.crease_normals import values_and_slopes
from reluctant.geometry.jumps import ExpectedCreases
from reluctant.geometry.lines import BoolArray, Lines
from reluctant.numerics import FloatArray

LARGEST = 1e3  # value of a first-layer neuron, of its typical size
STEPS = 30  # random steps from one point to the next
SPREAD = 1.5  # of the logarithm of a value, in the cell where the whole first layer is on
INSIDE = 1e-6  # of a value's scale: less counts as on the border


@dataclass(frozen=True)
class Cell:
    """Rows (r, h) and offsets (r,) of forms that are positive inside, in values of the first layer over their size.

    start: a point inside.
    """

    rows: FloatArray
    offsets: FloatArray
    start: FloatArray
    last: FloatArray  # (k, h): values of the last layer by those of the first, zero of neurons that are off


def segment(known: KnownLayers, rng: np.random.Generator, across: FloatArray | None = None) -> Lines | None:
    """A segment inside a cell where many neurons are on; None where none was found.

    across: weights (k,) of the last layer's values that change their sum as much as they can along it.
    """
    first = known.layers[0]
    size = np.sqrt(known.dim) * np.linalg.norm(first.weights, axis=1)
    back = np.linalg.pinv(first.weights)
    h = len(first)
    cell = _cell(known, size, rng) if len(known.layers) > 1 else Cell(np.eye(h), np.zeros(h), np.ones(h), np.diag(size))
    if cell is None:
        return None
    if across is not None:
        ends = _extremes(cell, across @ cell.last)
    elif len(known.layers) == 1:
        ends = np.exp(SPREAD * rng.standard_normal((2, h)))
    else:
        ends = np.array([_walk(cell, rng), _walk(cell, rng)])
    if ends is None:
        return None
    beside = rng.standard_normal(known.dim)
    beside -= back @ (first.weights @ beside)
    points = (ends * size - first.biases) @ back.T + beside
    if (points[0] == points[1]).all():
        return None
    return Lines.between(points[:1], points[1:], float(np.sqrt(known.dim)))


def crossed(known: KnownLayers, layer: Layer, complete: BoolArray, line: Lines) -> ExpectedCreases:
    """Where neurons of the next layer, of which all weights are known, cross a segment inside a cell."""
    whole = np.flatnonzero(complete.all(axis=1))
    weights, width = layer.weights[whole], layer.weights.shape[1]
    ends = line.points(
        np.zeros(3, dtype=np.intp), np.array([line.low[0], line.high[0], (line.low[0] + line.high[0]) / 2])
    )
    start, stop, _ = known.features(ends)[:, :width] @ weights.T + layer.biases[whole]
    values, slopes = values_and_slopes(known, ends[2:])
    normals = weights @ np.where(values[-1][0][:, None] > 0, slopes[-1][0], 0.0)
    sizes = np.linalg.norm(normals, axis=1)
    here = (start * stop < 0) & (sizes > 0)
    t = line.low[0] + (line.high[0] - line.low[0]) * start[here] / (start - stop)[here]
    return ExpectedCreases(t, normals[here] / sizes[here, None]).sorted()


def _extremes(cell: Cell, slope: FloatArray) -> FloatArray | None:
    """Two points (2, h) of the cell, near those where a sum is smallest and largest."""
    inside, high = 0.9, 10.0  # of the way there; of the values
    ends = []
    for sign in (1.0, -1.0):
        found = linprog(
            sign * slope, A_ub=-cell.rows, b_ub=cell.offsets, bounds=[(0.0, high)] * len(slope), method="highs"
        )
        if found.status != 0:
            return None
        ends.append(inside * found.x + (1 - inside) * cell.start)
    return np.array(ends)


def _maps(known: KnownLayers, size: FloatArray, on: list[np.ndarray] | None) -> list[tuple[FloatArray, FloatArray]]:
    """Values of every layer but the first as affine maps of those of the first; on: which neurons are, all if None."""
    rows, offsets, found = np.diag(size), np.zeros(len(size)), []
    for number, layer in enumerate(known.layers[1:]):
        mask = np.ones(len(rows)) if on is None else on[number]
        rows, offsets = layer.weights @ (mask[:, None] * rows), layer.weights @ (mask * offsets) + layer.biases
        norm = np.linalg.norm(rows, axis=1) + np.abs(offsets)
        found.append((rows / norm[:, None], offsets / norm))
    return found


def _cell(known: KnownLayers, size: FloatArray, rng: np.random.Generator) -> Cell | None:
    """The cell of a point that turns on as many neurons of the last layers as it can, some more wanted than others."""
    rows, offsets = (np.concatenate(part) for part in zip(*_maps(known, size, None), strict=True))
    h, r = len(size), len(rows)
    cost = np.concatenate([np.zeros(h), rng.exponential(size=r)])
    wanted = rng.uniform(0.01, 0.2)
    found = linprog(
        cost, A_ub=np.hstack([-rows, -np.eye(r)]), b_ub=offsets - wanted,
        bounds=[(0.02, 10.0)] * h + [(0.0, None)] * r, method="highs",
    )  # fmt: skip
    if found.status != 0:
        return None
    point = found.x[:h] * np.exp(0.01 * rng.standard_normal(h))
    on = [np.ones(h), *(np.ones(len(layer)) for layer in known.layers[1:])]
    inside_rows, inside_offsets, last = [np.eye(h)], [np.zeros(h)], np.diag(size)
    for number in range(1, len(known.layers)):
        rows, offsets = _maps(known, size, on)[number - 1]
        values = rows @ point + offsets
        if np.abs(values).min() < INSIDE:
            return None
        sign = np.sign(values)
        inside_rows.append(sign[:, None] * rows)
        inside_offsets.append(sign * offsets)
        on[number] = (values > 0).astype(float)
        last = on[number][:, None] * rows
    return Cell(np.concatenate(inside_rows), np.concatenate(inside_offsets), point, last)


def _walk(cell: Cell, rng: np.random.Generator) -> FloatArray:
    """Another point of the cell, by random steps from border to border."""
    point = cell.start
    for _ in range(STEPS):
        along = rng.standard_normal(len(point)) * (point if rng.random() < 1 / 2 else 1.0)
        room, slope = cell.rows @ point + cell.offsets, cell.rows @ along
        with np.errstate(divide="ignore"):
            reach = -room / slope
        high = min(np.min(reach[slope < 0], initial=LARGEST), LARGEST)
        low = max(np.max(reach[slope > 0], initial=-LARGEST), -LARGEST)
        point = point + rng.uniform(0.95 * low, 0.95 * high) * along
    return point
