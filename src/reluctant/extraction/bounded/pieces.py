"""Which pieces of a ray to take gradients in: enough to tell its neurons apart, only where they are precise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.bounded.rays import Ray
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.numerics import FloatArray

__all__ = ["BEFORE", "Group", "directions_of_bends", "plan_groups"]

BEFORE = -1  # the piece before the first crease: nothing is unknown there
GROUP_SHARE = 0.6  # with m outputs one gradient serves at most this many times m neurons
PRECISE = 3e-10  # noise of a bend's direction that may stay
WELL_CONDITIONED = 20.0


@dataclass(frozen=True)
class Group:
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


def plan_groups(ray: Ray, length: FloatArray, good: BoolArray) -> list[Group]:
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
        groups.append(Group(last, stop))
        last = stop
    return groups


def _end_of_group(last: int, outputs: FloatArray, noise: FloatArray, length: FloatArray, good: BoolArray) -> int | None:
    """The longest good piece among those that end a solvable group after piece `last`."""
    m, n = outputs.shape
    ends = []
    for stop in range(last + 1, min(last + 1 + max(1, int(GROUP_SHARE * m)), n)):
        which = slice(last + 1, stop + 1)
        if stop > last + 1 and (noise[which].max() > PRECISE or np.linalg.cond(outputs[:, which]) > WELL_CONDITIONED):
            break
        if good[stop]:
            ends.append(stop)
    if not ends:
        return None
    late = [stop for stop in ends if 2 * (stop - last) >= ends[-1] - last]
    return late[int(np.argmax(length[late]))]
