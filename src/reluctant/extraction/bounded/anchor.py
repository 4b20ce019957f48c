"""The model around an anchor point inside the domain: an affine map, and neurons that are inactive there.

Every neuron of `AnchorModel` is off at the anchor, so an unknown one is off there too: between the anchor and a point
where target and model differ there is an unknown crease. From one piece of a ray to a later one the gradient changes
by Σ a_j w_jᵀ over the neurons between. With m outputs one change serves several neurons if their outputs a_j are
known from the bends on the ray; gradients alone do not separate them. A neuron by itself gets its outputs from the
change as well. `BoundedTarget` asks inside the domain alone and knows how noisy answers are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.domains import Domain
from reluctant.extraction.method import check_settings
from reluctant.fitting.least_squares import solve_weighted
from reluctant.geometry import DistanceNoise, Gradients, Question, Scan, gradients
from reluctant.geometry.lines import BoolArray, IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.links import lost_digits


@dataclass(frozen=True)
class Ray:
    """Creases at distances t from the anchor in a direction, up to a distance `end`.

    jump: how the slope along the ray changes there. The function is known as far as the first of them.
    """

    direction: FloatArray
    t: FloatArray
    jump: FloatArray  # (n, m)
    jump_sd: FloatArray
    end: float

    def __len__(self) -> int:
        return len(self.t)


def halves(scan: Scan, at: float, direction: FloatArray, end: tuple[float, float]) -> list[Ray]:
    """A scanned line as two rays from position `at` on it."""
    found = scan.creases
    after, before = np.flatnonzero(found.t > at), np.flatnonzero(found.t < at)[::-1]
    return [
        Ray(direction, found.t[after] - at, found.jump[after], found.jump_sd[after], end[1] - at),
        Ray(-direction, at - found.t[before], found.jump[before], found.jump_sd[before], at - end[0]),
    ]


BEFORE = -1  # the piece before the first crease: nothing is unknown there


@dataclass(frozen=True)
class CreaseGroup:
    """Neurons at creases after + 1 … upto, between gradients in the pieces `after` and `upto`."""

    after: int
    upto: int

    @property
    def neurons(self) -> IntArray:
        """Their places on the ray."""
        return np.arange(self.after + 1, self.upto + 1)


def directions_of_bends(ray: Ray) -> tuple[FloatArray, FloatArray]:
    """Outputs (m, n) of norm one as the bends on the ray show them, and their noise."""
    sizes = np.linalg.norm(ray.jump, axis=1)
    noise = ray.jump_sd / sizes if ray.jump.shape[1] > 1 else np.zeros(len(ray))  # one output has no direction
    return (ray.jump / sizes[:, None]).T, noise


def plan_groups(ray: Ray, length: FloatArray, good: BoolArray) -> list[CreaseGroup]:
    """Groups of neurons that gradients in `good` pieces can tell apart; piece i follows crease i."""
    outputs, noise = directions_of_bends(ray)
    groups, last = [], BEFORE
    while last < len(ray) - 1:
        stop = _end_of_group(last, outputs, noise, length, good)
        if stop is None:
            later = np.flatnonzero(good[last + 1 :])
            if not len(later):
                break
            last += 1 + int(later[0])
            continue
        groups.append(CreaseGroup(last, stop))
        last = stop
    return groups


def _end_of_group(last: int, outputs: FloatArray, noise: FloatArray, length: FloatArray, good: BoolArray) -> int | None:
    """The longest good piece among those that end a solvable group after piece `last`."""
    group_share = 0.6  # with m outputs one gradient serves at most this many times m neurons
    precise_bend = 3e-10  # noise of a bend's direction that may stay
    well_conditioned = 20.0
    m, n = outputs.shape
    ends = []
    for stop in range(last + 1, min(last + 1 + max(1, int(group_share * m)), n)):
        which = slice(last + 1, stop + 1)
        if stop > last + 1 and (
            noise[which].max() > precise_bend or np.linalg.cond(outputs[:, which]) > well_conditioned
        ):
            break
        if good[stop]:
            ends.append(stop)
    if not ends:
        return None
    late = [stop for stop in ends if 2 * (stop - last) >= ends[-1] - last]
    return late[int(np.argmax(length[late]))]


@dataclass(frozen=True)
class Factors:
    """Neurons at these creases of a ray: weights (n, d), outputs (m, n) of norm one, and the noise of both."""

    creases: IntArray
    weights: FloatArray
    outputs: FloatArray
    weight_sd: FloatArray
    output_sd: FloatArray

    def chosen(self, which: BoolArray) -> Factors:
        """Some of them."""
        return Factors(
            self.creases[which], self.weights[which], self.outputs[:, which], self.weight_sd[which],
            self.output_sd[which],
        )  # fmt: skip


def factorise(groups: list[CreaseGroup], changes: FloatArray, sd: FloatArray, ray: Ray) -> Factors:
    """Neurons of all groups from the changes (groups, m, d) of the gradient over each."""
    outputs, output_sd = directions_of_bends(ray)
    weights, weight_sd = np.empty((len(ray), changes.shape[2])), np.empty(len(ray))
    for group, change, change_sd in zip(groups, changes, sd, strict=True):
        which = group.neurons
        if len(which) == 1:
            outputs[:, which[0]], output_sd[which] = _of_rank_one(change, change_sd, outputs[:, which[0]])
        solution = solve_weighted(outputs[:, which], np.ones(len(outputs)))
        weights[which] = solution @ change
        mixed = output_sd[which] @ np.sqrt((weights[which] ** 2).mean(axis=1)) if len(which) > 1 else 0.0
        weight_sd[which] = np.linalg.norm(solution, axis=1) * np.hypot(change_sd, mixed)
    found = np.concatenate([group.neurons for group in groups])
    return Factors(found, weights[found], outputs[:, found], weight_sd[found], output_sd[found])


def _of_rank_one(change: FloatArray, sd: float, rough: FloatArray) -> tuple[FloatArray, float]:
    """Outputs (m,) of the one neuron between two gradients, and their noise."""
    left, sizes, _ = np.linalg.svd(change, full_matrices=False)
    outputs = left[:, 0] * np.sign(left[:, 0] @ rough)
    return outputs, 0.0 if len(rough) == 1 else sd / float(sizes[0])


def domain_scale(domain: Domain, dim: int) -> float:
    """Typical length in the domain."""
    low, high = np.broadcast_to(domain.low, dim), np.broadcast_to(domain.high, dim)
    bounded = np.isfinite(low) & np.isfinite(high)
    width = np.where(bounded, np.where(bounded, high, 1) - np.where(bounded, low, 0), 2.0)
    return float(np.linalg.norm(width) / 2)


def exploration_points(domain: Domain, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    """Random points from the middle of the domain to its corners, even and uneven ones."""
    sizes = (0.2, 5.0)  # of points where a coordinate is unbounded
    powers = (1.0, 2.0, 4.0)  # of a Gaussian: from even coordinates to a few large ones
    low, high = np.broadcast_to(domain.low, dim), np.broadcast_to(domain.high, dim)
    bounded = np.isfinite(low) & np.isfinite(high)
    # Of the way from one wall to the other: inside, or in a corner with more or fewer coordinates high.
    inside = rng.uniform(size=(n, dim))
    corner = (rng.uniform(size=(n, dim)) < rng.uniform(size=(n, 1))).astype(float)
    share = np.where(rng.uniform(size=(n, 1)) < 1 / 2, inside, corner)
    smallest, largest = np.log(sizes)
    size = np.exp(rng.uniform(smallest, largest, (n, 1)))
    tails = np.abs(rng.standard_normal((n, dim))) ** rng.choice(powers, (n, 1))
    away = size * tails / tails.mean(axis=1, keepdims=True)
    signs = rng.choice([-1.0, 1.0], (n, dim))
    with np.errstate(invalid="ignore"):  # infinite bounds are not chosen
        choices = [low + share * (high - low), low + away, high - away]
    points = np.select([bounded, np.isfinite(low), np.isfinite(high)], choices, signs * away)
    return np.clip(points, low, high)


def axis_points(domain: Domain, dim: int) -> FloatArray:
    """Points on the edges that leave the corner of an orthant: every hyperplane in it crosses one.

    None in a box, which has too many edges.
    """
    axis_distances = (1.0, 300.0)
    if domain.is_box:
        return np.empty((0, dim))
    low, high = np.broadcast_to(domain.low, dim), np.broadcast_to(domain.high, dim)
    corner = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
    inward = np.where(np.isfinite(low) | ~np.isfinite(high), 1.0, -1.0)
    axes = [corner + distance * np.diag(inward) for distance in axis_distances]
    return np.clip(np.concatenate([corner[None], *axes]), low, high)


def far_corners(domain: Domain, directions: FloatArray) -> FloatArray:
    """The corners of a box farthest along these directions and against them."""
    dim = directions.shape[1]
    if not domain.is_box:
        return np.empty((0, dim))
    low, high = np.broadcast_to(domain.low, dim), np.broadcast_to(domain.high, dim)
    return np.concatenate([np.where(directions > 0, high, low), np.where(directions > 0, low, high)])


def end_of_ray(domain: Domain, start: FloatArray, through: FloatArray, scale: float) -> FloatArray:
    """Where the ray through a point leaves the domain, or a good way out where it does not."""
    farthest_ray = 50.0  # typical inputs, where nothing stops a ray
    low, high = np.broadcast_to(domain.low, start.shape), np.broadcast_to(domain.high, start.shape)
    step = through - start
    length = float(np.linalg.norm(step))
    moving = step != 0
    room = np.where(step > 0, high - start, low - start)[moving] / step[moving]
    reach = min(float(room.min()), max(1.0, farthest_ray * scale / length))
    return np.asarray(np.clip(start + reach * step, low, high))


@dataclass(frozen=True)
class Bounded:
    """Settings of the stages inside a domain.

    Arguments:
        batch_points: random points that are explored together, besides corners and points on edges.
        quiet_batches: batches in a row without a difference that end the exploration.
        rays: how many rays one batch may take.
        dull_rays: rays in a row without a new neuron, after which a larger error is accepted.
        neuron_error: largest error of a neuron that is accepted at first, of the answers' deviation.
        worst_error: the same after rays without a new neuron, at most.
        other_layer: change of an answer that was explained, of the answers' deviation, that no error of a neuron makes.
        tested_neurons: neurons whose creases are looked for elsewhere, to see that they do not bend.
        missing: how many of these may not be there: another crease may be close by.
    """

    batch_points: int = 256
    quiet_batches: int = 2
    rays: int = 4000
    dull_rays: int = 4
    neuron_error: float = 3e-10
    worst_error: float = 1e-6
    other_layer: float = 1e-4
    tested_neurons: int = 8
    missing: int = 1

    def __post_init__(self) -> None:
        check_settings(self, may_be_zero=("missing",))


BOUNDED = Bounded()  # as it is where nothing else is asked for


@dataclass(frozen=True)
class BoundedTarget:
    """What all stages share. `spread` is the deviation of the answers, the unit of errors."""

    oracle: Counting
    noise: DistanceNoise
    rng: np.random.Generator
    scale: float
    spread: float = 1.0
    settings: Bounded = BOUNDED

    @classmethod
    def of(
        cls, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, settings: Bounded | None = None
    ) -> BoundedTarget:
        """Before anything was asked."""
        scale = domain_scale(oracle.facts.domain, oracle.dim)
        return cls(oracle, noise, rng, scale, settings=settings or BOUNDED)

    @property
    def domain(self) -> Domain:
        """Where the target may be asked."""
        return self.oracle.facts.domain

    def ask(self, rows: FloatArray) -> FloatArray:
        """Answers; rows that rounding has put a hair outside are put back."""
        return self.oracle.query(self.domain.nearest(rows))

    def gradients(self, points: FloatArray, axes: FloatArray | None, steps: FloatArray) -> Gradients:
        """Slopes at points along these axes, None for the coordinates."""
        question = Question.of(self.oracle).of_rows(self.domain.nearest)
        return gradients(question, points, axes, steps, self.noise, self.rng, domain=self.domain, lost=self.lost)

    @property
    def answers_gradients(self) -> bool:
        """True if a gradient costs one row."""
        return self.oracle.explained is not None

    def noise_of(self, rows: FloatArray, answers: FloatArray) -> FloatArray:
        """Noise (n,) of these answers: by where they were asked, and by the digits that probabilities lose."""
        return np.hypot(self.noise.at(np.linalg.norm(rows, axis=1)), self.lost(rows, answers))

    def lost(self, _: FloatArray, answers: FloatArray) -> FloatArray:
        """Noise (n,) of answers that come from probabilities next to 1, wherever they were asked; 0 of others."""
        return np.asarray(lost_digits(answers, self.oracle).max(axis=1))


@dataclass(frozen=True)
class AnchorModel:
    """f(x) = value + slope (x - anchor) + Σ outputs_k max(weights_k · (x - feet_k), 0).

    Every neuron is off at the anchor, so unknown neurons are off there too: between the anchor and a point
    where target and model differ there is a crease nobody has seen. Outputs have norm one; `sd` is the noise of
    each neuron's weights, `slope_sd` that of the affine map.
    """

    anchor: FloatArray  # (d,)
    value: FloatArray  # (m,)
    slope: FloatArray  # (m, d)
    slope_sd: float
    weights: FloatArray  # (h, d)
    feet: FloatArray  # (h, d)
    outputs: FloatArray  # (m, h)
    sd: FloatArray  # (h,)
    output_sd: FloatArray  # (h,)

    @classmethod
    def affine(cls, anchor: FloatArray, value: FloatArray, slope: FloatArray, slope_sd: float) -> AnchorModel:
        """No neurons yet."""
        none = np.empty((0, len(anchor)))
        return cls(anchor, value, slope, slope_sd, none, none, np.empty((len(value), 0)), np.empty(0), np.empty(0))

    @property
    def neurons(self) -> int:
        """Number of neurons."""
        return len(self.weights)

    @property
    def biases(self) -> FloatArray:
        """Biases (h,) of the neurons."""
        return -(self.weights * self.feet).sum(axis=1)

    def network(self) -> ReLUNetwork:
        """The same function as a network with a skip term, or without hidden layer where there are no neurons."""
        constant = self.value - self.slope @ self.anchor
        if not self.neurons:
            return ReLUNetwork([self.slope], [constant])
        return ReLUNetwork([self.weights, self.outputs], [self.biases, constant], self.slope)

    def values(self, rows: FloatArray) -> FloatArray:
        """What each neuron sums up (n, h)."""
        return rows @ self.weights.T + self.biases

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Answers (n, m) of the model."""
        hidden = np.maximum(self.values(rows), 0)
        return np.asarray(self.value + (rows - self.anchor) @ self.slope.T + hidden @ self.outputs.T)

    def slopes(self, rows: FloatArray) -> FloatArray:
        """Gradients (n, m, d)."""
        active = self.values(rows) > 0
        return self.slope + np.einsum("mh,nh,hd->nmd", self.outputs, active, self.weights, optimize=True)

    def slope_error(self, rows: FloatArray) -> FloatArray:
        """Standard deviation (n,) of a slope of the model along a coordinate."""
        active = self.values(rows) > 0
        return np.sqrt(self.slope_sd**2 + active @ self.sd**2)

    def error(self, rows: FloatArray) -> FloatArray:
        """Standard deviation (n,) of the model: what the noise of its weights makes of the distance to each row."""
        squares = (self.slope_sd * np.linalg.norm(rows - self.anchor, axis=1)) ** 2
        if self.neurons:
            values = np.maximum(self.values(rows), 0)
            near = (rows**2).sum(axis=1)[:, None] - 2 * rows @ self.feet.T + (self.feet**2).sum(axis=1)
            squares = squares + ((values > 0) * np.maximum(near, 0)) @ self.sd**2 + values**2 @ self.output_sd**2
        return np.sqrt(squares)

    def noise_towards(self, point: FloatArray, noise: DistanceNoise) -> DistanceNoise:
        """Noise of target minus model on the way from the anchor to a point, by the distance from the anchor."""
        length = float(np.linalg.norm(point - self.anchor))
        farthest = max(float(np.linalg.norm(point)), float(np.linalg.norm(self.anchor)))
        near = float(noise.at(np.array([farthest]))[0])
        return DistanceNoise(near, float(self.error(point[None])[0]) / length)

    def with_neurons(self, found: Factors, feet: FloatArray) -> AnchorModel:
        """The model with more neurons; those on a crease it has already are added to the neuron there."""
        known = self
        for i in np.flatnonzero(np.linalg.norm(found.weights, axis=1) > DOUBLE.in_line * found.weight_sd):
            foot, w, a = feet[i], found.weights[i], found.outputs[:, i]
            same = known._on_the_same_crease(w, foot, found.weight_sd[i])
            if same is None:
                known = known._with_one(w, foot, a, found.weight_sd[i], found.output_sd[i])
            else:
                known = known._changed(same, np.linalg.norm(w) * a, found.weight_sd[i])
        return known

    def _with_one(self, w: FloatArray, foot: FloatArray, a: FloatArray, sd: float, output_sd: float) -> AnchorModel:
        return replace(
            self,
            weights=np.vstack([self.weights, w]),
            feet=np.vstack([self.feet, foot]),
            outputs=np.column_stack([self.outputs, a]),
            sd=np.append(self.sd, sd),
            output_sd=np.append(self.output_sd, output_sd),
        )

    def _changed(self, which: int, jump: FloatArray, sd: float) -> AnchorModel:
        """One neuron with more of a jump across its crease."""
        size = np.linalg.norm(self.weights[which])
        jump = self.outputs[:, which] * size + jump
        total = np.linalg.norm(jump)
        if total <= DOUBLE.in_line * sd:
            return self._without(which)
        weights, outputs, sds = self.weights.copy(), self.outputs.copy(), self.sd.copy()
        weights[which] *= total / size
        outputs[:, which] = jump / total
        sds[which] = np.hypot(sds[which], sd)
        return replace(self, weights=weights, outputs=outputs, sd=sds)

    def _without(self, which: int) -> AnchorModel:
        keep = np.arange(self.neurons) != which
        return replace(
            self,
            weights=self.weights[keep],
            feet=self.feet[keep],
            outputs=self.outputs[:, keep],
            sd=self.sd[keep],
            output_sd=self.output_sd[keep],
        )

    def _on_the_same_crease(self, w: FloatArray, foot: FloatArray, sd: float) -> int | None:
        """A known neuron with the same hyperplane, within what the noise of both allows."""
        if not self.neurons:
            return None
        sizes, size = np.linalg.norm(self.weights, axis=1), np.linalg.norm(w)
        angle = np.linalg.norm(self.weights / sizes[:, None] - w / size, axis=1)
        distance = np.abs(self.values(foot[None])[0]) / sizes
        blur = DOUBLE.in_line * np.sqrt(len(w)) * (self.sd / sizes + sd / size)
        reach = np.linalg.norm(self.feet - foot, axis=1) + np.linalg.norm(foot - self.anchor)
        best = int(np.argmin(angle))
        return best if angle[best] < blur[best] and distance[best] < blur[best] * reach[best] else None
