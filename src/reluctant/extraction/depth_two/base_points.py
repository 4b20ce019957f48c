"""Third stage of depth two: points far from every crease, at which gradients in all directions are measured.

Inside the known subspace random points climb away from all creases, to where there is room for long steps. Of these
as many are chosen as there are unknowns, so that their activation patterns determine every neuron well. No queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from reluctant.arrays import HOST, Array, Arrays
from reluctant.extraction.depth_two.line import Regions
from reluctant.extraction.linear import MANY_NEURONS, Design, design_matrix
from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise, FramedNetwork
from reluctant.geometry.samples import IntArray
from reluctant.numerics import FloatArray
from reluctant.oracles.limits import check_time

__all__ = ["BasePoints", "choose_base_points", "climb", "points_needed", "reach_of", "weight_sizes"]

SOFTNESS = 0.5  # of the margin: creases this much farther than the nearest still push
COOLING = 2.5  # strides are full at first and shorten over the last 1/COOLING of the steps


def climb(
    known: FramedNetwork, scale: float, candidates: int, rng: np.random.Generator, arrays: Arrays = HOST
) -> FloatArray:
    """Random points of a ball, moved away from the creases around them."""
    (g, _), (z, _) = known.network.weights, known.network.biases
    k, reach = g.shape[1], reach_of(known, scale)
    y = rng.standard_normal((candidates, k))
    y *= reach * rng.uniform(0.3, 1.0, (candidates, 1)) / np.linalg.norm(y, axis=1, keepdims=True)
    size, block = weight_sizes(known, reach), max(1, arrays.cells // len(z))
    # In units of the reach and of each neuron's size single precision is plenty to find room in.
    units = (np.asarray(part, dtype=np.float32) for part in (g / size[:, None], z / (size * reach), y / reach))
    normals, offsets, starts = (arrays.put(part) for part in units)
    parts = [_climb_block(normals, offsets, starts[i : i + block], arrays.xp) for i in range(0, candidates, block)]
    return reach * np.concatenate([arrays.get(part) for part in parts]).astype(np.float64)


def reach_of(known: FramedNetwork, scale: float) -> float:
    """How far from the origin of the frame base points are looked for."""
    climb_reach = 5.0  # of the climb, in median distances of a crease from the origin of the frame
    (g, _), (z, _) = known.network.weights, known.network.biases
    typical = float(np.median(np.abs(z) / np.linalg.norm(g, axis=1)))
    return max(climb_reach * typical * float(np.sqrt(g.shape[1])), 0.5 * scale)


def _climb_block(g: Array, z: Array, y: Array, xp: Any) -> Array:
    """Follow the gradient of a soft minimum of |g y + z| inside the unit ball; keep the best point met."""
    climb_steps = 40
    smallest_margin = 1e-3  # of the typical one, for a point that starts on a crease
    no_pull = -80.0  # exponent below which numbers lose digits, and time, in single precision
    stride, first_stride = 2.0, 0.3  # in margins, and at least in typical ones
    length = float(xp.sqrt((g**2).sum(axis=1)).mean())
    typical = length / len(z)  # margin to expect with this many creases
    best, best_margin = y, xp.zeros_like(y[:, 0])
    for step in range(climb_steps):
        check_time()
        values = y @ g.T + z
        sizes = xp.abs(values)
        margin = xp.amin(sizes, axis=1)
        better = margin > best_margin
        best, best_margin = xp.where(better[:, None], y, best), xp.maximum(margin, best_margin)
        softness = SOFTNESS * xp.clip(margin, smallest_margin * typical, None)
        pull = xp.subtract(margin[:, None], sizes, out=sizes)
        pull /= softness[:, None]
        xp.exp(xp.clip(pull, no_pull, None, out=pull), out=pull)
        direction = xp.copysign(pull, values, out=pull) @ g
        direction /= xp.linalg.norm(direction, axis=1, keepdims=True) + float(np.finfo(np.float32).tiny)
        cooling = min(1.0, COOLING * (1 - step / climb_steps))
        y = y + (cooling * stride / length * xp.clip(margin, first_stride * typical, None))[:, None] * direction
        y = y / xp.clip(xp.linalg.norm(y, axis=1, keepdims=True), 1, None)
    return best


def weight_sizes(known: FramedNetwork, reach: float) -> FloatArray:
    """Typical size of one coordinate of each neuron's weights; among many, more for one that is known badly.

    A margin as large as margins are is then also a few times the error of such a neuron's values.
    """
    sure_margin = 2.0  # errors of a neuron's value that the usual margin is to hold
    g = known.network.weights[0]
    if len(g) < MANY_NEURONS:
        return np.sqrt((g**2).mean(axis=1))
    return np.hypot(
        np.sqrt((g**2).mean(axis=1)), sure_margin * known.sd_within(reach) / reach * len(g) / np.sqrt(g.shape[1])
    )


SingleArray: TypeAlias = NDArray[np.float32]

HEAVIEST = 1.5  # for each point needed, of which elimination picks; more do not determine neurons better
MOST_EXTRA = 4  # points added one by one while some neuron is not determined


@dataclass(frozen=True)
class BasePoints:
    """Points of the frame: coordinates (n, k), their design, and the neurons' values (n, h) before the ReLU.

    `values` and `active`, which neurons are on, are kept where large arrays are. `witnesses` are a few points besides,
    which what is learnt at the others must explain.
    """

    y: FloatArray
    design: Design
    values: Array
    witnesses: BasePoints | None = None

    @property
    def active(self) -> Array:
        """Which neurons are on (n, h)."""
        return self.values > 0

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class _Candidates:
    """Points to choose from: coordinates, values of the neurons, and how much a measurement there weighs."""

    y: FloatArray
    values: Array
    weight: FloatArray  # of the median one
    outputs: FloatArray
    arrays: Arrays

    def designs(self, which: IntArray) -> Array:
        """Weighted rows (n, m, unknowns) of these points."""
        arrays, m = self.arrays, len(self.outputs)
        rows = design_matrix(self.values[arrays.put(which)] > 0, self.outputs, arrays)
        return rows.reshape(len(which), m, -1) * arrays.put(self.weight[which])[:, None, None]

    def chosen(self, which: IntArray) -> BasePoints:
        """These points, and as witnesses those with most room of the others."""
        witnesses = 16
        others = np.argsort(-self.weight, kind="stable")
        others = others[~np.isin(others, which)][:witnesses]
        return replace(self._points(which), witnesses=self._points(others) if len(others) else None)

    def _points(self, which: IntArray) -> BasePoints:
        values = self.values[self.arrays.put(which)]
        return BasePoints(self.y[which], Design.of(values > 0, self.outputs, self.arrays), values)


def choose_base_points(
    known: FramedNetwork, regions: Regions, noise: DistanceNoise, rng: np.random.Generator, arrays: Arrays = HOST
) -> BasePoints:
    """Points whose patterns determine all neurons, with room around them."""
    pool = 4.0  # candidates for each point needed
    pool_for_many = 3.0
    fewest_candidates = 200
    most_for_pivots = 2000  # neurons: for more, looking at every pivot takes minutes
    m, h = known.network.outputs, known.neurons
    needed, many = points_needed(h, m), m == 1 and h >= MANY_NEURONS
    count = max(int((pool_for_many if many else pool) * needed), fewest_candidates)
    candidates = _candidates(known, regions, noise, climb(known, regions.scale, count, rng, arrays), arrays)
    found = _by_elimination(candidates, needed) if many else None
    if found is None and h <= most_for_pivots:
        found = _by_pivots(candidates, needed)
    if found is not None:
        return found
    raise StageFailed(
        "base points",
        "neurons that no point tells apart",
        number=needed + MOST_EXTRA,
        limit=needed,
        partial=known,
    )


def _candidates(
    known: FramedNetwork, regions: Regions, noise: DistanceNoise, climbed: FloatArray, arrays: Arrays
) -> _Candidates:
    """Points that were climbed to, and the middles of the line's regions, where there is room for a step."""
    too_close = 1e-11  # of the typical weight of a point: its steps would be too short to measure anything
    sure_of_its_side = 5.0  # errors of a neuron's value that it must be from zero
    # These show every neuron in both states, should the climb miss one.
    on_line = np.zeros((len(regions), climbed.shape[1]))
    on_line[:, 0] = regions.middle
    y = np.concatenate([climbed, on_line])
    (g, outputs), (z, _) = known.network.weights, known.network.biases
    values = arrays.put(y) @ arrays.put(g.T) + arrays.put(z)
    sizes = arrays.put(weight_sizes(known, reach_of(known, regions.scale)))
    room = arrays.get(arrays.xp.amin(arrays.xp.abs(values) / sizes, axis=1))
    weight = room / noise.at(np.linalg.norm(y, axis=1) + regions.scale)
    fit = weight > too_close * np.median(weight[: len(climbed)])
    if len(z) >= MANY_NEURONS:  # among fewer, what is unsure is a pair of neurons that only a sliver tells apart
        fit &= _surety(known, y, values, arrays) > sure_of_its_side
    usable = np.flatnonzero(fit)
    needed = points_needed(len(z), len(outputs))
    if len(usable) < needed:
        reason = "points at which every neuron's state is sure"
        raise StageFailed("base points", reason, number=len(usable), limit=needed, partial=known)
    weight = weight[usable]
    return _Candidates(y[usable], values[arrays.put(usable)], weight / np.median(weight), outputs, arrays)


