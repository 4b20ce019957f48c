"""Rows of single first-layer neurons, to the last digits.

Where one neuron alone is active the gradient is a multiple of its weights, whatever the layers above do, over
long steps. A neuron that is not seen alone is measured on both sides of its hyperplane, with others switched on:
the gradients differ by its weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.depth_three.hyperplanes import Hyperplanes
from reluctant.extraction.depth_three.mixed import Mixed, solve_mixed
from reluctant.extraction.depth_three.quiet import quiet_points
from reluctant.extraction.depth_three.views import Views, view_more
from reluctant.extraction.failures import StageFailed
from reluctant.geometry import DistanceNoise, Frame, Gradients, gradients
from reluctant.geometry.noise import SAFETY
from reluctant.geometry.samples import TOLERANCE, BoolArray, IntArray
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Counting

__all__ = ["AGREEMENT", "STEP", "WELL_SEEN", "Places", "measure_rows", "places_of"]

REACHES = (256.0, 32.0, 4.0, 0.5)  # how far inside a neuron is activated, in typical inputs of one coordinate
ROOM = 2.0  # of the reach: how far the other neurons are from becoming active
PLACES = np.array([0.5, 1.0, 1.5])  # of the reach: in between there is no crease of the layers above
STEP = 0.06  # of a gradient, in reaches: a coordinate weighs about 1/√k, and five times that is rare
SHORTER_STEP = 0.3  # of that, where others are on and so more creases around
BEND_NOISE = np.sqrt(6.0)  # of a second difference, in deviations of an answer
SEEN = 1e3 * TOLERANCE  # change over a reach, in deviations, of a neuron that is seen
WELL_SEEN = 1e12  # and of one for which nothing better is looked for
MORE_VIEWS = 5  # of a neuron that is seen neither alone nor well with others
CHEAP = 0.5  # of the inputs: dimensions of a subspace in which gradients save something
POOREST = 3  # one in so many of the neurons left is measured in full, the poorest
GOOD_ENOUGH = 1e-9  # error of a row that was found with the help of the subspace
AGREEMENT = 1e-4  # with the normal that was known in the subspace


@dataclass(frozen=True)
class Places:
    """Where the rows of neurons are measured: inside their active side, and outside too where not alone."""

    inside: FloatArray  # (n, k), coordinates of the frame
    outside: FloatArray  # (n, k)
    reach: FloatArray  # (n,)
    alone: BoolArray  # (n,)


def places_of(
    oracle: Counting, planes: Hyperplanes, views: Views, noise: DistanceNoise, rng: np.random.Generator
) -> Places:
    """For each neuron the better of alone and both sides. Cost: 12 rows a neuron, 72 or more if not seen alone."""
    n = len(planes)
    inside, reach, digits = _alone(oracle, planes, noise)
    alone = (digits > WELL_SEEN) | (digits > _digits(views)[_best(views, n)])
    hidden = np.flatnonzero(~alone)
    outside = inside.copy()
    if len(hidden):
        for round_ in range(MORE_VIEWS):
            enough = WELL_SEEN if round_ else np.inf
            faint = hidden[_digits(views)[_best(views, n)[hidden]] < enough]
            views = views + view_more(oracle, planes, faint, noise, rng) if len(faint) else views
        chosen = _best(views, n)[hidden]
        half = views.reach[chosen, None] / 2 * planes.normals[hidden]
        inside[hidden], outside[hidden] = views.on[chosen] + half, views.on[chosen] - half
        reach[hidden] = SHORTER_STEP * views.reach[chosen]
    return Places(inside, outside, reach, alone)


def _digits(views: Views) -> FloatArray:
    """What `_alone` gives, for gradients on both sides."""
    return SHORTER_STEP / np.sqrt(2) * views.reach * views.bend / views.sd


def _best(views: Views, n: int) -> IntArray:
    return views.best(_digits(views), n)


def _alone(oracle: Counting, planes: Hyperplanes, noise: DistanceNoise) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For each neuron a point (n, k) where it alone is active, its reach, and its change there over the noise.

    Of several reaches the one that gives the most digits; 0 where it is not seen alone.
    """
    n, count = len(planes), len(REACHES)
    off, each = np.zeros((n, n), dtype=bool), np.arange(n)
    reach = np.repeat(REACHES, n).reshape(count, n)
    starts = np.stack([quiet_points(planes.normals, planes.offsets, each, off, ROOM * row) for row in reach])
    moves = (reach[:, :, None] * PLACES)[..., None] * planes.normals[None, :, None]
    rows = planes.frame.points((starts[:, :, None] + moves).reshape(-1, moves.shape[-1]))
    answers = oracle.query(rows).reshape(count, n, len(PLACES), -1)
    sd = noise.at(np.linalg.norm(rows, axis=1).reshape(count, n, len(PLACES)).max(axis=2))
    bend = np.abs(answers[:, :, 0] - 2 * answers[:, :, 1] + answers[:, :, 2]).max(axis=2)
    change = np.abs(answers[:, :, 2] - answers[:, :, 0]).max(axis=2)
    rounding = unit_roundoff(np.float64) * np.abs(answers).max(axis=(2, 3))
    shown = np.minimum(sd, SAFETY * np.maximum(bend / BEND_NOISE, rounding))  # few are active: less than most answers
    digits = np.where((bend <= TOLERANCE * sd) & (change > SEEN * sd), change / shown, 0.0)
    best = np.argmax(digits, axis=0)
    points = starts[best, each] + reach[best, each, None] * planes.normals
    return points, reach[best, each], digits[best, each]


