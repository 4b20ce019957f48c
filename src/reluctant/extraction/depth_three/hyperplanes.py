"""First stage: the hyperplanes of the first layer, in a random subspace a little larger than their number.

A line tells how many there are; gradients on the two sides of each crease, along the directions of the
subspace alone, give its normal there. All is found when a long step orthogonal to every normal changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.depth_three.planes import LineInPlane, look_along
from reluctant.extraction.failures import StageFailed
from reluctant.geometry import DistanceNoise, Frame, Lines, gradients
from reluctant.geometry.crossings import cross
from reluctant.geometry.row_space import orthogonal_moves, value_changes
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["Hyperplanes", "find_hyperplanes"]

Ask = Callable[[FloatArray], FloatArray]

MOST_LINES, GENEROUS = 24, 3  # after so many lines neurons that are hard to see are looked for too
SLACK_SHARE, SLACK = 0.25, 4  # dimensions of the subspace beyond the number of first-layer creases on the first line
STEP = 0.03  # of a gradient, in lengths of the piece
WORST_NORMAL = 1e-6  # error of a normal that is still of use
SAME_NORMAL = 1e-4  # normals and offsets closer than this are one hyperplane
DEPENDENT = 1e-7  # singular value of the normals, of the largest, at which they are not independent
FAR = 4.0  # at which a likely hyperplane is looked at again, in typical inputs
LOOKS, ENOUGH = 12, 4  # of these must show it
CROSSING, OFF_COURSE, MEETING = 1e-5, 20.0, 0.05  # of a crossing there, as for the first look
TESTS = 12  # steps along which nothing may change
REACH = 10.0  # their length, in typical inputs
CHANGED = 1e-5  # of the spread of the answers


@dataclass(frozen=True)
class Hyperplanes:
    """Hyperplanes normals @ y + offsets = 0 in the coordinates y of a frame, and the gradients they come from."""

    frame: Frame
    scale: float  # typical size of an input
    spread: float  # typical distance of a crease
    normals: FloatArray  # (n, k), of norm one, of unknown sign
    offsets: FloatArray  # (n,)
    errors: FloatArray  # (n,) of the normals
    points: FloatArray  # (p, k) at which gradients were measured
    slopes: FloatArray  # (p, m, k)
    slope_sd: FloatArray  # (p,)
    sides: IntArray  # (n, 2): the points before and after each hyperplane
    on: FloatArray  # (n, k): a point of each

    def __len__(self) -> int:
        return len(self.normals)

    @property
    def condition(self) -> float:
        """Condition number of the normals."""
        if len(self) > self.normals.shape[1]:
            return float("inf")
        singular = np.linalg.svd(self.normals, compute_uv=False)
        return float(singular[0] / singular[-1]) if singular[-1] > 0 else float("inf")

    def chosen(self, keep: BoolArray) -> Hyperplanes:
        """These hyperplanes only."""
        parts = {name: getattr(self, name)[keep] for name in ("normals", "offsets", "errors", "sides", "on")}
        return replace(self, **parts)


def find_hyperplanes(oracle: Counting, noise: DistanceNoise, rng: np.random.Generator) -> Hyperplanes:
    """Find all first-layer hyperplanes; raises StageFailed if some stay hidden or there are more than inputs.

    Cost: about 15 rows for each crease of a line, and two gradients in the subspace for each hyperplane.
    """
    if oracle.dim < 2:
        raise StageFailed("hyperplanes", "one input: layers cannot be told apart", number=oracle.dim, limit=2)
    found: Hyperplanes | None = None
    with oracle.stage("hyperplanes"):
        for looked in range(MOST_LINES):
            line = _next_line(oracle, found, noise, rng)
            if found is None:
                if not len(line.first(looked >= GENEROUS)):
                    continue
                found = _empty(line, oracle, rng)
            found = _with_line(oracle.query, found, line, line.first(looked >= GENEROUS), noise, rng)
            found = _widened(oracle.query, found, noise, rng)
            if _depend(found):
                found = _confirmed(oracle.query, found, np.zeros(len(found), dtype=bool), noise, rng)
            _refuse_dependence(found, oracle.dim)
            if _is_complete(oracle.query, found, rng):
                return found
    raise StageFailed(
        "hyperplanes", "first-layer neurons that no line shows",
        number=0 if found is None else len(found), limit=1 if found is None else len(found) + 1,
    )  # fmt: skip


def _next_line(
    oracle: Counting, found: Hyperplanes | None, noise: DistanceNoise, rng: np.random.Generator
) -> LineInPlane:
    """A random line: anywhere at first, then in the frame."""
    lines = Lines.random(rng, 1, oracle.dim)
    if found is None:
        line = Frame(lines.origins[0], lines.directions)
        return look_along(oracle.query, line.extended(line.new_directions(1, rng)), lines, np.empty(0), noise, rng)
    k = len(found.frame.basis)
    start = rng.standard_normal(k)
    axes = np.linalg.qr(rng.standard_normal((k, 2)))[0].T
    plane = Frame(found.frame.points(start[None])[0], axes @ found.frame.basis)
    known = -(found.normals @ start + found.offsets) / (found.normals @ axes[0])
    return look_along(oracle.query, plane, lines, known, noise, rng)


def _empty(line: LineInPlane, oracle: Counting, rng: np.random.Generator) -> Hyperplanes:
    """No hyperplanes yet, in a frame that has room for as many as this line shows."""
    expected = int(np.ceil((1 + SLACK_SHARE) * len(line.first(True)))) + SLACK
    k, m = min(oracle.dim, max(expected, 2)), oracle.outputs
    frame = line.plane.extended(line.plane.new_directions(k - 2, rng)) if k > 2 else line.plane
    none, rows = np.empty(0), np.empty((0, k))
    sides = np.empty((0, 2), dtype=np.intp)
    scale = float(np.sqrt(oracle.dim))
    return Hyperplanes(frame, scale, line.spread, rows, none, none, rows, np.empty((0, m, k)), none, sides, rows)


def _with_line(
    ask: Ask,
    found: Hyperplanes,
    line: LineInPlane,
    first: IntArray,
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> Hyperplanes:
    """Add the hyperplanes of these creases of a line, those that are not sure after another look."""
    if not len(first):
        return found
    frame = found.frame
    axes = line.plane.basis @ frame.basis.T  # the plane in coordinates of the frame
    start = (line.plane.origin - frame.origin) @ frame.basis.T
    pieces = np.unique(np.concatenate([first, first + 1]))
    points = start + line.middle[pieces, None] * axes[0]
    slopes, sd, good = _slopes(ask, found, line, pieces, points, axes, noise, rng)
    before = np.searchsorted(pieces, first)
    usable = good[before] & good[before + 1]
    sides = len(found.points) + np.column_stack([before, before + 1])
    grown = replace(
        found,
        points=np.concatenate([found.points, points]),
        slopes=np.concatenate([found.slopes, slopes]),
        slope_sd=np.concatenate([found.slope_sd, sd]),
    )
    on = start + line.t[first, None] * axes[0]
    new = _planes(replace(grown, sides=sides[usable], on=on[usable]))
    sharp = new.errors < WORST_NORMAL
    return _joined(grown, _confirmed(ask, new.chosen(sharp), line.sure[first[usable]][sharp], noise, rng))


def _slopes(
    ask: Ask,
    found: Hyperplanes,
    line: LineInPlane,
    pieces: IntArray,
    points: FloatArray,
    axes: FloatArray,
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Gradients (p, m, k) in the frame: two directions are known from the line, the others are measured."""
    k = len(found.frame.basis)
    steps = STEP * np.minimum(line.length[pieces], found.scale + np.abs(line.middle[pieces]))
    slopes = np.einsum("pma,ak->pmk", line.slope[pieces], axes)
    if k == 2:
        return slopes, np.sqrt(2) * noise.at(np.linalg.norm(points, axis=1)) / steps, np.ones(len(pieces), dtype=bool)
    others = np.linalg.qr(axes.T, mode="complete")[0].T[2:]
    measured = gradients(_in(ask, found.frame), points, others, steps, noise, rng)
    slopes = slopes + np.einsum("pma,ak->pmk", measured.slope, others)
    return slopes, measured.sd, measured.good & np.isfinite(slopes).all(axis=(1, 2))


