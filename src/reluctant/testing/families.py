"""Families of planted networks without general position.

Every family is a function of a Generator and gives a ReLUNetwork whose creases are known.

`DEGENERATE` breaks general position a little, in the first neurons of a generic 64-40-1 network. `WORST_CASE`
makes exact methods fail outright: bumps, cancelling clusters, duplicates and stairs, with one hidden layer and 12
inputs unless said.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.testing.planted import Family, planted

DEGENERATE_WIDTHS = (64, 40, 1)
SEVERAL_OUTPUTS = 5


class _FlawedParts:
    """Mutable arrays of a two-layer network, in which to plant a flaw."""

    def __init__(self, rng: Rng, outputs: int) -> None:
        self.rng = as_generator(rng)
        network = planted((*DEGENERATE_WIDTHS[:2], outputs), self.rng)
        self.w, self.a = network.weights[0].copy(), network.weights[1].copy()
        self.b, self.c = network.biases[0].copy(), network.biases[1].copy()


def _family(flaw: Callable[..., None]) -> Callable[..., ReLUNetwork]:
    """The networks with a flaw that a function plants, of one output or of several."""

    @wraps(flaw)
    def flawed(rng: Rng, *sizes: Any, outputs: int = 1, **named: Any) -> ReLUNetwork:
        parts = _FlawedParts(rng, outputs)
        flaw(parts, *sizes, **named)
        return ReLUNetwork([parts.w, parts.a], [parts.b, parts.c])

    return flawed


@_family
def near_parallel(parts: _FlawedParts, distance: float, opposite: bool) -> None:
    """Two neurons whose weights and biases differ by `distance`; outputs of equal or of opposite sign."""
    d = parts.w.shape[1]
    parts.w[1] = parts.w[0] + distance * parts.rng.standard_normal(d) / np.sqrt(d)
    parts.b[1] = parts.b[0] + distance * parts.rng.standard_normal()
    parts.a[:, 1] = (-0.999 if opposite else 0.7) * parts.a[:, 0]


@_family
def duplicate(parts: _FlawedParts) -> None:
    """Two equal neurons with outputs of their own."""
    parts.w[1], parts.b[1] = parts.w[0], parts.b[0]


@_family
def mirrored(parts: _FlawedParts) -> None:
    """Two neurons on the two sides of one hyperplane."""
    parts.w[1], parts.b[1] = -parts.w[0], -parts.b[0]


@_family
def parallel_offset(parts: _FlawedParts, offset: float) -> None:
    """Two neurons with equal weights and biases `offset` apart."""
    parts.w[1], parts.b[1] = parts.w[0], parts.b[0] + offset


@_family
def weak_outputs(parts: _FlawedParts, factor: float) -> None:
    """Three neurons whose output weights are scaled down by `factor`."""
    parts.a[:, :3] *= factor


@_family
def far_biases(parts: _FlawedParts, size: float) -> None:
    """Three neurons whose creases are about `size` away."""
    parts.b[:3] = size * np.array([1.0, -1.0, 1.3])


@_family
def rescaled(parts: _FlawedParts, factor: float) -> None:
    """Three neurons with weights times `factor` and outputs divided by it: the same function."""
    parts.w[:3] *= factor
    parts.b[:3] *= factor
    parts.a[:, :3] /= factor


@_family
def grid_weights(parts: _FlawedParts) -> None:
    """Weights and biases that are multiples of 1/8, outputs ±1."""
    parts.w, parts.b, parts.a = np.round(8 * parts.w) / 8, np.round(8 * parts.b) / 8, np.sign(parts.a)


@_family
def zero_biases(parts: _FlawedParts) -> None:
    """Every crease passes through the origin."""
    parts.b[:] = 0


@_family
def dead_inputs(parts: _FlawedParts) -> None:
    """Thirty inputs that no neuron reads."""
    parts.w[:, 10:40] = 0


@_family
def sparse(parts: _FlawedParts) -> None:
    """Nine weights in ten are zero."""
    parts.w[parts.rng.random(parts.w.shape) < 0.9] = 0


@_family
def scaled_output(parts: _FlawedParts, factor: float) -> None:
    """The whole output times `factor`."""
    parts.a *= factor
    parts.c *= factor


@_family
def dead_neurons(parts: _FlawedParts) -> None:
    """One neuron with zero weights, one with a zero output."""
    parts.w[0] = 0
    parts.a[:, 1] = 0


def narrow_ridge(rng: Rng, wide: float = 0.01, dim: int = 12, neurons: int = 20) -> ReLUNetwork:
    """Random neurons, and three that make a ridge across a random direction, 1.5 deviations high."""
    rng, high = as_generator(rng), 1.5
    w, b = rng.standard_normal((neurons, dim)) / np.sqrt(dim), 0.5 * rng.standard_normal(neurons)
    a, across = rng.standard_normal((1, neurons)) / np.sqrt(neurons), rng.standard_normal(dim)
    across, place = across / np.linalg.norm(across), rng.uniform(-1, 1)
    spread = ReLUNetwork([w, a], [b, np.zeros(1)])(rng.standard_normal((2000, dim))).std()
    weights = [np.vstack([w, across, across, across]), np.hstack([a, high * spread / wide * np.array([[1, -2, 1]])])]
    return ReLUNetwork(weights, [np.concatenate([b, [wide - place, -place, -wide - place]]), np.zeros(1)])


DEGENERATE: dict[str, Family] = {
    "plain": lambda rng: planted(DEGENERATE_WIDTHS, rng),
    **{
        f"near-parallel {10.0**-k:g}, {'opposite' if opposite else 'same'} sign": partial(
            near_parallel, distance=10.0**-k, opposite=opposite
        )
        for k in (2, 4, 6, 8, 10)
        for opposite in (False, True)
    },
    **{
        f"near-parallel {10.0**-k:g}, opposite sign, 5 outputs": partial(
            near_parallel, distance=10.0**-k, opposite=True, outputs=SEVERAL_OUTPUTS
        )
        for k in (2, 4, 5, 6, 8)
    },
    "duplicate": duplicate,
    "duplicate, 5 outputs": partial(duplicate, outputs=SEVERAL_OUTPUTS),
    "mirrored": mirrored,
    "parallel, offset 1e-3": partial(parallel_offset, offset=1e-3),
    **{f"output weights × {10.0**-k:g}": partial(weak_outputs, factor=10.0**-k) for k in (3, 6, 9, 11, 13)},
    **{f"biases about {10.0**k:g}": partial(far_biases, size=10.0**k) for k in (2, 4, 6, 8)},
    **{f"neurons rescaled by {10.0**k:g}": partial(rescaled, factor=10.0**k) for k in (-6, -3, 3)},
    "grid weights": grid_weights,
    "zero biases": zero_biases,
    "dead inputs": dead_inputs,
    "sparse": sparse,
    "dead neurons": dead_neurons,
    **{f"output × {10.0**k:g}": partial(scaled_output, factor=10.0**k) for k in (-8, 8)},
}

WORST_CASE_DIM = 12


class _NeuronRows:
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
    neurons = _NeuronRows(rng, dim)
    neurons.add_generic(width)
    return neurons.network()


def bump(rng: Rng, width: float, others: int = 0) -> ReLUNetwork:
    """Zero except in a slab of this width, where it is a triangle (Example 1.2 of the learning paper)."""
    neurons = _NeuronRows(rng)
    w, start = neurons.unit(), 0.5
    neurons.add(w, start, 1.0)
    neurons.add(w, start + width, 1.0)
    neurons.add(2 * w, 2 * start + width, -1.0)
    neurons.add_generic(others)
    return neurons.network()


def cancelling_clusters(rng: Rng, angle: float) -> ReLUNetwork:
    """Three clusters of neurons `angle` apart whose outputs add up to zero."""
    neurons = _NeuronRows(rng)
    for outputs in ((1, -1), (1, -1, 1, -1), (1, -1, 1, -1)):
        w, threshold = neurons.unit(), neurons.rng.uniform(-0.5, 0.5)
        for output in outputs:
            step = angle * neurons.unit(), angle * neurons.rng.standard_normal()
            neurons.add(w + step[0], threshold + step[1], output)
    return neurons.network()


def duplicates(rng: Rng) -> ReLUNetwork:
    """Equal, mirrored and rescaled copies of generic neurons."""
    neurons = _NeuronRows(rng)
    neurons.add_generic(6)
    copies = ((0, 1.0, 1.0), (1, 1.0, -1.0), (2, -1.0, 1.0), (3, -1.0, -1.0), (4, 2.0, -1.0))
    for index, scale, sign in copies:
        w, threshold, output = neurons.rows[index]
        neurons.add(scale * w, scale * threshold, sign * output)
    return neurons.network()


def stairs(rng: Rng) -> ReLUNetwork:
    """Parallel neurons of alternating sign: many pieces share one gradient."""
    neurons = _NeuronRows(rng)
    for _ in range(3):
        w = neurons.unit()
        for j in range(6):
            neurons.add(w, -1.2 + 0.45 * j + 0.1 * neurons.rng.random(), (-1.0) ** j)
    return neurons.network()


def linear_dependence(rng: Rng) -> ReLUNetwork:
    """Triples in which one neuron's weights are the sum of the other two, with the opposite sign."""
    neurons = _NeuronRows(rng)
    for _ in range(3):
        u, v = neurons.unit(), neurons.unit()
        for w, output in ((u, 1.0), (v, 1.0), (u + v, -1.0)):
            neurons.add(w, neurons.rng.uniform(-1, 1), output)
    return neurons.network()


def tiny_norms(rng: Rng, factor: float) -> ReLUNetwork:
    """Half of the neurons scaled down by `factor`, threshold and all."""
    neurons = _NeuronRows(rng)
    neurons.add_generic(8)
    neurons.rows[:4] = [(factor * w, factor * threshold, output) for w, threshold, output in neurons.rows[:4]]
    return neurons.network()


def far_thresholds(rng: Rng, distance: float) -> ReLUNetwork:
    """Half of the creases at this distance from the origin."""
    neurons = _NeuronRows(rng)
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