@dataclass(frozen=True)
class _Look:
    """How gradients are measured at the places of neurons."""

    oracle: Counting
    frame: Frame  # of the places
    places: Places
    noise: DistanceNoise
    rng: np.random.Generator

    def at(self, points: FloatArray, neurons: IntArray, within: Frame | None) -> Gradients:
        """Gradients at the points of these neurons: in all of input space, or within a frame."""
        points, ask = points[neurons], self.oracle.query
        steps = STEP * np.sqrt(points.shape[1]) * self.places.reach[neurons]
        if within is None:
            found = gradients(ask, self.frame.points(points), None, steps, self.noise, self.rng)
        else:
            found = gradients(lambda y: ask(within.points(y)), points, None, steps, self.noise, self.rng)
        if not found.good.all():
            raise StageFailed("refine", "points with a crease on every side", number=int((~found.good).sum()), limit=0)
        return found


def measure_rows(
    oracle: Counting,
    planes: Hyperplanes,
    places: Places,
    which: IntArray,
    noise: DistanceNoise,
    rng: np.random.Generator,
    within: Frame | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Unit rows of these neurons and their errors: of all of input space, or within a frame.

    Cost: a gradient for each, two for one that is not seen alone; the second one in the subspace, where that will do.
    """
    two_sided = ~places.alone[which]
    both, normals, basis = which[two_sided], planes.normals[which], planes.frame.basis
    look = _Look(oracle, planes.frame, places, noise, rng)
    inside = look.at(places.inside, which, within)
    if not len(both):
        return _directions(inside.slope, inside.shown_sd, normals, None if within else basis)
    if within is None and len(which) == len(planes) and len(basis) < CHEAP * oracle.dim:
        return _rows_by_subspace(planes, inside, look)
    outside = look.at(places.outside, both, within)
    slope, sd = inside.slope.copy(), inside.shown_sd
    slope[two_sided] -= outside.slope
    sd[two_sided] = np.hypot(sd[two_sided], outside.shown_sd)
    return _directions(slope, sd, normals, None if within else basis)


def _rows_by_subspace(planes: Hyperplanes, inside: Gradients, look: _Look) -> tuple[FloatArray, FloatArray]:
    """All rows and errors, from gradients inside and those outside of neurons that are not seen alone.

    Outside the subspace has to do, but for neurons whose rows would be poor that way, the poorest third first.
    """
    places, basis = look.places, planes.frame.basis
    left = np.flatnonzero(~places.alone)
    slope, sd = inside.slope.copy(), inside.shown_sd
    outside = look.at(places.outside, left, planes.frame)
    jumps, jump_sd = slope[left] @ basis.T - outside.slope, np.hypot(sd[left], outside.shown_sd)
    normals = np.zeros_like(planes.normals)
    normals[left], blur = _directions(jumps, jump_sd, planes.normals[left], None)
    rows, errors = np.zeros((len(planes), basis.shape[1])), np.zeros(len(planes))
    errors[left] = blur
    known = np.flatnonzero(places.alone)
    while True:
        rows[known], errors[known] = _directions(slope[known], sd[known], planes.normals[known], basis)
        normals[known] = rows[known] @ basis.T
        if not len(left):
            return rows, errors
        active = places.inside[left] @ planes.normals.T + planes.offsets > 0
        mixed = Mixed(left, inside.slope[left], inside.shown_sd[left], active)
        rows[left], mixed_errors = solve_mixed(mixed, rows, errors, normals, basis)
        if mixed_errors.max(initial=0) < GOOD_ENOUGH:
            errors[left] = np.hypot(errors[left], mixed_errors)
            return rows, errors
        poorest = left[np.argsort(mixed_errors)[-max(1, len(left) // POOREST) :]]
        full = look.at(places.outside, poorest, None)
        slope[poorest] -= full.slope
        sd[poorest] = np.hypot(sd[poorest], full.shown_sd)
        known, left = np.union1d(known, poorest), np.setdiff1d(left, poorest)


def _directions(
    slope: FloatArray, sd: FloatArray, normals: FloatArray, basis: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """The one direction of each neuron's slopes (n, m, d), pointing as its known normal does."""
    _, sizes, right = np.linalg.svd(slope, full_matrices=False)
    rows = right[:, 0]
    seen = rows if basis is None else rows @ basis.T
    seen = seen / np.linalg.norm(seen, axis=1, keepdims=True)
    signs = np.sign((seen * normals).sum(axis=1))
    off = float(np.linalg.norm(signs[:, None] * seen - normals, axis=1).max())
    if not off < AGREEMENT:
        raise StageFailed("refine", "a row is not what the subspace showed", number=off, limit=AGREEMENT)
    return signs[:, None] * rows, sd * np.sqrt(slope.shape[2]) / sizes[:, 0]