def _in(ask: Ask, frame: Frame) -> Ask:
    return lambda y: ask(frame.points(y))


def _planes(h: Hyperplanes) -> Hyperplanes:
    """Normals from the jumps of the gradients, offsets from the points on the hyperplanes."""
    jumps = h.slopes[h.sides[:, 1]] - h.slopes[h.sides[:, 0]]
    if not len(jumps):
        return replace(h, normals=np.empty((0, h.points.shape[1])), offsets=np.empty(0), errors=np.empty(0))
    _, sizes, right = np.linalg.svd(jumps, full_matrices=False)
    normals = right[:, 0]
    errors = np.hypot(h.slope_sd[h.sides[:, 0]], h.slope_sd[h.sides[:, 1]]) * np.sqrt(normals.shape[1])
    second = sizes[:, 1] if sizes.shape[1] > 1 else np.zeros(len(sizes))  # one crease has jumps along one normal
    errors = np.maximum(errors, second) / np.maximum(sizes[:, 0], np.finfo(float).tiny)
    return replace(h, normals=normals, offsets=-(normals * h.on).sum(axis=1), errors=errors)


def _confirmed(
    ask: Ask, new: Hyperplanes, sure: BoolArray, noise: DistanceNoise, rng: np.random.Generator
) -> Hyperplanes:
    """Look at those that are only likely at far random points of theirs."""
    doubtful = np.flatnonzero(~sure)
    if not len(doubtful):
        return new
    k = new.normals.shape[1]
    normals, on = np.repeat(new.normals[doubtful], LOOKS, axis=0), np.repeat(new.on[doubtful], LOOKS, axis=0)
    away = rng.standard_normal((len(normals), k))
    away -= (away * normals).sum(axis=1, keepdims=True) * normals
    distance = FAR * (new.spread + np.linalg.norm(on, axis=1))
    away *= (distance / np.linalg.norm(away, axis=1))[:, None]
    reach = distance * np.maximum(CROSSING, OFF_COURSE * np.repeat(new.errors[doubtful], LOOKS))
    seen = cross(_in(ask, new.frame), on + away, normals, reach, MEETING * reach, noise).critical
    keep = np.ones(len(new), dtype=bool)
    keep[doubtful] = seen.reshape(-1, LOOKS).sum(axis=1) >= ENOUGH
    return new.chosen(keep)


