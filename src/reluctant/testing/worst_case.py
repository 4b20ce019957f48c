"""Worst-case families: what makes exact methods fail outright, bumps, cancelling clusters, duplicates, stairs.

One hidden layer and no general position, of 12 inputs unless said. Every family is a function of a Generator and gives
a ReLUNetwork whose creases are known.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.testing.planted import Family

__all__ = ["WORST_CASE", "WORST_CASE_DIM"]

WORST_CASE_DIM = 12


class _Neurons:
    """Neurons collected one by one: weights, thresholds (w·x > threshold), output weights."""

    def __init__(self, rng: Rng, dim: int = WORST_CASE_DIM) -> None:
        self.rng, self.dim = as_generator(rng), dim
        self.rows: list[tuple[FloatArray, float, float]] = []

    def unit(self) -> FloatArray:
        v = self.rng.standard_normal(self.dim)
        return np.asarray(v / np.linalg.norm(v))

    def add(self, w: FloatArray, threshold: float, output: float) -> None:
        self.rows.append((w, threshold, output))

    def add_generic(self, count: int) -> None:
        for _ in range(count):
            length, threshold = self.rng.uniform(0.5, 1.5), self.rng.uniform(-1, 1)
            self.add(length * self.unit(), threshold, float(self.rng.choice([-1.0, 1.0])))

    def network(self) -> ReLUNetwork:
        w, thresholds, outputs = (np.array(part) for part in zip(*self.rows, strict=True))
        return ReLUNetwork([w, outputs[None, :]], [-thresholds, np.zeros(1)])


def generic(rng: Rng, width: int, dim: int = WORST_CASE_DIM) -> ReLUNetwork:
    """Neurons in general position."""
    neurons = _Neurons(rng, dim)
    neurons.add_generic(width)
    return neurons.network()


def bump(rng: Rng, width: float, others: int = 0) -> ReLUNetwork:
    """Zero except in a slab of this width, where it is a triangle (Example 1.2 of the learning paper)."""
    neurons = _Neurons(rng)
    w, start = neurons.unit(), 0.5
    neurons.add(w, start, 1.0)
    neurons.add(w, start + width, 1.0)
    neurons.add(2 * w, 2 * start + width, -1.0)
    neurons.add_generic(others)
    return neurons.network()


def cancelling_clusters(rng: Rng, angle: float) -> ReLUNetwork:
    """Three clusters of neurons `angle` apart whose outputs add up to zero."""
    neurons = _Neurons(rng)
    for outputs in ((1, -1), (1, -1, 1, -1), (1, -1, 1, -1)):
        w, threshold = neurons.unit(), neurons.rng.uniform(-0.5, 0.5)
        for output in outputs:
            step = angle * neurons.unit(), angle * neurons.rng.standard_normal()
            neurons.add(w + step[0], threshold + step[1], output)
    return neurons.network()


def duplicates(rng: Rng) -> ReLUNetwork:
    """Equal, mirrored and rescaled copies of generic neurons."""
    neurons = _Neurons(rng)
    neurons.add_generic(6)
    copies = ((0, 1.0, 1.0), (1, 1.0, -1.0), (2, -1.0, 1.0), (3, -1.0, -1.0), (4, 2.0, -1.0))
    for index, scale, sign in copies:
        w, threshold, output = neurons.rows[index]
        neurons.add(scale * w, scale * threshold, sign * output)
    return neurons.network()


def stairs(rng: Rng) -> ReLUNetwork:
    """Parallel neurons of alternating sign: many pieces share one gradient."""
    neurons = _Neurons(rng)
    for _ in range(3):
        w = neurons.unit()
        for j in range(6):
            neurons.add(w, -1.2 + 0.45 * j + 0.1 * neurons.rng.random(), (-1.0) ** j)
    return neurons.network()


def linear_dependence(rng: Rng) -> ReLUNetwork:
    """Triples in which one neuron's weights are the sum of the other two, with the opposite sign."""
    neurons = _Neurons(rng)
    for _ in range(3):
        u, v = neurons.unit(), neurons.unit()
        for w, output in ((u, 1.0), (v, 1.0), (u + v, -1.0)):
            neurons.add(w, neurons.rng.uniform(-1, 1), output)
    return neurons.network()


def tiny_norms(rng: Rng, factor: float) -> ReLUNetwork:
    """Half of the neurons scaled down by `factor`, threshold and all."""
    neurons = _Neurons(rng)
    neurons.add_generic(8)
    neurons.rows[:4] = [(factor * w, factor * threshold, output) for w, threshold, output in neurons.rows[:4]]
    return neurons.network()


def far_thresholds(rng: Rng, distance: float) -> ReLUNetwork:
    """Half of the creases at this distance from the origin."""
    neurons = _Neurons(rng)
    neurons.add_generic(8)
    for i in range(4):
        w, _, output = neurons.rows[i]
        neurons.rows[i] = (w, distance * float(np.linalg.norm(w)) * (-1) ** i, output)
    return neurons.network()


WORST_CASE: dict[str, Family] = {
    "generic 30": partial(generic, width=30),
    "generic 100": partial(generic, width=100),
    "generic 200, 100 inputs": partial(generic, width=200, dim=100),
    **{f"bump {width:g}": partial(bump, width=width) for width in (1e-1, 1e-2, 1e-3)},
    **{f"bump {width:g} with 8 neurons": partial(bump, width=width, others=8) for width in (1e-1, 1e-2)},
    **{f"clusters {10.0**-k:g}": partial(cancelling_clusters, angle=10.0**-k) for k in (3, 5, 7, 9)},
    "duplicates": duplicates,
    "stairs": stairs,
    "linear dependence": linear_dependence,
    "tiny norms": partial(tiny_norms, factor=1e-4),
    "far thresholds": partial(far_thresholds, distance=5.0),
}
