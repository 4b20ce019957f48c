"""Neurons of a crowded line that only short lines beside it tell: creases that all but meet, weak neurons."""

from __future__ import annotations

import numpy as np
import pytest
from crowded_line import NEURONS, CrowdedLine, seen_on_the_line, true_weights

import reluctant as rl
from reluctant.extraction.depth_two.crowded_line import look_again, tell_close_creases_apart
from reluctant.geometry import DistanceNoise, FramedNetwork
from reluctant.networks import ReLUNetwork

DIRECTIONS, NOISE = 4, 2e-13
ROWS = 45  # at most, for each direction and unknown neuron: 229 to 302 in all with eight seeds


def pair_and_weak_neuron() -> ReLUNetwork:
    """Two creases 3e-7 of the scale apart on the line, and elsewhere that of a neuron of little weight."""
    line = CrowdedLine()
    one, other, weak = line.nearest[[3, 200, 80]]
    line.move(other, line.positions[one] + 3e-7 * line.scale)
    line.weaken(weak, 0.01)
    return line.network()


def in_order(true: ReLUNetwork, known: FramedNetwork) -> np.ndarray:
    """Weights in the order of the creases along the line."""
    w, b, frame = true.weights[0], true.biases[0], known.frame
    return true_weights(true, known)[np.argsort(-(w @ frame.origin + b) / (w @ frame.basis[0]))]


@pytest.fixture(scope="module")
def grown() -> tuple[ReLUNetwork, rl.Oracle, FramedNetwork, DistanceNoise, float]:
    true = pair_and_weak_neuron()
    oracle, known, regions, noise = seen_on_the_line(true, NOISE, DIRECTIONS)
    assert known.neurons == NEURONS
    return true, oracle, known, noise, regions.scale


def errors(true: ReLUNetwork, known: FramedNetwork) -> tuple[np.ndarray, np.ndarray]:
    """Of each neuron's weights: what they are said to be off by, of their length; and how often they are."""
    weights = in_order(true, known)
    off = np.abs(known.network.weights[0] - weights).max(axis=1)
    return known.weight_sd / np.linalg.norm(weights, axis=1), off / known.weight_sd


def test_short_lines_tell_what_the_line_does_not(grown) -> None:
    true, oracle, known, noise, _ = grown
    unknown = np.flatnonzero(errors(true, known)[0] > 0.05)
    assert len(unknown) >= 2
    before = oracle.queries
    found = tell_close_creases_apart(oracle, known, noise, np.random.default_rng(1))
    assert 0 < oracle.queries - before <= ROWS * DIRECTIONS * len(unknown)
    told, off = errors(true, found)
    assert told[unknown].max() < 0.02
    assert off.max() < 10
    others = np.setdiff1d(np.arange(NEURONS), unknown)
    assert (np.abs(found.network.weights[0] - known.network.weights[0])[others].max(axis=1) < 1e-3).all()


def test_a_second_look_is_as_good_as_it_says(grown) -> None:
    true, oracle, known, noise, scale = grown
    rng = np.random.default_rng(2)
    found = tell_close_creases_apart(oracle, known, noise, rng)
    found = look_again(oracle, found, found.reach(scale), noise, rng)
    told, off = errors(true, found)
    assert off.max() < 10
    assert told.max() < errors(true, known)[0].max() / 10
