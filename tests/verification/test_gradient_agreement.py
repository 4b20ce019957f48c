"""Verification against gradients: what values at the same rows do not show, and units that few inputs switch on."""

import numpy as np
import pytest

from reluctant import open_oracle
from reluctant.extraction.candidate_check import check_candidate
from reluctant.extraction.method import Candidate
from reluctant.networks import ReLUNetwork
from reluctant.numerics import Noise
from reluctant.oracles import Rows
from reluctant.testing import planted
from reluctant.verification.agreement import examine, examine_by_gradients
from reluctant.verification.cells import covering_points, outermost_points, sparse_points
from reluctant.verification.comparison import AcceptedError
from reluctant.verification.points import PointCounts, whole_line_points


def without_neuron(network, layer, neuron):
    """The same without one hidden neuron."""
    weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
    weights[layer], biases[layer] = np.delete(weights[layer], neuron, axis=0), np.delete(biases[layer], neuron)
    weights[layer + 1] = np.delete(weights[layer + 1], neuron, axis=1)
    return ReLUNetwork(weights, biases)


def with_rare_neuron():
    """A network whose first neuron of the second layer is on at hardly any random input."""
    network = planted((40, 20, 10, 1), 3)
    weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
    weights[1][0] = np.where(np.arange(20) < 4, 1.0, -1.5) * np.abs(weights[1][0])
    rare = ReLUNetwork(weights, biases)
    on = rare.patterns(np.random.default_rng(1).standard_normal((4000, 40)))[1][:, 0]
    assert on.mean() < 2e-3
    return rare


def test_the_network_itself_agrees_in_its_gradients():
    network = planted((20, 10, 5, 2), 0)
    counts = PointCounts(points=20, per_neuron=1, on_lines=16)
    with open_oracle(network, gradients=True) as oracle:
        found = examine(oracle, network, np.random.default_rng(0), counts, AcceptedError(tol=1e-8), gradients=True)
    assert found.ok
    assert found.slope_error == 0 == found.to_dict()["slope_error"]
    assert "on creases" not in {group.name for group in found.groups}


def test_points_where_some_units_are_on_show_a_unit_that_random_inputs_hide():
    network = with_rare_neuron()
    missing = without_neuron(network, 1, 0)
    rows = sparse_points(missing, 32, np.random.default_rng(0))
    assert np.abs(network.gradients(rows) - missing.gradients(rows)).max() > 1e-3


def test_gradients_of_another_function_are_an_error_of_the_network():
    network = planted((10, 6, 4, 1), 2)
    other = planted((10, 6, 4, 1), 3)
    with open_oracle(network, gradients=other.gradients, dim=10) as oracle:
        counts, accepted = PointCounts(points=4), AcceptedError(tol=1e-8)
        found = examine(oracle, network, np.random.default_rng(0), counts, accepted, gradients=True)
    assert not found.ok
    assert found.max_error == 0
    assert found.slope_error > 0.1
    assert found.counterexamples is not None


def test_parts_of_the_first_layer_are_on_and_the_rest_is_off():
    network = planted((12, 8, 3, 1), 0)
    rows = sparse_points(network, 200, np.random.default_rng(0))
    share = network.patterns(rows)[0].mean(axis=1)
    assert share.min() == 1 / 8
    assert share.max() > 0.7
    assert np.median(share) < 0.5
    assert not len(sparse_points(planted((4, 8, 3, 1), 0), 10, np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("widths", "seed", "layer"),
    [
        ((8, 6, 4, 1), 960016, 1),
        ((20, 15, 10, 5, 1), 960015, 2),
        ((20, 15, 10, 5, 1), 988007, 2),
    ],
)
def test_a_unit_that_few_inputs_switch_on_is_missed(widths, seed, layer):
    network = planted(widths, seed)
    on = network.patterns(10 * np.random.default_rng(0).standard_normal((100_000, widths[0])))[layer].mean(axis=0)
    missing = without_neuron(network, layer, int(on.argmin()))
    with open_oracle(network, gradients=True) as oracle:
        found = examine_by_gradients(oracle, missing, np.random.default_rng(1), noise=Noise(1e-15, 1e-15))
    assert on.min() < 2e-3
    assert not found.ok


@pytest.mark.parametrize(("widths", "seed"), [((20, 15, 10, 5, 1), 988007), ((10, 8, 6, 4, 1), 5159)])
def test_outermost_points_are_in_the_small_part_of_space_where_a_unit_of_the_third_layer_is_on(widths, seed):
    network = planted(widths, seed)
    values = network.preactivations(np.random.default_rng(0).standard_normal((20_000, widths[0])))[2]
    unit, side = min(
        ((k, s) for k in range(widths[3]) for s in (1, -1)), key=lambda us: (us[1] * values[:, us[0]] > 0).sum()
    )
    rows = outermost_points(without_neuron(network, 2, unit), 2, 64, np.random.default_rng(0))
    assert len(rows) <= 64
    assert (side * values[:, unit] > 0).mean() < 4e-3
    assert (side * network.preactivations(rows)[2][:, unit] > 0).any()


def test_values_alone_show_such_a_unit_too():
    network = planted((20, 15, 10, 5, 1), 988007)
    missing = without_neuron(network, 2, 4)
    for given, right in ((missing, False), (network, True)):
        with open_oracle(network) as oracle:
            exact, spent = Noise(1e-15, 1e-15), Rows(asked=25_000)
            found = check_candidate(oracle, given, Candidate(given), exact, spent, np.random.default_rng(0))
        assert found.verification.ok is right


def test_a_unit_that_few_inputs_switch_off_is_missed_where_a_network_has_skips():
    """Where such a unit is said to be always on, its part is a skip of the layer below."""
    network, unit = planted((16, 12, 8, 4, 3), 991026), 3
    assert (~network.patterns(np.random.default_rng(0).standard_normal((20_000, 16)))[2][:, unit]).mean() < 2e-3
    weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
    row, bias, out = weights[2][unit], biases[2][unit], weights[3][:, unit]
    weights[2], biases[2], weights[3] = (
        np.delete(weights[2], unit, 0), np.delete(biases[2], unit), np.delete(weights[3], unit, 1),
    )  # fmt: skip
    biases[3] = biases[3] + out * bias
    given = ReLUNetwork(weights, biases, skips={(2, 4): np.outer(out, row)})
    with open_oracle(network, gradients=True) as oracle:
        exact, spent = Noise(1e-15, 1e-15), Rows(asked=25_000)
        found = check_candidate(oracle, given, Candidate(given), exact, spent, np.random.default_rng(0))
    assert not found.verification.ok


def test_covering_points_switch_on_units_that_random_inputs_do_not():
    network = with_rare_neuron()
    missing = without_neuron(network, 1, 0)
    rows = covering_points(missing, np.random.default_rng(0))
    assert len(rows) <= 64
    assert np.abs(network.gradients(rows) - missing.gradients(rows)).max() > 1e-3


def test_whole_lines_go_far_out_and_show_each_piece():
    network = planted((20, 10, 5, 2), 0)
    rows = whole_line_points(network, 96, np.random.default_rng(0))
    assert rows.shape == (96, 20)
    sizes = np.linalg.norm(rows, axis=1) / np.sqrt(20)
    assert sizes.max() > 30
    assert np.median(sizes) < 10
    assert len(np.unique(np.hstack(network.patterns(rows)[:2]), axis=0)) > 40
