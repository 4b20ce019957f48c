"""Third stage: rows and biases of the first layer in all of input space, to the last digits.

Where one neuron alone is active the gradient is a multiple of its weights, whatever the layers above do, over
long steps. A neuron that is not seen alone is measured on both sides of its hyperplane, with others switched on:
the gradients differ by its weights. Its bias follows from a point of the hyperplane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.depth_three.hyperplanes import Hyperplanes
from reluctant.extraction.depth_three.quiet import quiet_points
from reluctant.extraction.depth_three.views import Views, view_each, view_more
from reluctant.extraction.failures import StageFailed
from reluctant.geometry import DistanceNoise, Gradients, gradients
from reluctant.geometry.samples import TOLERANCE, IntArray
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["Refined", "refine_rows"]

REACHES = (256.0, 32.0, 4.0, 0.5)  # how far inside a neuron is activated, in typical inputs of one coordinate
ROOM = 2.0  # of the reach: how far the other neurons are from becoming active
PLACES = np.array([0.5, 1.0, 1.5])  # of the reach: in between there is no crease of the layers above
STEP = 0.1  # of a gradient, in reaches: a coordinate weighs about 1/√k, and five times that is rare
SHORTER_STEP = 0.3  # of that, where others are on and so more creases around
SEEN = 1e3 * TOLERANCE  # change over a reach, in deviations, of a neuron that is seen
WELL_SEEN = 1e12  # and of one for which nothing better is looked for
WORST_ROW = 1e-9  # expected error of a row that is still called exact
AGREEMENT = 1e-4  # with the normal that was known in the subspace


@dataclass(frozen=True)
class Refined:
    """Unit rows (n, d) and biases (n,), and the error to be expected of each row."""

    weights: FloatArray
    biases: FloatArray
    errors: FloatArray


def refine_rows(oracle: Counting, planes: Hyperplanes, noise: DistanceNoise, rng: np.random.Generator) -> Refined:
    """Measure every neuron anew. `planes` point to the active sides. Cost: d + 22 rows a neuron, if seen alone."""
    n = len(planes)
    with oracle.stage("refine", expected=n * (oracle.dim + 22)):
        views = view_each(oracle, planes, noise, rng)
        points, reach, digits = _alone(oracle, planes, noise)
        slope, sd = np.empty((n, oracle.outputs, oracle.dim)), np.empty(n)
        is_alone = (digits > WELL_SEEN) | (digits > _digits_of_both_sides(views, n))
        alone, hidden = np.flatnonzero(is_alone), np.flatnonzero(~is_alone)
        if len(alone):
            found = _measure(oracle, planes, points[alone], reach[alone], noise, rng)
            slope[alone], sd[alone] = found.slope, found.sd
        if len(hidden):
            views = views + view_more(oracle, planes, hidden, noise, rng)
            slope[hidden], sd[hidden] = _both_sides(oracle, planes, views, hidden, noise, rng)
    weights, errors = _directions(slope, sd, planes)
    on = planes.frame.points(views.on[views.best(-views.blur, n)])
    return Refined(weights, -(weights * on).sum(axis=1), errors)


def _alone(oracle: Counting, planes: Hyperplanes, noise: DistanceNoise) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For each neuron a point (n, k) where it alone is active, its reach, and its change there over the noise.

    Of several reaches the one that gives the most digits; 0 where it is not seen alone. Cost: 12 rows a neuron.
    """
    n, count = len(planes), len(REACHES)
    off, each = np.zeros((n, n), dtype=bool), np.arange(n)
    starts = [quiet_points(planes.normals, planes.offsets, each, off, ROOM * reach) for reach in REACHES]
    reach = np.repeat(REACHES, n).reshape(count, n)
    moves = (reach[:, :, None] * PLACES)[..., None] * planes.normals[None, :, None]
    rows = planes.frame.points((np.stack(starts)[:, :, None] + moves).reshape(-1, moves.shape[-1]))
    answers = oracle.query(rows).reshape(count, n, len(PLACES), -1)
    size = np.linalg.norm(rows, axis=1).reshape(count, n, len(PLACES)).max(axis=2)
    sd = noise.at(size)
    bend = np.abs(answers[:, :, 0] - 2 * answers[:, :, 1] + answers[:, :, 2]).max(axis=2)
    change = np.abs(answers[:, :, 2] - answers[:, :, 0]).max(axis=2)
    digits = np.where((bend <= TOLERANCE * sd) & (change > SEEN * sd), change / sd, 0.0)
    best = np.argmax(digits, axis=0)
    points = np.stack(starts)[best, each] + reach[best, each, None] * planes.normals
    return points, reach[best, each], digits[best, each]


def _measure(
    oracle: Counting,
    planes: Hyperplanes,
    points: FloatArray,
    reach: FloatArray,
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> Gradients:
    """Gradients in all of input space, at points (n, k) of the frame."""
    steps = STEP * np.sqrt(points.shape[1]) * reach
    found = gradients(oracle.query, planes.frame.points(points), None, steps, noise, rng)
    if not found.good.all():
        raise StageFailed("refine", "points with a crease on every side", number=int((~found.good).sum()), limit=0)
    return found


def _digits_of_both_sides(views: Views, n: int) -> FloatArray:
    """What `_alone` gives, for the best view of each neuron."""
    digits = SHORTER_STEP / np.sqrt(2) * views.reach * views.bend / views.sd
    return np.asarray(digits[views.best(digits, n)])


def _both_sides(
    oracle: Counting,
    planes: Hyperplanes,
    views: Views,
    neurons: IntArray,
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Differences of the gradients on the two sides of these neurons' hyperplanes. Cost: 2(d + 2) rows each."""
    chosen = views.best(views.reach * views.bend / views.sd, len(planes))[neurons]
    half = views.reach[chosen, None] / 2 * planes.normals[neurons]
    both = np.concatenate([views.on[chosen] + half, views.on[chosen] - half])
    found = _measure(oracle, planes, both, SHORTER_STEP * np.tile(views.reach[chosen], 2), noise, rng)
    inside, outside = np.split(found.slope, 2)
    return inside - outside, np.hypot(*np.split(found.sd, 2))


def _directions(slope: FloatArray, sd: FloatArray, planes: Hyperplanes) -> tuple[FloatArray, FloatArray]:
    """The one direction (n, d) of each neuron's slopes (n, m, d), pointing to its active side."""
    _, sizes, right = np.linalg.svd(slope, full_matrices=False)
    rows = right[:, 0]
    seen = rows @ planes.frame.basis.T
    seen /= np.linalg.norm(seen, axis=1, keepdims=True)
    signs = np.sign((seen * planes.normals).sum(axis=1))
    off = float(np.linalg.norm(signs[:, None] * seen - planes.normals, axis=1).max())
    errors = sd * np.sqrt(slope.shape[2]) / sizes[:, 0]
    if not off < AGREEMENT:
        raise StageFailed("refine", "a row is not what the subspace showed", number=off, limit=AGREEMENT)
    if not errors.max() < WORST_ROW:
        raise StageFailed("refine", "a neuron that is hardly seen", number=float(errors.max()), limit=WORST_ROW)
    return signs[:, None] * rows, errors
