"""Third stage of depth three: weights and biases of the first layer in input space.

Rows are measured where the neuron is active alone, or in groups: with r neurons active the gradients of m ≥ r
outputs are m combinations of their r rows, which the subspace tells, so one gradient gives all r. The bias follows
from a point of the hyperplane. Nothing of the layers above has to be known.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from reluctant.extraction.depth_three.hyperplanes import (
    FramedHyperplanes,
    check_depth,
    find_hyperplanes,
    mirrored_hyperplanes,
    orient_hyperplanes,
)
from reluctant.extraction.depth_three.rows import (
    NORMAL_AGREEMENT,
    ROW_STEP,
    WELL_SEEN,
    RowPlaces,
    measure_rows,
    places_of,
    points_in_states,
    view_each,
)
from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise, Question, gradients
from reluctant.geometry.lines import BoolArray, IntArray
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting

GROUP_ROOM = 32.0  # of all neurons from their hyperplanes, in typical inputs of one coordinate


@dataclass(frozen=True)
class NeuronGroup:
    """Neurons, a point (k,) at which they alone are active, and how far around it the function is affine."""

    neurons: IntArray
    point: FloatArray
    reach: float
    combinations: FloatArray  # (m, r): the gradient of each output in terms of the neurons' normals


def groups_are_worth_it(neurons: int, outputs: int, dim: int, subspace: int) -> bool:
    """True if knowing the rows in the subspace and then measuring groups takes far fewer rows than single neurons."""
    usual_group = 0.8  # of a group, in outputs
    worth_groups = 0.8  # of the rows that single neurons would take, at most
    groups = neurons / max(usual_group * outputs, 1.0)
    return neurons * (subspace + 2) + groups * (dim + 2) < worth_groups * neurons * (dim + 2)


def choose_groups(
    oracle: Counting, planes: FramedHyperplanes, noise: DistanceNoise, rng: np.random.Generator
) -> list[NeuronGroup]:
    """Groups that show their neurons well; neurons that are in none have to be measured alone.

    Cost: about 4r rows for each group that is tried.
    """
    partitions = 3  # partitions of the neurons, before groups are made smaller
    smaller_groups = 0.75
    left, groups = np.arange(len(planes)), list[NeuronGroup]()
    size = float(min(oracle.outputs, len(planes)))
    while size >= 2:
        for _ in range(partitions):
            if not len(left):
                return groups
            parts = np.array_split(rng.permutation(left), -(-len(left) // int(size)))
            good = [group for group in _look_around(oracle, planes, parts, noise, rng) if group is not None]
            groups += good
            left = np.setdiff1d(left, np.concatenate([group.neurons for group in good])) if good else left
        size *= smaller_groups
    return groups


def _look_around(
    oracle: Counting, planes: FramedHyperplanes, parts: list[IntArray], noise: DistanceNoise, rng: np.random.Generator
) -> list[NeuronGroup | None]:
    """For each part a group, or None where creases or too similar combinations are in the way."""
    roomiest = 3.0  # times that
    active = np.array([np.isin(np.arange(len(planes)), part) for part in parts])
    room = GROUP_ROOM * rng.uniform(1, roomiest, active.shape)
    points = points_in_states(planes.normals, planes.offsets, active, room)
    return [_widest_group(oracle, planes, part, point, noise) for part, point in zip(parts, points, strict=True)]


def _widest_group(
    oracle: Counting, planes: FramedHyperplanes, part: IntArray, point: FloatArray, noise: DistanceNoise
) -> NeuronGroup | None:
    """The group at the longest reach over which the function is affine around the point, if it shows all neurons."""
    group_reaches = (0.5, 0.15, 0.04)  # of a look around, of the room
    normals = planes.normals[part]
    sd = float(noise.at(np.linalg.norm(planes.frame.points(point[None]), axis=1))[0])
    for reach in group_reaches:
        moves = GROUP_ROOM * reach * np.concatenate([np.zeros((1, len(point))), normals, -normals])
        answers = oracle.query(planes.frame.points(point + moves))
        ahead, behind = np.split(answers[1:], 2)
        if np.abs(ahead + behind - 2 * answers[0]).max() > 2 * DOUBLE.in_line * sd:
            continue
        slopes = (ahead - behind) / (2 * GROUP_ROOM * reach)  # (r, m): along each normal
        combinations = np.asarray(np.linalg.solve(normals @ normals.T, slopes).T)
        smallest = np.linalg.svd(combinations, compute_uv=False)[-1] if len(part) <= oracle.outputs else 0.0
        seen = smallest * GROUP_ROOM * reach > WELL_SEEN * sd
        return NeuronGroup(part, point, GROUP_ROOM * reach, combinations) if seen else None
    return None


def group_rows(
    oracle: Counting,
    planes: FramedHyperplanes,
    groups: list[NeuronGroup],
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Unit rows (n, d) and errors of the neurons in the groups, in their order. `planes` are sharp.

    Cost: a gradient for each group.
    """
    points = planes.frame.points(np.array([group.point for group in groups]))
    steps = ROW_STEP * np.sqrt(len(planes.frame.basis)) * np.array([group.reach for group in groups])
    found = gradients(Question.of(oracle), points, None, steps, noise, rng)
    if not found.good.all():
        raise StageFailed("refine", "points with a crease on every side", number=int((~found.good).sum()), limit=0)
    rows = [_solve_group(slope, planes, group) for slope, group in zip(found.slope, groups, strict=True)]
    smallest = [np.linalg.svd(group.combinations, compute_uv=False)[-1] for group in groups]
    errors = found.sd * np.sqrt(oracle.dim) / np.array(smallest)
    return np.concatenate(rows), np.repeat(errors, [len(group.neurons) for group in groups])


