"""Neurons that a crowded line hides: another line of the frame shows them, and witnesses tell that one is missing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from crowded_line import DIM, NEURONS, CrowdedLine, seen_on_the_line, true_weights
from scipy.spatial import cKDTree
from sweeps import sweep

import reluctant as rl
from reluctant.extraction.depth_two.main_pass import choose_base_points, measure_gradients
from reluctant.extraction.depth_two.other_line import seen_from_another_line
from reluctant.extraction.depth_two.scaffold import Regions
from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise, FramedNetwork
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted

DIRECTIONS, NOISE = 6, 1e-14
ROWS = 6.5  # a neuron: what another line may cost
WEAK = 1e-3  # of the usual output weight
PLAIN = planted((DIM, NEURONS, 1), 6, bias=0.5)


def hidden_on_the_line() -> ReLUNetwork:
    """Two creases that the line shows as one, and elsewhere a weak neuron's crease on that of another."""
    line = CrowdedLine()
    one, other, strong, weak = line.nearest[[3, 200, 80, 301]]
    for moved, onto in ((other, one), (weak, strong)):
        line.move(moved, line.positions[onto])
    line.weaken(weak, WEAK * np.abs(line.a).mean())
    return line.network()


@cache
def grown(true: ReLUNetwork) -> tuple[rl.Oracle, FramedNetwork, Regions, DistanceNoise]:
    return seen_on_the_line(true, NOISE, DIRECTIONS)


@pytest.mark.parametrize("seed", sweep(range(3), fast=[0]))
def test_another_line_shows_what_the_first_hides(seed: int) -> None:
    true = hidden_on_the_line()
    oracle, known, _, noise = grown(true)
    assert known.neurons == NEURONS - 2
    before = oracle.queries
    found = seen_from_another_line(oracle, known, noise, np.random.default_rng(seed), lines=5)
    assert oracle.queries - before < ROWS * NEURONS
    assert found.neurons == len(found.along_sd) == NEURONS
    assert (np.diff(found.positions) > 0).all()
    off, which = cKDTree(true_weights(true, found)).query(found.network.weights[0])
    assert len(np.unique(which)) == NEURONS
    assert (off < 5 * found.weight_sd).all()


def test_what_is_known_well_stays_as_it_is() -> None:
    true = PLAIN
    oracle, known, _, noise = grown(true)
    found = seen_from_another_line(oracle, known, noise, np.random.default_rng(1), lines=5)
    assert found.neurons == NEURONS
    assert (found.weight_sd <= known.weight_sd).all()
    off, which = cKDTree(true_weights(true, found)).query(found.network.weights[0])
    assert len(np.unique(which)) == NEURONS
    assert (off < 5 * np.maximum(found.weight_sd, found.along_sd)).all()


def test_values_are_sure_where_the_crease_is_known() -> None:
    _, known, _, _ = grown(PLAIN)
    far = int(np.argmax(np.abs(known.positions)))
    at, beside = known.points[far], np.eye(DIRECTIONS + 1)[1]
    there, at_origin, across = known.sd_at(np.array([at, 0 * at, at + beside]))[:, far]
    along_line = known.along_sd[far] * abs(known.positions[far])
    assert there < 1e-6 * at_origin
    assert at_origin == pytest.approx(along_line)
    assert across == pytest.approx(known.weight_sd[far], rel=1e-3)
    assert known.sd_within(1.0)[far] == pytest.approx(np.hypot(along_line, known.weight_sd[far]))


def without(known: FramedNetwork, neuron: int) -> FramedNetwork:
    kept = np.delete(np.arange(known.neurons), neuron)
    (g, a), (z, c) = known.network.weights, known.network.biases
    network = ReLUNetwork([g[kept], a[:, kept]], [z[kept], c], known.network.skip)
    return replace(known, network=network, weight_sd=known.weight_sd[kept], along_sd=known.along_sd[kept])


def test_witnesses_tell_that_a_neuron_is_missing_before_the_main_pass() -> None:
    true = PLAIN
    oracle, known, regions, noise = grown(true)
    lengths = np.linalg.norm(known.network.weights[0], axis=1)
    middle = np.abs(known.positions) < regions.scale
    weakest = int(np.flatnonzero(middle)[np.argmin(lengths[middle])])
    base = choose_base_points(without(known, weakest), regions, noise, np.random.default_rng(2))
    before = oracle.queries
    with pytest.raises(StageFailed, match="witnesses") as failed:
        measure_gradients(oracle, without(known, weakest), base, noise, np.random.default_rng(3), repairs=6)
    assert failed.value.stage == "witnesses"
    assert oracle.queries - before == 5 * (len(base) + 16)


@pytest.mark.slow
def test_witnesses_agree_where_no_neuron_is_missing() -> None:
    oracle, known, regions, noise = grown(PLAIN)
    base = choose_base_points(known, regions, noise, np.random.default_rng(2))
    measure_gradients(oracle, known, base, noise, np.random.default_rng(3), repairs=6)


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [1, 2, 9])
def test_neurons_of_few_inputs_are_not_taken_for_missing_ones(inputs: int) -> None:
    """Along one coordinate such a neuron changes far more than along most: steps along the first may cross creases."""
    rng = np.random.default_rng(inputs)
    w = np.zeros((1050, 100))
    for row in w:
        row[rng.choice(100, inputs, replace=False)] = rng.standard_normal(inputs) / np.sqrt(inputs)
    true = ReLUNetwork([w, rng.standard_normal((1, 1050)) / 30], [0.5 * rng.standard_normal(1050), np.zeros(1)])
    result = rl.extract(rl.open_oracle(true), rl.DepthTwo(), rng=inputs, attempts=1)
    assert not [failure for failure in result.evidence["failures"] if "witnesses" in failure]
    assert result.rows["main pass"].queries > 100 * 1050
