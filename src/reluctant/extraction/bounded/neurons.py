"""From creases on a ray to neurons: gradients between the creases, where they are precise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.bounded.inside import Inside
from reluctant.extraction.bounded.known import Known
from reluctant.extraction.bounded.outputs import Factors, factorise
from reluctant.extraction.bounded.pieces import BEFORE, Group, plan_groups
from reluctant.extraction.bounded.rays import Ray
from reluctant.geometry import Gradients
from reluctant.geometry.samples import TOLERANCE, BoolArray, IntArray
from reluctant.numerics import FloatArray

__all__ = ["neurons_on_a_ray"]

SHORT = 0.02  # of a stretch without creases: a step that hardly ever leaves it
TRIAL_COORDINATES = 16  # asked first with short steps, to learn how long the others may be
WORTH_A_TRIAL = 48  # inputs from which on that pays
WEIGHTS = 5.0  # typical weights of a neuron that a step must not cross


def neurons_on_a_ray(inside: Inside, known: Known, ray: Ray, gate: float) -> Known:
    """The model with those neurons behind a ray's creases that can be had with an error below `gate`.

    The error of a neuron is that of its output over the length of the domain, in units of the spread. Cost: d + 2
    rows a crease with one output, with m outputs down to that for every 0.6·m creases.
    """
    stretches = _Stretches.of(known, ray)
    noise = inside.noise_of(stretches.points, known(stretches.points))
    error = noise / (SHORT * stretches.length) * inside.scale / inside.spread
    groups = plan_groups(ray, stretches.length, error < gate)
    if not groups:
        return known
    found = stretches.measure(inside, known, groups)
    groups = [group for group in groups if found.good[found.bounds(group)].all()]
    if not groups:
        return known
    factors = factorise(groups, *found.changes(groups, known, None), ray)
    factors = factors.chosen(_fits_bends(factors, ray))
    return known.with_neurons(factors, known.anchor + ray.t[factors.creases, None] * ray.direction)


def _fits_bends(factors: Factors, ray: Ray) -> BoolArray:
    """True for neurons whose weights along the ray are the bends that were seen there."""
    bend, bend_sd = np.linalg.norm(ray.jump, axis=1)[factors.creases], ray.jump_sd[factors.creases]
    off = np.abs(bend - factors.weights @ ray.direction)
    return off <= TOLERANCE * (np.hypot(factors.weight_sd, bend_sd) + factors.output_sd * bend)


@dataclass(frozen=True)
class _Measured:
    """Gradients in pieces of a ray, along the coordinates or along a few axes."""

    pieces: IntArray
    found: Gradients

    @property
    def good(self) -> BoolArray:
        return self.found.good

    def bounds(self, group: Group) -> IntArray:
        """Where the gradients at the ends of a group are; the one before all creases is not measured."""
        ends = [piece for piece in (group.after, group.upto) if piece != BEFORE]
        return np.searchsorted(self.pieces, ends)

    def changes(self, groups: list[Group], known: Known, axes: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """How the unknown part of the gradient changes over each group, and the noise of that."""
        slopes = known.slopes(self.found.points)
        rest = self.found.slope - (slopes if axes is None else slopes @ axes.T)
        sd = np.hypot(self.found.sd, known.slope_error(self.found.points))
        change, noise = [], []
        for group in groups:
            ends = self.bounds(group)
            change.append(rest[ends[-1]] - (rest[ends[0]] if len(ends) > 1 else 0.0))
            noise.append(np.linalg.norm(sd[ends]))
        return np.array(change), np.array(noise)


@dataclass(frozen=True)
class _Stretches:
    """In each piece after a crease the longest stretch that no known neuron cuts: its middle and length."""

    ray: Ray
    points: FloatArray  # (n, d)
    middle: FloatArray  # (n,)
    length: FloatArray

    @classmethod
    def of(cls, known: Known, ray: Ray) -> _Stretches:
        at, along = known.values(known.anchor[None])[0], known.weights @ ray.direction
        with np.errstate(divide="ignore", invalid="ignore"):
            cuts = -at / along
        ends = np.append(ray.t, ray.end)
        parts = np.array([_longest(ends[i], ends[i + 1], cuts) for i in range(len(ray))])
        return cls(ray, known.anchor + parts[:, :1] * ray.direction, parts[:, 0], parts[:, 1])

    def measure(self, inside: Inside, known: Known, groups: list[Group]) -> _Measured:
        """Gradients in all pieces that the groups need; with many inputs the first few coordinates set the steps."""
        pieces = np.unique([piece for group in groups for piece in (group.after, group.upto) if piece != BEFORE])
        points, dim = self.points[pieces], self.points.shape[1]
        room = _room_of_known(known, points)
        steps = np.minimum(SHORT * self.length[pieces], room)
        if dim >= WORTH_A_TRIAL:
            axes = np.eye(dim)[inside.rng.choice(dim, TRIAL_COORDINATES, replace=False)]
            trial = inside.gradients(points, axes, steps)
            factors = factorise(groups, *_Measured(pieces, trial).changes(groups, known, axes), self.ray)
            steps = np.minimum(self._safe_steps(factors, pieces), room)
        found = inside.gradients(points, None, steps)
        return _Measured(pieces, found)

    def _safe_steps(self, factors: Factors, pieces: IntArray) -> FloatArray:
        """Steps that hardly cross the ray's own creases, by the size their weights have along a few coordinates."""
        sizes = np.sqrt((factors.weights**2).mean(axis=1))
        away = np.abs(self.middle[pieces][:, None] - self.ray.t[factors.creases])
        values = away * np.linalg.norm(self.ray.jump, axis=1)[factors.creases]
        with np.errstate(divide="ignore"):
            safe = (values / (WEIGHTS * sizes)).min(axis=1)
        return np.minimum(safe, self.length[pieces])


def _room_of_known(known: Known, points: FloatArray) -> FloatArray:
    """Steps (n,) along coordinates that cross no known neuron's crease."""
    if not known.neurons:
        return np.full(len(points), np.inf)
    largest = np.abs(known.weights).max(axis=1)
    return np.asarray((np.abs(known.values(points)) / largest).min(axis=1) / 2)


def _longest(start: float, stop: float, cuts: FloatArray) -> tuple[float, float]:
    """Middle and length of the longest part of an interval between cuts."""
    ends = np.concatenate([[start], np.sort(cuts[(cuts > start) & (cuts < stop)]), [stop]])
    lengths = np.diff(ends)
    i = int(np.argmax(lengths))
    return float((ends[i] + ends[i + 1]) / 2), float(lengths[i])