def _joined(found: Hyperplanes, new: Hyperplanes) -> Hyperplanes:
    """Both together, each hyperplane once."""
    for i in range(len(new)):
        one = new.chosen(np.arange(len(new)) == i)
        if not len(found) or not _same(found, one).any():
            parts = {
                name: np.concatenate([getattr(found, name), getattr(one, name)])
                for name in ("normals", "offsets", "errors", "sides", "on")
            }
            found = replace(found, **parts)
    return found


def _same(found: Hyperplanes, one: Hyperplanes) -> BoolArray:
    sign = np.sign(found.normals @ one.normals[0])
    apart = np.linalg.norm(found.normals - sign[:, None] * one.normals, axis=1)
    offset = np.abs(found.offsets - sign * one.offsets) / (found.scale + np.abs(found.offsets))
    return np.asarray((apart < SAME_NORMAL) & (offset < SAME_NORMAL))


def _widened(ask: Ask, found: Hyperplanes, noise: DistanceNoise, rng: np.random.Generator) -> Hyperplanes:
    """More directions while the hyperplanes fill the frame: the gradients are continued along them."""
    dim = len(found.frame.origin)
    while len(found) >= len(found.frame.basis) and len(found.frame.basis) < dim:
        k = len(found.frame.basis)
        new = found.frame.new_directions(min(dim - k, k), rng)
        rows = found.frame.points(found.points)
        measured = gradients(ask, rows, new, np.sqrt(2) * noise.at(found.scale) / found.slope_sd, noise, rng)
        wider = np.zeros((len(new),))
        found = _planes(
            replace(
                found,
                frame=found.frame.extended(new),
                points=np.column_stack([found.points, np.tile(wider, (len(rows), 1))]),
                slopes=np.concatenate([found.slopes, measured.slope], axis=2),
                slope_sd=np.maximum(found.slope_sd, measured.sd),
                on=np.column_stack([found.on, np.tile(wider, (len(found.on), 1))]),
            )
        )
        found = found.chosen(found.errors < WORST_NORMAL)
    return found


def _depend(found: Hyperplanes) -> bool:
    """True if the normals are not independent: one is false, or there are more neurons than inputs."""
    return len(found) > 0 and not found.condition < 1 / DEPENDENT


def _refuse_dependence(found: Hyperplanes, dim: int) -> None:
    if len(found) > dim:
        raise StageFailed(
            "hyperplanes", "more first-layer neurons than inputs: the first layer cannot be inverted",
            number=len(found), limit=dim,
        )  # fmt: skip
    if _depend(found):
        raise StageFailed(
            "hyperplanes", "first-layer weights depend on each other", number=1 / found.condition, limit=DEPENDENT
        )


def _is_complete(ask: Ask, found: Hyperplanes, rng: np.random.Generator) -> bool:
    """True if no step orthogonal to all normals changes the answers. Cost: 24 rows."""
    n, k = found.normals.shape
    if n == k:
        return True
    basis = np.linalg.qr(found.normals.T)[0].T
    starts = rng.standard_normal((TESTS, k)) * rng.choice([0.5, 2.0, 8.0], (TESTS, 1))
    moves = orthogonal_moves(basis, TESTS, REACH * found.scale, rng)
    change, answers = value_changes(_in(ask, found.frame), starts, moves)
    return bool(change.max() <= CHANGED * max(float(answers.std(axis=0).max()), np.finfo(float).tiny))
