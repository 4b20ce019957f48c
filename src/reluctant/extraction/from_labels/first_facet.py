"""The first facet of a flat: a boundary point, the facet around it, and what the boundary is if there is none."""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

from reluctant.extraction.from_labels.bent_model import BentModel, BoundaryPoints, Terms, row_norms
from reluctant.extraction.from_labels.flat import Flat, facet_sides
from reluctant.extraction.from_labels.joint_polish import LocatedPoints, polished
from reluctant.extraction.method import StageFailed
from reluctant.geometry.lines import BoolArray
from reluctant.messages import Diagnosis
from reluctant.messages.catalogue import SPAN_FROM_LABELS, TRAIN
from reluctant.numerics import FloatArray
from reluctant.results import Outcome

FIRST_REACH = 0.03  # of a typical input: from a crease to a point of the facet behind
CLEAR = 1e-4  # of a typical input: points nearer to a crease are not located
EXACT = 30.0  # tolerances that a located point may be off


def boundary_point(flat: Flat, finest: float) -> BoundaryPoints | None:
    """A boundary point between two random points, with the line across it. Cost: 16 to 160 rows, and its bits."""
    draws, tries = 16, 10
    for _ in range(tries):
        y = flat.draw(draws)
        labels = flat.labels(y)
        names, counts = np.unique(labels, return_counts=True)
        if len(names) == 1:
            continue
        pair = np.sort(names[np.argsort(-counts, kind="stable")[:2]])
        low, high = (y[labels == name][0] for name in pair)
        length = float(np.linalg.norm(high - low))
        line = BoundaryPoints(low[None], (high - low)[None] / length, pair)
        t = flat.crossings(line, length / 2, finest, length / 2, length / 2)
        if np.isfinite(t).all():
            return BoundaryPoints(line.points + t[:, None] * line.across, line.across, pair)
    return None


def first_facet(flat: Flat) -> tuple[BentModel, LocatedPoints]:
    """The affine model of one facet, and the boundary points that gave it. Cost: about 40·r rows."""
    tries, steps = 4, (0.03, 0.01, 3e-3) if flat.few_digits else (3e-3, 4e-4, 5e-5)
    for _ in range(tries):
        found = boundary_point(flat, flat.finest)
        for step in steps if found is not None else ():
            assert found is not None
            length, wanted = np.array([step * flat.typical]), np.ones(1, dtype=bool)
            sides = facet_sides(flat, found, length, wanted)
            if sides.even[0]:
                slope = sides.slope[0] / np.linalg.norm(sides.slope[0])
                if along_one_input(flat, slope):
                    refuse_steps(flat)
                model = BentModel.affine(slope, float(-slope @ found.points[0]))
                return spread_out(flat, model, found.points, LocatedPoints(sides.located[0], sides.tol[0]))
            if step == steps[0]:
                refuse_curves(flat)
                refuse_steps(flat)
    raise StageFailed("facet", "no flat piece of the boundary was found", number=0.0, limit=1.0)


def spread_out(flat: Flat, model: BentModel, at: FloatArray, located: LocatedPoints) -> tuple[BentModel, LocatedPoints]:
    """The affine model of a facet at a point (1, r), fitted to points farther away: all neurons build on it."""
    reach = np.array([FIRST_REACH * flat.typical])
    lines, off, _ = spread(flat, model, reach, Terms(np.zeros((1, model.dim)), np.zeros(1), at))
    t = flat.crossings(lines, off / 64, flat.finest, 2 * off)
    found = np.isfinite(t)
    far = located + flat.located((lines.points + t[:, None] * lines.across)[found])
    better, left = polished(model, far)
    return (better, far) if left.max() < EXACT else (model, located)


def refuse_curves(flat: Flat) -> None:
    """StageFailed if the boundary bends nearly everywhere with the square of a step. Cost: 1300 rows."""
    places, steps, most = 8, (1e-3, 1e-4), 1 / 2
    tol, noise, (least_ratio, most_ratio) = 1e-10 * flat.typical, 30.0, (40.0, 250.0)
    points = [found for found in (boundary_point(flat, tol) for _ in range(places)) if found is not None]
    if not points:
        return
    at = sum(points[1:], points[0])
    aside = flat.rng.standard_normal(at.points.shape)
    aside -= (aside * at.across).sum(axis=1)[:, None] * at.across
    aside /= row_norms(aside)[:, None]
    bends = []
    for step in steps:
        length = step * flat.typical
        there = [BoundaryPoints(at.points + sign * length * aside, at.across, at.pairs) for sign in (1, -1)]
        bends.append(np.abs(sum(flat.crossings(lines, length, tol, 32 * length) for lines in there)))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = bends[0] / bends[1]
        square = (bends[1] > noise * tol) & (ratio > least_ratio) & (ratio < most_ratio)
    if square.mean() > most:
        raise StageFailed(
            "facet", "the boundary is curved", number=square.mean(), limit=most,
            outcome=Outcome.NOT_PIECEWISE_LINEAR,
            diagnosis=Diagnosis("curved-boundary", remedies=(TRAIN, SPAN_FROM_LABELS)),
        )  # fmt: skip


