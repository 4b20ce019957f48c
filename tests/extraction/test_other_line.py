"""Neurons that a crowded line hides: another line of the frame shows them, and witnesses tell that one is missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import cKDTree

import reluctant as rl
from reluctant.extraction.depth_two.base_points import choose_base_points
from reluctant.extraction.depth_two.line import Regions, neurons_on_a_line
from reluctant.extraction.depth_two.main_pass import measure_gradients
from reluctant.extraction.depth_two.other_line import seen_from_another_line
from reluctant.extraction.depth_two.scaffold import grow
from reluctant.extraction.failures import StageFailed
from reluctant.geometry import DistanceNoise, FramedNetwork, Lines
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted

DIM, NEURONS, DIRECTIONS, NOISE = 12, 1200, 6, 1e-14
LINE = 17  # seed of the line that the network is planted around
ROWS = 6.5  # a neuron: what another line may cost
WEAK = 1e-3  # of the usual output weight


def hidden_on_the_line() -> ReLUNetwork:
    """Two creases that the line shows as one, and elsewhere a weak neuron's crease on that of another."""
    plain = planted((DIM, NEURONS, 1), 5, bias=0.5)
    (w, a), (b, c) = (list(map(np.array, part)) for part in (plain.weights, plain.biases))
    line = Lines.random(np.random.default_rng(LINE), 1, DIM)
    slopes, at_origin = w @ line.directions[0], w @ line.origins[0]
    positions = -(at_origin + b) / slopes
    one, other, strong, weak = np.argsort(np.abs(positions))[[3, 200, 80, 301]]
    for moved, onto in ((other, one), (weak, strong)):
        b[moved] = -at_origin[moved] - slopes[moved] * positions[onto]
    a[:, weak] *= WEAK * np.abs(a).mean() / np.abs(a[:, weak])
    return ReLUNetwork([w, a], [b, c])


def true_neurons(true: ReLUNetwork, known: FramedNetwork) -> np.ndarray:
    """Weights in the frame, with output weights of norm one, on where the line ends."""
    g = (true.weights[0] @ known.frame.basis.T) * np.abs(true.weights[1][0])[:, None]
    return g * np.sign(g[:, :1])


def grown(true: ReLUNetwork) -> tuple[rl.Oracle, FramedNetwork, Regions, DistanceNoise]:
    rng = np.random.default_rng(0)
    oracle = rl.open_oracle(lambda x: true(x) + NOISE * rng.standard_normal((len(x), 1)), dim=DIM)
    noise, drawn = DistanceNoise(3 * NOISE, NOISE), np.random.default_rng(LINE)
    on_line, regions = neurons_on_a_line(oracle, noise, drawn)
    return oracle, grow(oracle, on_line, regions, DIRECTIONS, noise, drawn), regions, noise


@pytest.mark.parametrize("seed", range(3))
def test_another_line_shows_what_the_first_hides(seed: int) -> None:
    true = hidden_on_the_line()
    oracle, known, _, noise = grown(true)
    assert known.neurons == NEURONS - 2
    before = oracle.queries
    found = seen_from_another_line(oracle, known, noise, np.random.default_rng(seed))
    assert oracle.queries - before < ROWS * NEURONS
    assert found.neurons == len(found.along_sd) == NEURONS
    assert (np.diff(found.positions) > 0).all()
    off, which = cKDTree(true_neurons(true, found)).query(found.network.weights[0])
    assert len(np.unique(which)) == NEURONS
    assert (off < 5 * found.weight_sd).all()


def test_what_is_known_well_stays_as_it_is() -> None:
    true = planted((DIM, NEURONS, 1), 6, bias=0.5)
    oracle, known, _, noise = grown(true)
    found = seen_from_another_line(oracle, known, noise, np.random.default_rng(1))
    assert found.neurons == NEURONS
    assert (found.weight_sd <= known.weight_sd).all()
    off, which = cKDTree(true_neurons(true, found)).query(found.network.weights[0])
    assert len(np.unique(which)) == NEURONS
    assert (off < 5 * np.maximum(found.weight_sd, found.along_sd)).all()


def test_values_are_sure_where_the_crease_is_known() -> None:
    _, known, _, _ = grown(planted((DIM, NEURONS, 1), 6, bias=0.5))
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
    true = planted((DIM, NEURONS, 1), 6, bias=0.5)
    oracle, known, regions, noise = grown(true)
    lengths = np.linalg.norm(known.network.weights[0], axis=1)
    middle = np.abs(known.positions) < regions.scale
    weakest = int(np.flatnonzero(middle)[np.argmin(lengths[middle])])
    base = choose_base_points(without(known, weakest), regions, noise, np.random.default_rng(2))
    before = oracle.queries
    with pytest.raises(StageFailed, match="witnesses") as failed:
        measure_gradients(oracle, without(known, weakest), base, noise, np.random.default_rng(3))
    assert failed.value.stage == "witnesses"
    assert oracle.queries - before == 5 * (len(base) + 16)
    base = choose_base_points(known, regions, noise, np.random.default_rng(2))
    measure_gradients(oracle, known, base, noise, np.random.default_rng(3))


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
