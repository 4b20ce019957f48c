"""Segments where as many known neurons as possible are on: creases there have all incoming weights.

In such a cell the known layers are one affine map. A linear programme finds a point of it, and random steps inside it
find others; nothing is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from reluctant.extraction.any_depth.features import KnownLayers
from reluctant.extraction.any_depth.output_layer import without_outputs
from reluctant.extraction.deep_gradients.crease_normals import values_and_slopes
from reluctant.extraction.deep_gradients.layer_matches import Match
from reluctant.geometry.lines import BoolArray, Lines
from reluctant.numerics import FloatArray
from reluctant.verification.cells import covering, covering_points

LARGEST = 1e3  # value of a first-layer neuron, of its typical size
STEPS = 30  # random steps from one point to the next
SPREAD = 1.5  # of the logarithm of a value, in the cell where the whole first layer is on
SHORT = 1e-2  # of the room that a cell leaves: the length of a segment that should meet one crease
TURNED_ON = 0.02  # of the largest value of the first layer: neurons that are turned on have at least that, if they can
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


def probes(known: KnownLayers, rng: np.random.Generator, *, every: bool = False) -> FloatArray:
    """Points (n, d) at which neurons that the next layer may lack would be on, and many known ones are.

    Above one layer they are far out beside its axes, and near its origin: a neuron that is on anywhere is on beside one
    of them. So many are chosen as nearly every kind of neuron asks for; every: all. Above several, they are of all
    patterns.
    """
    first = known.layers[0]
    if len(first) > known.dim:
        return np.empty((0, known.dim))
    if len(known.layers) > 1:
        return covering_points(without_outputs(known, 1), rng, layers=(len(known.layers) + 1,))
    h = len(first)
    low = np.exp(rng.standard_normal((h + 1, h))) / LARGEST
    values = np.where(np.eye(h + 1, h) > 0, LARGEST, low)
    values = values if every else values[covering(values, len(values), rng)]
    size = np.sqrt(known.dim) * np.linalg.norm(first.weights, axis=1)
    back = np.linalg.pinv(first.weights)
    beside = rng.standard_normal((len(values), known.dim))
    beside -= (beside @ first.weights.T) @ back.T
    return np.asarray((values * size - first.biases) @ back.T + beside)


def across_facet(known: KnownLayers, crease: FloatArray, match: Match, turned_on: BoolArray) -> Lines | None:
    """A short segment across a neuron's crease beside the cell of one of its points, where more features are on.

    crease: that point (d,). turned_on: features (k,) of the last layer that are off there. A linear programme looks for
    a place of the cell's border where these are zero and the neuron too; just behind it the crease goes on, bent by
    weights that were not known. None where there is no such place.
    """
    first, wide = known.layers[0], 10.0  # times the values of the first layer there, and times known weights
    size = np.sqrt(known.dim) * np.linalg.norm(first.weights, axis=1)
    start = (first.weights @ crease + first.biases) / size
    on = [values[0] > 0 for values in values_and_slopes(known, crease[None])[0]]
    rows, offsets = np.diag(size), np.zeros(len(size))
    borders = [(np.where(on[0], 1.0, -1.0)[:, None] * rows, offsets)]
    for number, layer in enumerate(known.layers[1:], 1):
        offsets = layer.weights @ np.where(on[number - 1], offsets, 0.0) + layer.biases
        rows = layer.weights @ np.where(on[number - 1][:, None], rows, 0.0)
        sign = np.where(on[number], 1.0, -1.0)
        borders.append((sign[:, None] * rows, sign * offsets))
    borders[-1] = borders[-1][0][~turned_on], borders[-1][1][~turned_on]
    inside, level = (np.concatenate(part) for part in zip(*borders, strict=True))
    weights = np.where(match.known & on[-1], match.weights, 0.0)
    own = weights @ rows
    zero, zero_level = np.vstack([rows[turned_on], own]), np.append(offsets[turned_on], weights @ offsets + match.bias)
    lengths, zero_lengths = np.linalg.norm(inside, axis=1), np.linalg.norm(zero, axis=1)
    if not lengths.all() or not zero_lengths.all():
        return None
    reach = wide * np.maximum(np.abs(start), 1.0)
    found = linprog(
        np.append(np.zeros(len(size)), -1.0),
        A_ub=np.hstack([-inside / lengths[:, None], np.ones((len(inside), 1))]), b_ub=level / lengths,
        A_eq=np.hstack([zero / zero_lengths[:, None], np.zeros((len(zero), 1))]), b_eq=-zero_level / zero_lengths,
        bounds=[*zip(-reach, reach, strict=True), (0.0, 1.0)], method="highs",
    )  # fmt: skip
    if found.status != 0 or found.x[-1] < INSIDE:
        return None
    room, steps = found.x[-1], np.linalg.pinv(zero)
    up, along = steps[:, :-1].sum(axis=1), steps[:, -1]
    half = SHORT * room / np.linalg.norm(along)
    most = wide * np.abs(weights).max() * int(turned_on.sum())
    behind = found.x[:-1] + min(SHORT * room / np.linalg.norm(up), half / most) * up
    back = np.linalg.pinv(first.weights)
    ends = (np.stack([behind - half * along, behind + half * along]) * size - first.biases) @ back.T
    ends += crease - back @ (first.weights @ crease)
    return Lines.between(ends[:1], ends[1:], float(np.sqrt(known.dim)))


def with_more_on(known: KnownLayers, row: FloatArray) -> FloatArray:
    """An input (d,) with the same features of the second layer, where as many neurons of the first are on as can be.

    Layers above see no difference; but there slopes of the second layer's neurons are independent, and weights show.
    """
    if len(known.layers) < 2:
        return row
    first, second = known.layers[:2]
    size = np.sqrt(known.dim) * np.linalg.norm(first.weights, axis=1)
    start = (first.weights @ row + first.biases) / size
    unit = float(np.abs(start).max())
    rows = second.weights * size * unit
    now = rows @ np.maximum(start / unit, 0)
    on = now + second.biases > 0
    h, off = len(size), ~on
    lengths = np.linalg.norm(rows, axis=1)
    if unit == 0 or not lengths.all():
        return row
    least = (1 - INSIDE) * now[off] - INSIDE * second.biases[off]
    found = linprog(
        np.concatenate([np.zeros(h), -np.ones(h)]),
        A_ub=np.block([[rows[off] / lengths[off, None], np.zeros((off.sum(), h))], [-np.eye(h), np.eye(h)]]),
        b_ub=np.concatenate([least / lengths[off], np.zeros(h)]),
        A_eq=np.hstack([rows[on] / lengths[on, None], np.zeros((on.sum(), h))]), b_eq=now[on] / lengths[on],
        bounds=[(0.0, 10.0)] * h + [(0.0, TURNED_ON)] * h, method="highs",
    )  # fmt: skip
    if found.status != 0:
        return row
    values = unit * np.where(found.x[:h] > INSIDE, found.x[:h], np.minimum(start / unit, 0.0))
    back = np.linalg.pinv(first.weights)
    return np.asarray(row + back @ ((values - start) * size))


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
