"""Planted networks of which some layers are taken as known, and points on the creases of the next."""

from __future__ import annotations

import numpy as np

import reluctant as rl
from reluctant.extraction.any_depth.crease_equations import Crease
from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.extraction.any_depth.kinks import Asker, KinkStore
from reluctant.geometry import DistanceNoise
from reluctant.interface.health import examine
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting


def known_part(true: ReLUNetwork, layers: int) -> KnownLayers:
    """The first layers of a network, as if they had been found."""
    found = (Layer.of(w, b) for w, b in zip(true.weights[:layers], true.biases[:layers], strict=True))
    return KnownLayers(true.dim, tuple(found))


def with_open_sides(known: KnownLayers, wrong: np.ndarray) -> KnownLayers:
    """The same layers, some neurons of the last one turned round and all its sides open."""
    last = known.layers[-1].turned(wrong)
    undecided = np.ones(len(last), dtype=bool)
    return KnownLayers(known.dim, (*known.layers[:-1], Layer(last.weights, last.biases, undecided, last.carried)))


def search_tools(true: ReLUNetwork, seed: int, lines: int = 6) -> tuple[Counting, Asker, KinkStore]:
    """An opened target, and what a search on it works with."""
    oracle, rng = rl.open_oracle(true), np.random.default_rng(seed)
    noise = DistanceNoise.of(examine(oracle, rng, 4), oracle.dim)
    store = KinkStore(oracle.query, oracle.dim, noise, rng)
    store.scan_random(lines)
    return oracle, Asker(oracle.query, noise, rng, store.scale, store.spacing()), store


def switching(true: ReLUNetwork, layer: int) -> list[int]:
    """Neurons that are on at some random inputs and off at others."""
    on = (true.preactivations(np.random.default_rng(0).standard_normal((1000, true.dim)))[layer] > 0).mean(axis=0)
    return np.flatnonzero((on > 0.02) & (on < 0.98)).tolist()


def crease_points(true: ReLUNetwork, layer: int, neuron: int, count: int, seed: int = 0) -> np.ndarray:
    """Points where this neuron switches, by bisection between random inputs; it must be a switching one."""
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((200 * count, true.dim))
    on = true.preactivations(inputs)[layer][:, neuron] > 0
    low, high = rng.choice(inputs[~on], count), rng.choice(inputs[on], count)
    for _ in range(70):
        middle = (low + high) / 2
        above = (true.preactivations(middle)[layer][:, neuron] > 0)[:, None]
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return (low + high) / 2


def crease_of(true: ReLUNetwork, layer: int, neuron: int, count: int, seed: int = 0) -> Crease:
    """A crease with its true normal at the first point."""
    return crease_through(true, layer, neuron, crease_points(true, layer, neuron, count, seed))


def crease_through(true: ReLUNetwork, layer: int, neuron: int, points: np.ndarray) -> Crease:
    """These points of a crease, with the true normal at the first."""
    jacobian = known_part(true, layer).local(points[:1]).jacobian[0]
    normal = jacobian.T @ true.weights[layer][neuron]
    return Crease(points, normal / np.linalg.norm(normal), 1.0)


def angle(found: np.ndarray, true: np.ndarray) -> float:
    """Sine of the angle between two directions, whatever their signs."""
    found, true = found / np.linalg.norm(found), true / np.linalg.norm(true)
    return float(np.linalg.norm(found - (found @ true) * true))
