"""Does a target bend where a network says its first layer has creases? For networks of which only a part is known.

A whole network is verified by its answers; a part gives none. But the crease of a neuron is a place: there the target
bends, and a little beside it does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Noise
from reluctant.oracles.counting import Counting
from reluctant.verification.points import crease_points

__all__ = ["Bends", "look_for_bends"]

PLACES = 6  # on the crease of each neuron
ENOUGH = 2  # of them: elsewhere a neuron of a deeper layer may hide it
STEP = 1e-5  # across the crease, of the size of the point: other creases are hardly ever as near by chance
STEP_IN_NOISE = 1e4  # of the answers' deviation: the step is so much longer than noise asks for
LONGEST_STEP = 4e-3  # longer ones meet other creases: where noise asks for them, nothing can be confirmed
TIMES_BESIDE = 2.0  # as much as beside it has a target to bend on a crease
BESIDE = 5.0  # steps away, where nothing may bend
NOISE_FACTOR = 8.0  # a second difference above this many standard deviations is no noise
SECOND_DIFFERENCE = np.array([1.0, -2.0, 1.0])


@dataclass(frozen=True)
class Bends:
    """Neurons of the first layer, and how many of them lie where the target bends. weights: of those, biases too."""

    neurons: int
    confirmed: int
    weights: int


def look_for_bends(
    oracle: Counting, network: ReLUNetwork, rng: np.random.Generator, *, noise: Noise, spread: float
) -> Bends:
    """Ask on the crease of every neuron of the first layer, and beside it. Cost: at most 36 rows a neuron.

    None is confirmed where answers are too noisy for a step that meets no other crease.
    """
    width = network.widths[1] if network.depth > 1 else 0
    step = max(STEP, STEP_IN_NOISE * noise.at(spread) / spread)
    if step > LONGEST_STEP:
        return Bends(width, 0, 0)
    points, owners = _on_creases(oracle, network, rng)
    bending = _bends(oracle, points, network.hyperplanes()[0][owners], step, noise)
    confirmed = int((np.bincount(owners[bending], minlength=width) >= ENOUGH).sum())
    return Bends(width, confirmed, confirmed * (network.dim + 1))


def _on_creases(
    oracle: Counting, network: ReLUNetwork, rng: np.random.Generator
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Points (n, d) on creases of the first layer, and the neuron each is of."""
    found = [crease_points(network, oracle.facts.domain, rng) for _ in range(PLACES)]
    points = np.concatenate([each.points for each in found])
    neurons = np.concatenate([each.neurons for each in found])
    first = neurons[:, 0] == 0
    return points[first], neurons[first, 1]


def _bends(oracle: Counting, points: FloatArray, normals: FloatArray, step: float, noise: Noise) -> NDArray[np.bool_]:
    """Whether the target bends at each point (n,), and not beside it."""
    sizes = np.linalg.norm(points, axis=1, keepdims=True)
    places = np.array([-1.0, 0.0, 1.0, BESIDE - 1, BESIDE, BESIDE + 1])
    rows = points + step * places[:, None, None] * sizes * normals  # (places, n, d)
    domain = oracle.facts.domain
    inside = ((rows >= domain.low) & (rows <= domain.high)).all(axis=(0, 2))
    bending = np.zeros(len(points), dtype=bool)
    if not inside.any():
        return bending
    kept = rows[:, inside]
    with oracle.stage("part", expected=kept.shape[0] * kept.shape[1]):
        answers = oracle.query(kept.reshape(-1, oracle.dim)).reshape(*kept.shape[:2], -1)
    on, beside = (np.abs(np.tensordot(SECOND_DIFFERENCE, part, axes=1)) for part in np.split(answers, 2))
    floor = (
        NOISE_FACTOR * np.linalg.norm(SECOND_DIFFERENCE) * np.hypot(noise.absolute, noise.relative * np.abs(answers))
    )
    bending[inside] = ((on > floor.max(axis=0)) & (on > TIMES_BESIDE * beside)).any(axis=1)
    return bending
