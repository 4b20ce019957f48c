"""Networks of any depth, end to end: what is found, how exactly, and for how many queries."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sweeps import sweep
from threadpoolctl import threadpool_info, threadpool_limits

import reluctant as rl
from reluctant.extraction import AnyDepth, LayerLimits
from reluctant.testing import largest_true_error, planted

# widths, most queries per parameter
SHAPES = [
    ((5, 8, 10, 1), 90.0),
    ((10, 15, 15, 1), 60.0),
    ((5, 8, 10, 3), 90.0),
    ((10, 7, 4, 2, 1), 100.0),
    ((20, 15, 10, 5, 1), 80.0),
    ((6, 9, 2), 80.0),
]
SMALL = [((6, 9, 2), 80.0)]
ERROR = 1e-9


@cache
def recovered() -> tuple[rl.ReLUNetwork, rl.Result]:
    """One network of two hidden layers and its extraction, for all that read it."""
    true = planted((5, 8, 6, 2), 11, bias=0.1)
    return true, rl.extract(rl.open_oracle(true), AnyDepth(), rng=0).raise_for_status()


@pytest.mark.parametrize(("widths", "most"), sweep(SHAPES, fast=SMALL, arguments=2))
def test_network_is_recovered(widths: tuple[int, ...], most: float, seed: int) -> None:
    true = planted(widths, 900 + seed, bias=0.1)
    oracle = rl.open_oracle(true)
    result = rl.extract(oracle, AnyDepth(), rng=seed)
    assert result.ok, result.evidence["failures"]
    assert result.queries == oracle.queries
    assert rl.compare(result.network, true).output_error <= ERROR
    assert result.queries <= most * true.parameters


def test_weights_come_back_up_to_order_and_scale() -> None:
    true, result = recovered()
    assert result.network is not None
    assert result.network.is_chain
    assert rl.equivalent(result.network, true, tol=1e-8)


def test_inputs_that_do_not_matter_are_left_out() -> None:
    true = planted((60, 6, 4, 1), 3, bias=0.1)
    result = rl.extract(rl.open_oracle(true), AnyDepth(), rng=0).raise_for_status()
    assert result.rows["row space"].queries < 2 * 6 * 60
    assert rl.compare(result.network, true).output_error <= ERROR


def test_affine_target() -> None:
    w = np.random.default_rng(0).standard_normal((2, 5))
    network = rl.extract(rl.open_oracle(lambda x: x @ w.T + 1, dim=5), AnyDepth(), rng=0).raise_for_status().network
    assert network is not None
    np.testing.assert_allclose(network(np.eye(5)), w.T + 1, atol=1e-12)


def test_same_seed_same_network() -> None:
    true, first = recovered()
    second = rl.extract(rl.open_oracle(true), AnyDepth(), rng=0)
    assert first.network is not None
    assert second.network is not None
    for a, b in zip(first.network.weights, second.network.weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_cannot_be_followed_is_said() -> None:
    """One network on one side of a hyperplane and another one on the other jumps there: no network does."""
    one, other = planted((3, 4, 3, 1), 0), planted((3, 4, 3, 1), 1)

    def target(x: np.ndarray) -> np.ndarray:
        return np.where(x[:, :1] > 0, one(x), other(x))

    result = rl.extract(rl.open_oracle(target, dim=3), AnyDepth(), rng=0, attempts=1)
    assert result.outcome in {rl.Outcome.PARTIAL, rl.Outcome.UNVERIFIED}
    assert len(result.evidence["failures"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, 17, 18])
def test_open_coefficients_do_not_pass_unseen(seed: int) -> None:
    """A weight that plays a part for one input in 10 000 was any number; these came out wrong there, and verified."""
    true = planted((20, 15, 10, 5, 1), 200_000 + seed, bias=0.3)
    result = rl.extract(rl.open_oracle(true), rng=seed)
    rows = np.random.default_rng(0).standard_normal((100_000, 20)) * np.repeat([1.0, 10.0], 50_000)[:, None]
    if result.ok:
        assert np.abs(result.network(rows) - true(rows)).max() < 1e-7 * true(rows).std()


def test_certificate_has_all_neurons() -> None:
    certificate = recovered()[1].evidence["certificate"]
    assert certificate.width == 14
    assert certificate.sums == 0
    assert certificate.weight_errors.max() < 1e-12
    assert "14 neurons" in str(certificate)


def test_a_search_without_end_is_given_up_with_the_first_layer() -> None:
    true = planted((5, 8, 8, 8, 1), 3, bias=0.1)
    method = AnyDepth(search=LayerLimits(followed=12))
    result = rl.extract(rl.open_oracle(true), method, rng=0, attempts=1)
    assert result.outcome is rl.Outcome.PARTIAL
    assert result.network is not None
    assert result.network.widths[:2] == (5, 8)
    end = result.evidence["attempts"].entries[0]
    assert end.number >= end.limit
    top = result.evidence["fitted top"]
    assert (top.layers, top.rows) == (1, result.rows["fitted top"].queries)
    rows = np.random.default_rng(1).standard_normal((4000, 5))
    off = np.abs(result.network(rows) - true(rows)).max(axis=1) / true(rows).std()
    assert abs(np.median(off) - top.median_error) < 0.5 * top.median_error  # fitted, and its error is measured
    assert 0.0 <= top.right < 1.0


def test_creases_that_are_followed_grow_with_the_neurons_that_they_are_of() -> None:
    true = planted((5, 8, 8, 8, 1), 3, bias=0.1)
    result = rl.extract(rl.open_oracle(true), AnyDepth(search=LayerLimits(followed_each=1)), rng=0, attempts=1)
    end = result.evidence["attempts"].entries[0]
    assert result.outcome is rl.Outcome.PARTIAL
    assert end.number > end.limit
    assert 8 + 5 <= end.limit <= sum(true.widths[1:-1]) + 5


def test_inputs_that_spoke_against_a_network_are_among_those_it_has_to_explain() -> None:
    true, asked = planted((6, 5, 4, 1), 2, bias=0.1), list[np.ndarray]()

    def target(rows: np.ndarray) -> np.ndarray:
        asked.append(rows)
        return true(rows)

    through = np.random.default_rng(8).standard_normal((3, 6))
    result = rl.extract(rl.open_oracle(target, dim=6), AnyDepth(through=through), rng=0)
    assert result.ok
    distances = np.linalg.norm(np.concatenate(asked)[:, None] - through, axis=2)
    assert (distances.min(axis=0) < 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("widths", [(5, 8, 10, 1), (10, 15, 15, 1), (20, 15, 10, 5, 1), (784, 16, 16, 16, 1)])
def test_most_networks_are_recovered_and_none_is_wrong(widths: tuple[int, ...]) -> None:
    networks = 3 if widths[0] > 100 else 20
    recovered = 0
    for seed in range(networks):
        true = planted(widths, 40_000 + seed, bias=0.1)
        result = rl.extract(rl.open_oracle(true), AnyDepth(), rng=seed)
        recovered += result.ok
        assert not result.ok or largest_true_error(result.network, true) < 1e-6
    assert recovered >= (0.95 if len(widths) == 4 else 0.8) * networks


def test_a_third_layer_that_agrees_on_no_sides_sends_the_search_below_once_more() -> None:
    """Few lines leave a neuron of the second layer out; the third one is then at odds."""
    true = planted((12, 8, 8, 8, 2), 423)

    def recovered(**limits: int) -> bool:
        method = AnyDepth(first_lines=3, search=LayerLimits(quiet_lines=1, followed=150, **limits))
        return rl.extract(rl.open_oracle(true), method, rng=423, attempts=1).ok

    assert recovered()
    assert not recovered(repairs=0)


def test_the_search_computes_in_one_thread() -> None:
    """Its systems are small: more threads wait for each other, and on a busy machine that is most of the time."""
    true, seen = planted((8, 6, 4, 1), 0), set[int]()

    def target(rows: np.ndarray) -> np.ndarray:
        seen.update(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return true(rows)

    with threadpool_limits(limits=2, user_api="blas"):
        oracle = rl.open_oracle(target, dim=8)
        target(np.zeros((1, 8)))
        if 1 in seen:
            pytest.skip("BLAS has one thread here in any case")
        seen.clear()
        rl.extract(oracle, AnyDepth(search=LayerLimits(layers=1)), attempts=1)
    assert 1 in seen
