"""Several hidden layers of targets that answer gradients."""

from __future__ import annotations

import pytest

import reluctant as rl
from reluctant.errors import InvalidInput
from reluctant.extraction import GradientLayers
from reluctant.testing import planted
from reluctant.testing.planted import largest_true_error


@pytest.mark.parametrize(("widths", "seed", "most"), [((30, 12, 6, 1), 1, 2000), ((20, 10, 5, 3), 2, 2200)])
def test_two_hidden_layers_are_recovered_with_few_rows(widths, seed, most):
    network = planted(widths, seed)
    result = rl.extract(network, gradients=True, rng=0)
    assert result.ok
    assert result.network.widths == widths
    assert result.queries <= most
    assert largest_true_error(result.network, network) < 1e-8
    assert [attempt.method for attempt in result.evidence["attempts"].entries][-1] == "GradientLayers"


@pytest.mark.slow
def test_three_hidden_layers_are_recovered():
    network = planted((20, 15, 10, 5, 1), 2)
    result = rl.extract(network, GradientLayers(), gradients=True, rng=1)
    assert result.ok
    assert result.network.widths == (20, 15, 10, 5, 1)
    assert result.queries <= 3700
    assert largest_true_error(result.network, network) < 1e-7


def test_a_first_layer_wider_than_the_input_ends_at_its_sides():
    network = planted((5, 12, 4, 1), 0)
    result = rl.extract(network, GradientLayers(lines=3), gradients=True, rng=0, attempts=1)
    assert not result.ok
    assert result.evidence["attempts"].entries[0].stage in ("sides", "layers")


@pytest.mark.parametrize(("method", "share"), [(rl.DepthThree(), 0.85), (rl.AnyDepth(), 0.85)])
def test_methods_for_values_measure_gradients_that_are_answered_for_fewer_rows(method, share):
    network = planted((30, 12, 6, 1), 1)
    from_values = rl.extract(network, method, rng=0)
    found = rl.extract(network, method, gradients=True, rng=0)
    assert found.ok
    assert found.queries < share * from_values.queries
    assert largest_true_error(found.network, network) <= 2 * largest_true_error(from_values.network, network)


def test_settings_are_checked():
    with pytest.raises(InvalidInput, match="first_lines"):
        GradientLayers(first_lines=0)


def test_a_dead_target_is_no_crash():
    network = planted((10, 6, 4, 1), 0)
    constant = rl.ReLUNetwork([*network.weights[:-1], 0 * network.weights[-1]], network.biases)
    result = rl.extract(constant, GradientLayers(), gradients=True, rng=0)
    assert not result.ok
    assert result.outcome.slug in ("constant", "partial")


def test_three_hidden_layers_from_gradients_alone():
    network = planted((20, 15, 10, 5, 1), 500)
    found = rl.extract(network, gradients=True, rng=500)
    assert found.ok
    assert found.evidence["attempts"].entries[-1].method == "GradientLayers"
    assert found.queries < 2600
    assert largest_true_error(found.network, network) < 1e-9


def test_the_lines_of_depth_two_are_not_searched_again():
    network = planted((30, 12, 6, 1), 1)
    with rl.open_oracle(network, gradients=True) as oracle:
        found = rl.extract(oracle, rng=0)
    assert found.ok
    tried = found.evidence["attempts"].entries
    assert [each.method for each in tried] == ["DepthTwo", "GradientLayers"]
    assert found.queries < 1900


def test_a_search_without_end_is_cut_at_its_rows_a_crease():
    network = planted((30, 12, 6, 1), 1)
    result = rl.extract(
        network, GradientLayers(rows_a_crease=2, fewest_creases=1, starts=1), gradients=True, rng=0, attempts=1
    )
    assert not result.ok
    (attempt,) = result.evidence["attempts"].entries
    assert attempt.stage in ("lines", "layers")
    assert attempt.limit < attempt.number
    assert attempt.rows < 500
