"""Rays from the anchor: their creases, and neurons from the gradients between them.

From one piece to a later one the gradient changes by Σ a_j w_jᵀ over the neurons between. With m outputs one change
serves several neurons if their outputs a_j are known from the bends on the ray; from gradients alone they could not
be told apart. A neuron by itself gets its outputs from the change as well. No queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.linear import solve_weighted
from reluctant.geometry import Scan
from reluctant.geometry.lines import BoolArray, IntArray
from reluctant.numerics import FloatArray


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
