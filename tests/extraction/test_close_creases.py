"""Neurons of a crowded line that only short lines beside it tell: creases that all but meet, weak neurons."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.extraction.depth_two.climbing import reach_of
from reluctant.extraction.depth_two.close_creases import tell_close_creases_apart
from reluctant.extraction.depth_two.line import neurons_on_a_line
from reluctant.extraction.depth_two.scaffold import grow
from reluctant.extraction.depth_two.second_look import look_again
from reluctant.geometry import DistanceNoise, FramedNetwork, Lines
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted

DIM, NEURONS, DIRECTIONS, NOISE = 12, 1200, 4, 2e-13
LINE = 17  # seed of the line that the network is planted around
ROWS = 45  # at most, for each direction and unknown neuron: 229 to 302 in all with eight seeds


def pair_and_weak_neuron() -> ReLUNetwork:
    """Two creases 3e-7 of the scale apart on the line, and elsewhere that of a neuron of little weight."""
    plain = planted((DIM, NEURONS, 1), 5, bias=0.5)
    (w, a), (b, c) = (list(map(np.array, part)) for part in (plain.weights, plain.biases))
    line = Lines.random(np.random.default_rng(LINE), 1, DIM)
    slopes, at_origin = w @ line.directions[0], w @ line.origins[0]
    positions = -(at_origin + b) / slopes
    one, other, weak = np.argsort(np.abs(positions))[[3, 200, 80]]
    b[other] = -at_origin[other] - slopes[other] * (positions[one] + 3e-7 * line.scale)
    a[:, weak] *= 0.01 / np.abs(a[:, weak])
    return ReLUNetwork([w, a], [b, c])


def true_weights(true: ReLUNetwork, known: FramedNetwork) -> np.ndarray:
    """Weights in the frame, in the order of the creases along the line and with output weights of norm one."""
    w, b, frame = true.weights[0], true.biases[0], known.frame
    g = (w @ frame.basis.T) * np.abs(true.weights[1][0])[:, None]
    order = np.argsort(-(w @ frame.origin + b) / (w @ frame.basis[0]))
    return (g * np.sign(g[:, :1]))[order]


@pytest.fixture(scope="module")
def grown() -> tuple[ReLUNetwork, rl.Oracle, FramedNetwork, DistanceNoise, float]:
    true, rng = pair_and_weak_neuron(), np.random.default_rng(0)
    oracle = rl.open_oracle(lambda x: true(x) + NOISE * rng.standard_normal((len(x), 1)), dim=DIM)
    noise, drawn = DistanceNoise(3 * NOISE, NOISE), np.random.default_rng(LINE)
    on_line, regions = neurons_on_a_line(oracle, noise, drawn)
    assert on_line.neurons == NEURONS
    known = grow(oracle, on_line, regions, DIRECTIONS, noise, drawn)
    return true, oracle, known, noise, regions.scale


def errors(true: ReLUNetwork, known: FramedNetwork) -> tuple[np.ndarray, np.ndarray]:
    """Of each neuron's weights: what they are said to be off by, of their length; and how often they are."""
    weights = true_weights(true, known)
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
    found = look_again(oracle, found, reach_of(found, scale), noise, rng)
    told, off = errors(true, found)
    assert off.max() < 10
    assert told.max() < errors(true, known)[0].max() / 10
