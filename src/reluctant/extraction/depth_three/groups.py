"""Rows of several first-layer neurons at once, where the target has several outputs.

With r neurons active the gradients of m ≥ r outputs are m combinations of their r rows. In the subspace the rows
are known to the last digit, so the combinations are too, and one gradient in all of input space gives all r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.depth_three.hyperplanes import Hyperplanes
from reluctant.extraction.depth_three.quiet import points_in_states
from reluctant.extraction.depth_three.singles import AGREEMENT, STEP, WELL_SEEN
from reluctant.extraction.failures import StageFailed
from reluctant.geometry import DistanceNoise, gradients
from reluctant.geometry.samples import TOLERANCE, IntArray
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["Group", "choose_groups", "group_rows", "is_worth_it"]

ROOM, ROOMIER = 32.0, 3.0  # of all neurons from their hyperplanes, in typical inputs of one coordinate, and up to
REACHES = (0.5, 0.15, 0.04)  # of a look around, of the room
TRIES = 3  # partitions of the neurons, before groups are made smaller
SMALLER = 0.75
USUAL_SIZE = 0.8  # of a group, in outputs
WORTH = 0.8  # of the rows that single neurons would take, at most


@dataclass(frozen=True)
class Group:
    """Neurons, a point (k,) at which they alone are active, and how far around it the function is affine."""

    neurons: IntArray
    point: FloatArray
    reach: float
    combinations: FloatArray  # (m, r): the gradient of each output in terms of the neurons' normals


def is_worth_it(neurons: int, outputs: int, dim: int, subspace: int) -> bool:
    """True if knowing the rows in the subspace and then measuring groups takes far fewer rows than single neurons."""
    groups = neurons / max(USUAL_SIZE * outputs, 1.0)
    return neurons * (subspace + 2) + groups * (dim + 2) < WORTH * neurons * (dim + 2)


def choose_groups(oracle: Counting, planes: Hyperplanes, noise: DistanceNoise, rng: np.random.Generator) -> list[Group]:
    """Groups that show their neurons well; neurons that are in none have to be measured alone.

    Cost: about 4r rows for each group that is tried.
    """
    left, groups = np.arange(len(planes)), list[Group]()
    size = float(min(oracle.outputs, len(planes)))
    while size >= 2:
        for _ in range(TRIES):
            if not len(left):
                return groups
            parts = np.array_split(rng.permutation(left), -(-len(left) // int(size)))
            good = [group for group in _look_around(oracle, planes, parts, noise, rng) if group is not None]
            groups += good
            left = np.setdiff1d(left, np.concatenate([group.neurons for group in good])) if good else left
        size *= SMALLER
    return groups


def _look_around(
    oracle: Counting, planes: Hyperplanes, parts: list[IntArray], noise: DistanceNoise, rng: np.random.Generator
) -> list[Group | None]:
    """For each part a group, or None where creases or too similar combinations are in the way."""
    active = np.array([np.isin(np.arange(len(planes)), part) for part in parts])
    room = ROOM * rng.uniform(1, ROOMIER, active.shape)
    points = points_in_states(planes.normals, planes.offsets, active, room)
    return [_widest(oracle, planes, part, point, noise) for part, point in zip(parts, points, strict=True)]


def _widest(
    oracle: Counting, planes: Hyperplanes, part: IntArray, point: FloatArray, noise: DistanceNoise
) -> Group | None:
    """The group at the longest reach over which the function is affine around the point, if it shows all neurons."""
    normals = planes.normals[part]
    sd = float(noise.at(np.linalg.norm(planes.frame.points(point[None]), axis=1))[0])
    for reach in REACHES:
        moves = ROOM * reach * np.concatenate([np.zeros((1, len(point))), normals, -normals])
        answers = oracle.query(planes.frame.points(point + moves))
        ahead, behind = np.split(answers[1:], 2)
        if np.abs(ahead + behind - 2 * answers[0]).max() > 2 * TOLERANCE * sd:
            continue
        slopes = (ahead - behind) / (2 * ROOM * reach)  # (r, m): along each normal
        combinations = np.asarray(np.linalg.solve(normals @ normals.T, slopes).T)
        smallest = np.linalg.svd(combinations, compute_uv=False)[-1] if len(part) <= oracle.outputs else 0.0
        seen = smallest * ROOM * reach > WELL_SEEN * sd
        return Group(part, point, ROOM * reach, combinations) if seen else None
    return None


def group_rows(
    oracle: Counting, planes: Hyperplanes, groups: list[Group], noise: DistanceNoise, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Unit rows (n, d) and errors of the neurons in the groups, in their order. `planes` are sharp.

    Cost: a gradient for each group.
    """
    points = planes.frame.points(np.array([group.point for group in groups]))
    steps = STEP * np.sqrt(len(planes.frame.basis)) * np.array([group.reach for group in groups])
    found = gradients(oracle.query, points, None, steps, noise, rng)
    if not found.good.all():
        raise StageFailed("refine", "points with a crease on every side", number=int((~found.good).sum()), limit=0)
    rows = [_solve(slope, planes, group) for slope, group in zip(found.slope, groups, strict=True)]
    smallest = [np.linalg.svd(group.combinations, compute_uv=False)[-1] for group in groups]
    errors = found.sd * np.sqrt(oracle.dim) / np.array(smallest)
    return np.concatenate(rows), np.repeat(errors, [len(group.neurons) for group in groups])


def _solve(slope: FloatArray, planes: Hyperplanes, group: Group) -> FloatArray:
    """Rows (r, d) of a group from the gradients (m, d) of all outputs."""
    normals = planes.normals[group.neurons]
    seen = slope @ planes.frame.basis.T
    combinations = seen @ np.linalg.pinv(normals)
    off = float(np.linalg.norm(seen - combinations @ normals) / np.linalg.norm(seen))
    if not off < AGREEMENT:
        raise StageFailed("refine", "neurons outside a group are active", number=off, limit=AGREEMENT)
    rows = np.linalg.lstsq(combinations, slope, rcond=None)[0]
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