def along_one_input(flat: Flat, slope: FloatArray) -> bool:
    """True if a unit normal (r,) of the flat may be one input's own direction: a step of a target with whole inputs."""
    alike = 1 - 1e-6
    inputs = flat.along(np.eye(flat.dim))  # (r, d)
    return bool((np.abs(slope @ inputs) / row_norms(inputs.T)).max() > alike)


def refuse_steps(flat: Flat) -> None:
    """StageFailed if the boundary is made of steps along different single inputs. Cost: about 500 rows.

    A target that rounds its inputs has such a boundary, and a tree. The crossing of a line along a then moves by
    -eᵢ/aᵢ for a step along e, with one and the same input i for every e.
    """
    places, most, alike, few = 6, 1 / 2, 0.01, 3
    step = max(1e-7 * flat.typical, 1e4 * flat.finest)
    points = [found for found in (boundary_point(flat, step / 1e3) for _ in range(places)) if found is not None]
    if len(points) < few:
        return
    at = sum(points[1:], points[0])
    across, sides = flat.along(at.across), flat.rng.standard_normal((2, *at.points.shape))
    fits: BoolArray = np.ones(across.shape, dtype=bool)
    for side in sides:
        moved = flat.crossings(
            BoundaryPoints(at.points + step * side, at.across, at.pairs), step, step / 1e3, 256 * step
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = -step * flat.along(side) / across
            fits &= np.abs(moved[:, None] - expected) < alike * (np.abs(expected) + step)
    single = np.asarray(fits.any(axis=1))
    if single.mean() <= most or len(np.unique(fits[single].argmax(axis=1))) == 1:
        return
    width = _step_width(flat, at[single], sides[0][single], fits[single].argmax(axis=1), step)
    raise StageFailed(
        "facet", "the boundary is made of steps along single inputs", number=single.mean(), limit=most,
        outcome=Outcome.LOW_PRECISION,
        diagnosis=Diagnosis("boundary-in-steps", {"resolution": width / flat.typical}, (TRAIN, SPAN_FROM_LABELS)),
    )  # fmt: skip


def _step_width(flat: Flat, at: BoundaryPoints, side: FloatArray, which: np.ndarray, step: float) -> float:
    """How far, along a side, most points stay on the same step."""
    each, longer, farthest = np.arange(len(at)), 2.0, flat.typical
    shift = (-flat.along(side)[each, which] / flat.along(at.across)[each, which])[:, None] * at.across
    way = side + shift
    while step < farthest:
        there = BoundaryPoints(at.points + step * way, at.across, at.pairs)
        if flat.holds(there, 0.02 * step * row_norms(way)).mean() < 1 / 2:
            break
        step *= longer
    return float(step * np.median(np.linalg.norm(way, axis=1)))


def spread(
    flat: Flat, model: BentModel, reach: FloatArray, terms: Terms
) -> tuple[BoundaryPoints, FloatArray, np.ndarray]:
    """Boundary points behind new creases, near and far, where a rough model holds and that fix its facets best.

    With the offset (n,) within which each holds, and its facet. Cost: about 4·r rows a facet.
    """
    scales, candidates, tested, spare, rough, offset = (0.5, 1.0, 4.0, 16.0, 64.0), 16, 2, 1, 1e-4, 1e-6 * flat.typical
    r, farthest = model.dim, 6 * flat.typical
    some, owner, offsets = BoundaryPoints(*np.empty((2, 0, r))), [], []
    for i, centre in enumerate(terms.behind):
        steps = reach[i] * flat.rng.choice(scales, (candidates * (r + 1), 1)) / np.sqrt(r)
        y, arrived = model.projected(centre + steps * flat.rng.standard_normal((len(steps), r)), flat.finest)
        side = np.sign(centre @ terms.slopes[i] + terms.levels[i])
        clear = (model.room(y) > CLEAR * flat.typical) & (row_norms(y) < farthest) & flat.inside(y, offset)
        y = y[arrived & clear & ((y @ terms.slopes[i] + terms.levels[i]) * side >= 0)][: tested * (r + 1)]
        some += model.across(y)
        owner += [i] * len(y)
        offsets += list(rough * np.linalg.norm(y - centre, axis=1) + offset)
    which, off = np.array(owner, dtype=int), np.array(offsets)
    held = flat.holds(some, off)
    chosen = []
    for i, centre in enumerate(terms.behind):
        mine = np.flatnonzero(held & (which == i))
        rows = np.column_stack([(some.points[mine] - centre) / flat.typical, np.ones(len(mine))])
        rows /= row_norms(model.gradients(some.points[mine]))[:, None]
        order = qr(rows.T, pivoting=True, mode="r")[1][: r + 1] if len(mine) else np.empty(0, dtype=int)
        rest = flat.rng.permutation(np.setdiff1d(np.arange(len(mine)), order))[:spare]
        chosen.append(mine[np.append(order, rest).astype(int)])
    use = np.concatenate(chosen)
    return some[use], off[use], which[use]
