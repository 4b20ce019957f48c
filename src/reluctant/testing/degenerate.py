"""Degenerate families: what breaks general position a little, in the first neurons of a generic 64-40-1 network.

Every family is a function of a Generator and gives a ReLUNetwork whose creases are known.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import Rng, as_generator
from reluctant.testing.planted import Family, planted

__all__ = ["DEGENERATE", "DEGENERATE_WIDTHS"]

DEGENERATE_WIDTHS = (64, 40, 1)
SEVERAL_OUTPUTS = 5


class _Parts:
    """Mutable arrays of a two-layer network, in which to plant a flaw."""

    def __init__(self, rng: Rng, outputs: int = 1) -> None:
        self.rng = as_generator(rng)
        network = planted((*DEGENERATE_WIDTHS[:2], outputs), self.rng)
        self.w, self.a = network.weights[0].copy(), network.weights[1].copy()
        self.b, self.c = network.biases[0].copy(), network.biases[1].copy()

    def network(self) -> ReLUNetwork:
        return ReLUNetwork([self.w, self.a], [self.b, self.c])


def near_parallel(rng: Rng, distance: float, opposite: bool, outputs: int = 1) -> ReLUNetwork:
    """Two neurons whose weights and biases differ by `distance`; outputs of equal or of opposite sign."""
    parts = _Parts(rng, outputs)
    d = parts.w.shape[1]
    parts.w[1] = parts.w[0] + distance * parts.rng.standard_normal(d) / np.sqrt(d)
    parts.b[1] = parts.b[0] + distance * parts.rng.standard_normal()
    parts.a[:, 1] = (-0.999 if opposite else 0.7) * parts.a[:, 0]
    return parts.network()


def duplicate(rng: Rng, outputs: int = 1) -> ReLUNetwork:
    """Two equal neurons with outputs of their own."""
    parts = _Parts(rng, outputs)
    parts.w[1], parts.b[1] = parts.w[0], parts.b[0]
    return parts.network()


def mirrored(rng: Rng) -> ReLUNetwork:
    """Two neurons on the two sides of one hyperplane."""
    parts = _Parts(rng)
    parts.w[1], parts.b[1] = -parts.w[0], -parts.b[0]
    return parts.network()


def parallel_offset(rng: Rng, offset: float) -> ReLUNetwork:
    """Two neurons with equal weights and biases `offset` apart."""
    parts = _Parts(rng)
    parts.w[1], parts.b[1] = parts.w[0], parts.b[0] + offset
    return parts.network()


def weak_outputs(rng: Rng, factor: float) -> ReLUNetwork:
    """Three neurons whose output weights are scaled down by `factor`."""
    parts = _Parts(rng)
    parts.a[:, :3] *= factor
    return parts.network()


def far_biases(rng: Rng, size: float) -> ReLUNetwork:
    """Three neurons whose creases are about `size` away."""
    parts = _Parts(rng)
    parts.b[:3] = size * np.array([1.0, -1.0, 1.3])
    return parts.network()


def rescaled(rng: Rng, factor: float) -> ReLUNetwork:
    """Three neurons with weights times `factor` and outputs divided by it: the same function."""
    parts = _Parts(rng)
    parts.w[:3] *= factor
    parts.b[:3] *= factor
    parts.a[:, :3] /= factor
    return parts.network()


def grid_weights(rng: Rng) -> ReLUNetwork:
    """Weights and biases that are multiples of 1/8, outputs ±1."""
    parts = _Parts(rng)
    parts.w, parts.b, parts.a = np.round(8 * parts.w) / 8, np.round(8 * parts.b) / 8, np.sign(parts.a)
    return parts.network()


def zero_biases(rng: Rng) -> ReLUNetwork:
    """Every crease passes through the origin."""
    parts = _Parts(rng)
    parts.b[:] = 0
    return parts.network()


def dead_inputs(rng: Rng) -> ReLUNetwork:
    """Thirty inputs that nothing looks at."""
    parts = _Parts(rng)
    parts.w[:, 10:40] = 0
    return parts.network()


def sparse(rng: Rng) -> ReLUNetwork:
    """Nine weights in ten are zero."""
    parts = _Parts(rng)
    parts.w[parts.rng.random(parts.w.shape) < 0.9] = 0
    return parts.network()


def scaled_output(rng: Rng, factor: float) -> ReLUNetwork:
    """The whole output times `factor`."""
    parts = _Parts(rng)
    parts.a *= factor
    parts.c *= factor
    return parts.network()


def dead_neurons(rng: Rng) -> ReLUNetwork:
    """One neuron with zero weights, one with a zero output."""
    parts = _Parts(rng)
    parts.w[0] = 0
    parts.a[:, 1] = 0
    return parts.network()


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
