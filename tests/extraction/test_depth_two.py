"""Exact extraction of one hidden layer: networks, errors and numbers of queries."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.testing import WORST_CASE, planted

# widths, most queries times outputs per parameter, largest output error
SHAPES = [
    ((784, 32, 1), 1.08, 1e-11),
    ((784, 64, 10), 1.4, 1e-11),
    ((64, 40, 1), 1.3, 1e-11),
    ((10, 100, 1), 1.6, 1e-9),
    ((30, 60, 2), 1.95, 1e-9),
    ((3, 5, 1), 12.0, 1e-9),
]


MORE_POINTS = 370  # that verification asks of a small network, beyond its share


def parameters(widths: tuple[int, ...]) -> int:
    d, h, m = widths
    return h * d + h + h * m + m


@pytest.mark.parametrize(
    ("widths", "most", "error"), sweep(SHAPES, fast=[s for s in SHAPES if s[0] != (10, 100, 1)], arguments=3)
)
def test_network_is_recovered(widths: tuple[int, ...], most: float, error: float, seed: int) -> None:
    true = planted(widths, 700 + seed, bias=0.5)
    oracle = rl.open_oracle(true)
    result = rl.extract(oracle, rng=seed)
    assert result.ok, result.evidence["failures"]
    assert result.queries == oracle.queries
    assert result.network is not None
    assert result.network.widths == widths
    assert rl.compare(result.network, true).output_error <= error
    assert (result.queries - MORE_POINTS) * widths[2] <= most * parameters(widths)


def test_weights_come_back_up_to_order_and_scale(seed: int) -> None:
    true = planted((40, 20, 3), seed)
    network = rl.extract(rl.open_oracle(true), rng=seed).raise_for_status().network
    assert network is not None
    assert network.skip is None
    assert rl.equivalent(network, true, tol=1e-8)


def test_skip_term_is_recovered() -> None:
    true = planted((30, 12, 2), 5, skip=True)
    network = rl.extract(rl.open_oracle(true), rng=0).raise_for_status().network
    assert network is not None
    assert network.skip is not None
    assert rl.compare(network, true).output_error < 1e-9


def test_very_wide_network_keeps_an_affine_term() -> None:
    true = planted((3, 60, 1), 1)
    network = rl.extract(rl.open_oracle(true), rng=0).raise_for_status().network
    assert network is not None
    assert network.skip is not None
    assert rl.compare(network, true).output_error < 1e-8


@pytest.mark.slow
def test_bundled_model_is_recovered_from_probabilities() -> None:
    """A look along a line may see no piece at all: nothing is divided by their number."""
    from reluctant.bundled import digits_model

    softmax = rl.defend(rl.open_oracle(digits_model(), precision="float64"), "softmax")
    assert rl.extract(rl.open_oracle(softmax, link="softmax"), rng=0).ok


def test_bundled_model_is_recovered() -> None:
    from reluctant.bundled import digits_model

    oracle = rl.open_oracle(digits_model(), precision="float64")
    network = rl.extract(oracle, rng=0).raise_for_status().network
    assert network is not None
    assert rl.equivalent(network, rl.ReLUNetwork.load(digits_model()), tol=1e-8)


def test_same_seed_same_network() -> None:
    true = planted((20, 15, 1), 2)
    first, second = (rl.extract(rl.open_oracle(true), rng=4).network for _ in range(2))
    assert first is not None
    assert second is not None
    for a, b in zip(first.weights, second.weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_output_index_looks_at_one_output() -> None:
    true = planted((20, 10, 4), 3)
    oracle = rl.open_oracle(true, output=2)
    network = rl.extract(oracle, rng=0).raise_for_status().network
    assert network is not None
    x = np.random.default_rng(0).standard_normal((100, 20))
    np.testing.assert_allclose(network(x), true(x)[:, [2]], atol=1e-9)


def test_softmax_through_its_link_is_recovered_where_it_does_not_saturate() -> None:
    true = planted((16, 12, 4), 3)

    def probabilities(x: np.ndarray) -> np.ndarray:
        values = true(x)
        powers = np.exp(values - values.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    oracle = rl.open_oracle(probabilities, dim=16, link="softmax")
    result = rl.extract(oracle, rng=0)
    assert result.ok
    assert result.evidence["inside"].domain.is_box
    x = np.random.default_rng(0).uniform(-1, 1, (500, 16))
    np.testing.assert_allclose(result.network(x), true(x) - true(x)[:, :1], rtol=0, atol=1e-9)
    far = rl.extract(oracle, rl.AnyDepth(), rng=0)
    assert far.outcome is rl.Outcome.OUT_OF_REACH  # far out probabilities underflow: said, not guessed


def test_few_digits_are_refused() -> None:
    true = planted((8, 5, 1), 53)
    result = rl.extract(rl.open_oracle(lambda x: true(x).astype(np.float32), dim=8), rl.DepthTwo(), rng=3)
    assert result.outcome is rl.Outcome.LOW_PRECISION


def test_one_input_is_enough() -> None:
    true = planted((1, 4, 1), 0)
    network = rl.extract(rl.open_oracle(true), rng=0).raise_for_status().network
    assert network is not None
    assert rl.compare(network, true).output_error < 1e-9


@pytest.mark.parametrize("widths", [(64, 40, 1), (40, 30, 3)])
def test_certificate_tells_the_errors(widths: tuple[int, ...], seed: int) -> None:
    true = planted(widths, 40 + seed)
    result = rl.extract(rl.open_oracle(true), rng=seed).raise_for_status()
    certificate = result.evidence["certificate"]
    matching = rl.compare(result.network, true).matching
    assert certificate.width == widths[1]
    assert matching is not None
    weights = np.abs(matching.network.weights[0] - matching.other.weights[0][matching.pairs[0]])
    largest = certificate.weight_errors.max() / np.linalg.norm(result.network.weights[0], axis=1).min()
    assert weights.max() < 10 * largest  # stated errors are no smaller than true ones,
    assert largest < 1e-9  # and small
    assert certificate.radius > 1e6


def test_a_target_that_is_flat_far_out_is_not_searched_without_end():
    stairs = WORST_CASE["stairs"](1002)
    result = rl.extract(rl.open_oracle(stairs, budget=20_000), rng=2)
    assert result.ok
    assert result.queries - result.rows["verify"].asked < 500