def _surety(known: FramedNetwork, y: FloatArray, values: Array, arrays: Arrays) -> FloatArray:
    """How many errors of its value the least sure neuron is from zero at each point."""
    block = max(1, arrays.cells // known.neurons)
    parts = [slice(start, start + block) for start in range(0, len(y), block)]
    found = [arrays.xp.amin(arrays.xp.abs(values[part]) / known.sd_at(y[part], arrays), axis=1) for part in parts]
    return np.concatenate([arrays.get(part) for part in found])


def _by_elimination(candidates: _Candidates, needed: int) -> BasePoints | None:
    """Of the points with most room the ones whose rows elimination picks; else of all."""
    heaviest = np.argsort(-candidates.weight, kind="stable")
    for which in (_showing_all(candidates, heaviest[: int(HEAVIEST * needed)]), heaviest):
        rows = candidates.arrays.single(candidates.designs(which)[:, 0])
        picked = which[candidates.arrays.row_pivots(rows, needed)]
        found = candidates.chosen(picked)
        if _tells_all_apart(found.design, candidates.weight[picked]):
            return found
    return None


def _showing_all(candidates: _Candidates, which: IntArray) -> IntArray:
    """These points, and those of the line too where some neuron is hardly ever on, or off: its crease is far out."""
    shown_at = 16  # of these, at which each neuron is on, and off, at least: of fewer elimination may leave out all
    on = candidates.arrays.get((candidates.values[candidates.arrays.put(which)] > 0).sum(axis=0))
    if np.minimum(on, len(which) - on).min() >= shown_at:
        return which
    return np.union1d(which, np.flatnonzero(~candidates.y[:, 1:].any(axis=1)))


def _tells_all_apart(design: Design, weight: FloatArray) -> bool:
    """True if the noise of the points makes no neuron's error much larger than it would be alone."""
    most_amplified = 1e3  # error of a neuron over that of a gradient at one point; usual is less than one
    arrays = design.arrays
    try:
        inverse = design.inverse / arrays.put(weight)
    except np.linalg.LinAlgError:
        return False
    errors = arrays.get(arrays.xp.linalg.norm(inverse, axis=1))  # in those of a point of median weight
    return bool(np.all(errors < most_amplified))  # NaN is none


def _by_pivots(candidates: _Candidates, needed: int) -> BasePoints | None:
    """Greedily the points whose rows span the most volume; a few more if these leave something open."""
    every = np.arange(len(candidates.y))
    design = candidates.arrays.get(candidates.designs(every))
    for number, precision, limit in _choices_to_try(needed):
        check_time()
        chosen = _pivots(design.astype(precision), number)
        if _determines_all(design[chosen].reshape(-1, design.shape[2]), limit):
            return candidates.chosen(chosen)
    return None


def points_needed(h: int, m: int) -> int:
    """Base points for h neurons and m outputs: as many as there are unknowns; each gives m equations."""
    spare_rows = 2  # with several outputs: what tells that a coordinate's gradients fit no weights
    return h + 1 if m == 1 else -(-(h + m + spare_rows) // m)


def _choices_to_try(needed: int) -> Iterator[tuple[int, type[np.floating[Any]], float]]:
    """How many points to choose, in which precision, and how well they must determine all neurons.

    Single precision chooses as well in a third of the time, unless some neurons are hard to tell apart.
    """
    well_determined = 1e-7  # of the median singular value: more digits than that are not to be lost in solving
    barely_determined = 1e-12  # where two neurons differ only between their creases, which are close together
    yield needed, np.float32, float(np.sqrt(np.finfo(np.float32).eps))
    for more in range(MOST_EXTRA):
        yield needed + more, np.float64, well_determined
    yield needed, np.float64, barely_determined


def _determines_all(design: FloatArray, limit: float) -> bool:
    """True if the rows leave no combination of neurons open."""
    singular = scipy.linalg.svdvals(design, check_finite=False)
    return bool(len(design) >= design.shape[1] and singular[-1] > limit * np.median(singular))


def _pivots(design: FloatArray | SingleArray, needed: int) -> IntArray:
    """Points whose rows span the most volume, greedily."""
    _, m, unknowns = design.shape
    if m == 1:
        columns = np.asfortranarray(design[:, 0].T)
        _, order = scipy.linalg.qr(columns, mode="r", pivoting=True, overwrite_a=True, check_finite=False)
        return np.asarray(order[:needed])
    chosen: list[int] = []
    rest = design.copy()
    for k in range(needed):
        check_time()
        free = min(m, max(unknowns - k * m, 1))  # directions still open for this point
        volumes = np.log(np.maximum(_singular_values(rest)[:, :free], np.finfo(np.float32).tiny)).sum(axis=1)
        volumes[chosen] = -np.inf
        chosen.append(int(np.argmax(volumes)))
        taken = np.linalg.qr(rest[chosen[-1]].T)[0]
        rest = rest - (rest @ taken) @ taken.T
    return np.array(chosen)


def _singular_values(rows: FloatArray | SingleArray) -> FloatArray | SingleArray:
    """Singular values of each (m, unknowns) block, largest first, from its small Gram matrix."""
    gram = np.einsum("nij,nkj->nik", rows, rows, optimize=True)
    return np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[:, ::-1], 0))
