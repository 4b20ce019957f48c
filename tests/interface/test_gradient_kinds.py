"""Answers that are no gradients are recognised and named; extraction goes on with values."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.interface.gradient_kinds import GradientKind, read_gradients, trusted
from reluctant.testing import planted

TRUE = planted((20, 15, 2), 1)
OTHER = planted((20, 15, 2), 2)


def averaged(rng_of):
    def slopes(x):
        rng = rng_of()
        return np.mean([TRUE.gradients(x + 0.1 * rng.standard_normal(x.shape)) for _ in range(10)], axis=0)

    return slopes


def integrated(x):
    shares = (np.arange(200) + 0.5) / 200
    return np.mean([TRUE.gradients(share * x) for share in shares], axis=0) * x[:, None]


FRESH = np.random.default_rng(3)
ANSWERS = {
    GradientKind.GRADIENT: TRUE.gradients,
    GradientKind.TIMES_INPUT: lambda x: TRUE.gradients(x) * x[:, None],
    GradientKind.ABSOLUTE: lambda x: np.abs(TRUE.gradients(x)),
    GradientKind.SIGN: lambda x: np.sign(TRUE.gradients(x)),
    GradientKind.SCALED: lambda x: TRUE.gradients(x) / np.linalg.norm(TRUE.gradients(x), axis=2, keepdims=True),
    GradientKind.INTEGRATED: integrated,
    GradientKind.SMOOTHED: averaged(lambda: np.random.default_rng(0)),
    GradientKind.NOISY: averaged(lambda: FRESH),
    GradientKind.OTHER: OTHER.gradients,
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ANSWERS)
def test_kinds_are_told_apart(kind, seed):
    oracle = rl.open_oracle(TRUE, gradients=ANSWERS[kind])
    reading = read_gradients(oracle, np.random.default_rng(seed))
    assert reading.kind is kind
    assert (reading.diagnosis is None) == (kind is GradientKind.GRADIENT)
    assert kind is GradientKind.GRADIENT or str(reading.diagnosis)
    assert oracle.queries <= (8 if kind is GradientKind.GRADIENT else 49)


@pytest.mark.parametrize("decimals", [1, 2, 3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_gradients_of_few_decimals_are_no_averages(decimals, seed):
    oracle = rl.open_oracle(TRUE, gradients=lambda x: np.round(TRUE.gradients(x), decimals))
    assert read_gradients(oracle, np.random.default_rng(seed)).kind is GradientKind.ROUNDED


def test_noise_alone_is_another_function():
    oracle = rl.open_oracle(TRUE, gradients=lambda x: FRESH.standard_normal((len(x), 2, 20)))
    assert read_gradients(oracle, np.random.default_rng(0)).kind is GradientKind.OTHER


@pytest.mark.parametrize("network", [TRUE, planted((30, 10, 10, 1), 3), planted((1, 3, 1), 3), planted((5, 2), 3)])
def test_true_gradients_are_trusted(network):
    def single(x):
        return network(x).astype(np.float32)

    for target in (network, single):
        oracle = rl.open_oracle(target, dim=network.dim, gradients=network.gradients)
        assert trusted(oracle, np.random.default_rng(0))[0].explained is not None


def test_extraction_goes_on_with_values():
    small = planted((5, 4, 1), 1)
    result = rl.extract(small, gradients=lambda x: np.abs(small.gradients(x)), rng=0)
    assert result.ok
    assert result.evidence["gradients"].slug == "explanation-absolute"
    divided = rl.extract(small, gradients=lambda x: small.gradients(x) * x[:, None], rng=0)
    assert "explanation='input-times-gradient'" in str(divided.evidence["gradients"])


def undefined_beside_kinks(network, share):
    """Gradients that are NaN where a unit of any hidden layer is so close to its kink."""

    def gradients(rows):
        found = network.gradients(rows).copy()
        close = [np.abs(values) <= share for values in network.preactivations(rows)[: network.depth - 1]]
        found[np.concatenate(close, axis=1).any(axis=1)] = np.nan
        return found

    return gradients


@pytest.mark.parametrize("share", [1e-9, 1e-3])
@pytest.mark.parametrize("widths", [(8, 5, 1), (9, 6, 4, 2)])
def test_gradients_that_are_undefined_at_kinks_leave_values_alone(widths, share):
    network = planted(widths, 1)
    found = rl.extract(network, gradients=undefined_beside_kinks(network, share), rng=0)
    assert found.ok
    assert found.network.widths == widths
    assert found.evidence["gradients"].slug == "explanation-undefined"


def test_a_span_and_a_flip_do_without_undefined_gradients():
    network = planted((30, 6, 4, 1), 1)
    known = undefined_beside_kinks(network, 0.1)
    span = rl.recover_span(network, gradients=known, rng=0)
    assert span.ok
    assert span.rank == 6
    assert span.evidence["gradients are"].slug == "explanation-undefined"
    x = np.random.default_rng(0).standard_normal(30)
    never = rl.flip_sign(network, x, gradients=lambda rows: np.nan * network.gradients(rows))
    assert never.outcome is rl.flip_sign(network, x, dim=30).outcome


def test_gradients_that_are_no_numbers_are_named():
    small = planted((5, 4, 1), 1)
    result = rl.extract(small, gradients=lambda x: np.nan * small.gradients(x), rng=0)
    assert result.ok
    assert result.evidence["gradients"].slug == "explanation-not-finite"


@pytest.mark.parametrize("widths", [(8, 5, 1), (9, 6, 4, 2)])
def test_gradients_with_fewer_digits_than_values_are_named(widths):
    network = planted(widths, 1)
    result = rl.extract(network, gradients=lambda x: network.gradients(x).astype(np.float32), rng=0)
    assert result.ok
    assert result.evidence["gradients"].slug == "explanation-rounded"


def test_gradients_of_the_wrong_shape_leave_values_alone():
    def transposed(x):
        return np.swapaxes(TRUE.gradients(x), 1, 2)

    result = rl.extract(TRUE, gradients=transposed, rng=0)
    assert result.ok
    assert "got an answer of shape (4, 20, 2) for 4 rows, expected (4, 2, 20)" in str(result.evidence["gradients"])
    span = rl.recover_span(TRUE, gradients=transposed, rng=0)
    assert span.ok
    assert span.evidence["gradients are"].slug == "explanation-invalid"
    assert rl.flip_sign(TRUE, np.ones(20), gradients=transposed).ok


def test_zeros_are_no_signs():
    oracle = rl.open_oracle(TRUE, gradients=lambda x: 0 * TRUE.gradients(x))
    assert read_gradients(oracle, np.random.default_rng(0)).kind is GradientKind.OTHER
