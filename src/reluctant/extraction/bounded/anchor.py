"""The model around an anchor point inside the domain: an affine map, and neurons that are inactive there.

`BoundedTarget` asks inside the domain alone and knows how noisy answers are; the functions beside it say where to
look and how far a ray may go. Every neuron of `AnchorModel` is off at the anchor, so what is still unknown is off
there too: between the anchor and a point where target and model differ there is a crease nobody has seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.domains import Domain
from reluctant.extraction.bounded.rays import Factors
from reluctant.extraction.method import check_settings
from reluctant.geometry import DistanceNoise, Gradients, gradients
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.links import lost_digits

TAILS = (1.0, 2.0, 4.0)  # powers of a Gaussian: from even coordinates to a few large ones


def domain_scale(domain: Domain, dim: int) -> float:
    """Typical length in the domain."""
    low, high = np.broadcast_to(domain.low, dim), np.broadcast_to(domain.high, dim)
    bounded = np.isfinite(low) & np.isfinite(high)
    width = np.where(bounded, np.where(bounded, high, 1) - np.where(bounded, low, 0), 2.0)
    return float(np.linalg.norm(width) / 2)


def exploration_points(domain: Domain, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    """Random points from the middle of the domain to its corners, even and uneven ones."""
    loudness = (0.2, 5.0)  # sizes of points where a coordinate is unbounded
    low, high = np.broadcast_to(domain.low, dim), np.broadcast_to(domain.high, dim)
    bounded = np.isfinite(low) & np.isfinite(high)
    share = _shares(rng, n, dim)
    quietest, loudest = np.log(loudness)
    loud = np.exp(rng.uniform(quietest, loudest, (n, 1)))
    tails = np.abs(rng.standard_normal((n, dim))) ** rng.choice(TAILS, (n, 1))
    away = loud * tails / tails.mean(axis=1, keepdims=True)
    signs = rng.choice([-1.0, 1.0], (n, dim))
    with np.errstate(invalid="ignore"):  # infinite bounds are not chosen
        choices = [low + share * (high - low), low + away, high - away]
    points = np.select([bounded, np.isfinite(low), np.isfinite(high)], choices, signs * away)
    return np.clip(points, low, high)


def _shares(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    """Of the way from one wall to the other: inside, or in a corner with more or fewer coordinates high."""
    inside = rng.uniform(size=(n, dim))
    corner = (rng.uniform(size=(n, dim)) < rng.uniform(size=(n, 1))).astype(float)
    return np.where(rng.uniform(size=(n, 1)) < 1 / 2, inside, corner)


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


@dataclass(frozen=True)
class BoundedTarget:
    """What all stages share. `spread` is the deviation of the answers, the unit of errors."""

    oracle: Counting
    noise: DistanceNoise
    rng: np.random.Generator
    scale: float
    spread: float = 1.0
    settings: Bounded = Bounded()

    @classmethod
    def of(
        cls, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, settings: Bounded | None = None
    ) -> BoundedTarget:
        """Before anything was asked."""
        scale = domain_scale(oracle.facts.domain, oracle.dim)
        return cls(oracle, noise, rng, scale, settings=settings or Bounded())

    @property
    def domain(self) -> Domain:
        """Where the target may be asked."""
        return self.oracle.facts.domain

    def ask(self, rows: FloatArray) -> FloatArray:
        """Answers; rows that rounding has put a hair outside are put back."""
        return self.oracle.query(np.clip(rows, self.domain.low, self.domain.high))

    def gradients(self, points: FloatArray, axes: FloatArray | None, steps: FloatArray) -> Gradients:
        """Slopes at points along these axes, None for the coordinates."""
        return gradients(self.ask, points, axes, steps, self.noise, self.rng, domain=self.domain, lost=self.lost)

    def noise_of(self, rows: FloatArray, answers: FloatArray) -> FloatArray:
        """Noise (n,) of these answers: by where they were asked, and by the digits that probabilities lose."""
        return np.hypot(self.noise.at(np.linalg.norm(rows, axis=1)), self.lost(rows, answers))

    def lost(self, _: FloatArray, answers: FloatArray) -> FloatArray:
        """Noise (n,) of answers that come from probabilities next to 1, wherever they were asked; 0 of others."""
        return np.asarray(lost_digits(answers, self.oracle).max(axis=1))


@dataclass(frozen=True)
class AnchorModel:
    """f(x) = value + slope (x - anchor) + Σ outputs_k max(weights_k · (x - feet_k), 0).

    Every neuron is off at the anchor, so what is still unknown is off there too: between the anchor and a point
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
