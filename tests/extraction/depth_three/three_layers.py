"""Planted three-layer targets for the tests of depth three, and how far a found first layer is from the true one."""

from __future__ import annotations

import numpy as np

import reluctant as rl
from reluctant.extraction.depth_three.first_layer import FirstLayer
from reluctant.geometry import DistanceNoise
from reluctant.interface.health import examine
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting


def opened(true: ReLUNetwork, seed: int) -> tuple[Counting, DistanceNoise, np.random.Generator]:
    """The target, its noise as a run would know it, and a generator."""
    oracle, rng = rl.open_oracle(true), np.random.default_rng(seed)
    return oracle, DistanceNoise.of(examine(oracle, rng, 4), oracle.dim), rng


def unit_rows(network: ReLUNetwork) -> tuple[np.ndarray, np.ndarray]:
    """True first layer with rows of norm one."""
    w, b = network.weights[0], network.biases[0]
    norms = np.linalg.norm(w, axis=1)
    return w / norms[:, None], b / norms


def errors(found: FirstLayer, true: ReLUNetwork) -> tuple[float, float]:
    """Largest error of a weight, and of a bias relative to its size or one; each true neuron found once."""
    w, b = unit_rows(true)
    which = (found.weights @ w.T).argmax(axis=1)
    assert sorted(which) == list(range(len(b)))
    weights = float(np.abs(found.weights - w[which]).max())
    return weights, float((np.abs(found.biases - b[which]) / (1 + np.abs(b[which]))).max())