def _solve_group(slope: FloatArray, planes: FramedHyperplanes, group: NeuronGroup) -> FloatArray:
    """Rows (r, d) of a group from the gradients (m, d) of all outputs."""
    normals = planes.normals[group.neurons]
    seen = slope @ planes.frame.basis.T
    combinations = seen @ np.linalg.pinv(normals)
    off = float(np.linalg.norm(seen - combinations @ normals) / np.linalg.norm(seen))
    if not off < NORMAL_AGREEMENT:
        raise StageFailed("refine", "neurons outside a group are active", number=off, limit=NORMAL_AGREEMENT)
    rows = np.linalg.lstsq(combinations, slope, rcond=None)[0]
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


WORST_ROW = 1e-7  # expected error of a row with which the layers above can be found


@dataclass(frozen=True)
class RefinedRows:
    """Unit rows (n, d) and biases (n,), and the error to be expected of each row."""

    weights: FloatArray
    biases: FloatArray
    errors: FloatArray


def refine_rows(
    oracle: Counting,
    planes: FramedHyperplanes,
    mirrored: BoolArray,
    noise: DistanceNoise,
    rng: np.random.Generator,
    largest: float,
) -> RefinedRows:
    """Measure every neuron anew. `planes` point to the active sides; an expected error above `largest` is a failure.

    Cost: d + 22 rows a neuron, if seen alone; with m outputs about d / m and as many as the subspace has dimensions.
    """
    n, k = planes.normals.shape
    with oracle.stage("refine"):
        views = view_each(oracle, planes, noise, rng)
        places = places_of(oracle, planes, views, mirrored, noise, rng)
        if not mirrored.any() and groups_are_worth_it(n, oracle.outputs, oracle.dim, k):
            weights, errors = _in_groups(oracle, planes, places, noise, rng)
        else:
            weights, errors = measure_rows(oracle, planes, places, np.arange(n), noise, rng)
    if not errors.max() < largest:
        raise StageFailed("refine", "a neuron that is hardly seen", number=float(errors.max()), limit=largest)
    on = planes.frame.points(views.on[views.best(-views.blur, n)])
    return RefinedRows(weights, -(weights * on).sum(axis=1), errors)


def _in_groups(
    oracle: Counting, planes: FramedHyperplanes, places: RowPlaces, noise: DistanceNoise, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """First sharp normals in the subspace, then groups in all of input space, and the neurons that are in none."""
    n = len(planes)
    normals, errors = measure_rows(oracle, planes, places, np.arange(n), noise, rng, within=planes.frame)
    sharp = replace(planes, normals=normals)
    groups = choose_groups(oracle, sharp, noise, rng)
    weights = np.empty((n, oracle.dim))
    grouped = np.concatenate([group.neurons for group in groups]) if groups else np.empty(0, dtype=np.intp)
    if groups:
        weights[grouped], more = group_rows(oracle, sharp, groups, noise, rng)
        errors[grouped] += more
    single = np.setdiff1d(np.arange(n), grouped)
    if len(single):
        weights[single], errors[single] = measure_rows(oracle, sharp, places, single, noise, rng)
    return weights, errors


@dataclass(frozen=True)
class FirstLayer:
    """Hidden values max(weights @ x + biases, 0), the rows of norm one.

    condition: of the weights; digits of the layers above are lost by it. sign_margins: how far from zero each
    neuron's part in the gradients is on its inactive side, relative to the other. row_errors: to be expected.
    mirrored: numbers of the neurons of which there is another one on the other side of the hyperplane.
    """

    weights: FloatArray  # (n, d)
    biases: FloatArray  # (n,)
    condition: float
    sign_margins: FloatArray  # (n,)
    row_errors: FloatArray  # (n,)
    mirrored: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def turned(self, neuron: int) -> FirstLayer:
        """With the other neuron of a mirrored pair in place of the one."""
        sign = np.where(np.arange(len(self)) == neuron, -1.0, 1.0)
        return replace(self, weights=sign[:, None] * self.weights, biases=sign * self.biases)

    def with_pairs(self) -> FirstLayer:
        """With both neurons of each mirrored pair; the second ones come last."""
        pairs = np.concatenate([np.arange(len(self)), self.mirrored])
        sign = np.where(np.arange(len(pairs)) < len(self), 1.0, -1.0)
        return replace(
            self, weights=sign[:, None] * self.weights[pairs], biases=sign * self.biases[pairs],
            sign_margins=self.sign_margins[pairs], row_errors=self.row_errors[pairs], mirrored=self.mirrored[:0],
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.biases)


def find_first_layer(
    oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, row_error: float = WORST_ROW
) -> FirstLayer:
    """Recover the first layer; raises StageFailed. Cost: about d rows a neuron, and some 100 a neuron besides."""
    planes = find_hyperplanes(oracle, noise, rng)
    mirrored = mirrored_hyperplanes(oracle, planes, noise, rng)
    planes, margins = orient_hyperplanes(planes, mirrored)
    check_depth(oracle, planes, mirrored, noise, rng)
    refined = refine_rows(oracle, planes, mirrored, noise, rng, row_error)
    singular = np.linalg.svd(refined.weights, compute_uv=False)
    return FirstLayer(
        refined.weights, refined.biases, float(singular[0] / singular[-1]), margins, refined.errors,
        np.flatnonzero(mirrored),
    )  # fmt: skip
