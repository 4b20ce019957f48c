"""Hypothesis strategies: small networks, rows for them, and symmetric copies of a network."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.testing.planted import planted

SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def networks(draw: st.DrawFn, max_depth: int = 4, max_width: int = 8) -> ReLUNetwork:
    """A planted network of random depth and widths, with or without a skip term."""
    hidden = draw(st.lists(st.integers(1, max_width), min_size=0, max_size=max_depth - 1))
    ends = draw(st.tuples(st.integers(1, max_width), st.integers(1, 3)))
    return planted((ends[0], *hidden, ends[1]), draw(SEEDS), skip=draw(st.booleans()) and bool(hidden))


@st.composite
def rows_for(draw: st.DrawFn, network: ReLUNetwork, max_rows: int = 20) -> FloatArray:
    """Gaussian rows at a random scale."""
    generator = np.random.default_rng(draw(SEEDS))
    scale = 10.0 ** draw(st.integers(-3, 3))
    return np.asarray(scale * generator.standard_normal((draw(st.integers(1, max_rows)), network.dim)))


@st.composite
def symmetric_copies(draw: st.DrawFn, network: ReLUNetwork) -> ReLUNetwork:
    """Networks of the same function: hidden neurons reordered and rescaled by powers of two."""
    weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
    for k in range(network.depth - 1):
        order = np.array(draw(st.permutations(range(len(biases[k])))))
        powers = draw(st.lists(st.integers(-8, 8), min_size=len(order), max_size=len(order)))
        scale = 2.0 ** np.array(powers)
        weights[k], biases[k] = scale[:, None] * weights[k][order], scale * biases[k][order]
        weights[k + 1] = weights[k + 1][:, order] / scale
    return ReLUNetwork(weights, biases, network.skip, network.link)
