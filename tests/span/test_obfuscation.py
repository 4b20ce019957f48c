"""Noise that a model cannot see: its norm, its invisibility, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reluctant as rl
from reluctant.errors import InvalidInput, NotRecovered
from reluctant.testing import in_float32, planted, trained_digits


@given(st.integers(2, 12), st.data())
def test_noise_is_invisible_and_as_large_as_asked(dim, data):
    rank = data.draw(st.integers(0, dim - 1))
    seed, scale = data.draw(st.integers(0, 2**32 - 1)), data.draw(st.floats(0, 1e4))
    rng = np.random.default_rng(seed)
    subspace = rl.Subspace.spanned_by(rng.standard_normal((rank, dim)))
    x = rng.standard_normal((4, dim))
    noise = rl.obfuscate(subspace, x, scale, rng=seed) - x
    np.testing.assert_allclose(np.linalg.norm(noise, axis=1), scale * np.linalg.norm(x, axis=1), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(noise @ subspace.basis.T, 0, atol=1e-10 * (1 + scale))


def test_the_same_seed_gives_the_same_noise():
    subspace, x = rl.Subspace(np.eye(4)[:1]), np.ones((2, 4))
    np.testing.assert_array_equal(rl.obfuscate(subspace, x, rng=1), rl.obfuscate(subspace, x, rng=1))
    assert (rl.obfuscate(subspace, x, rng=1) != rl.obfuscate(subspace, x, rng=2)).any()


def test_a_row_of_zeros_stays():
    np.testing.assert_array_equal(rl.obfuscate(rl.Subspace(np.eye(3)[:1]), np.zeros((1, 3))), 0)


def test_a_trained_classifier_does_not_see_it():
    pytest.importorskip("onnx")
    network, images = trained_digits(), np.random.default_rng(0).uniform(0, 1, (300, 64))
    oracle = rl.open_oracle(network)
    span = rl.recover_span(oracle, rng=0, reach=100.0)
    before = oracle.queries
    shown = rl.check_obfuscation(oracle, span, images, scale=100.0)
    assert oracle.queries - before == 600
    assert shown.same_label == 1.0
    assert shown.largest_change < 1e-7
    assert shown.invisible_share == pytest.approx(1 - span.rank / 64)
    assert 0 < shown.visible_share < 1
    assert "100.00% of 300" in str(shown)
    single = rl.open_oracle(in_float32(network), dim=64)
    span = rl.recover_span(single, rng=0, reach=100.0)
    assert rl.check_obfuscation(single, span, images, scale=100.0).same_label >= 0.998


def test_visible_noise_is_told():
    network = planted((10, 4, 1), 0)
    wrong = rl.Subspace(np.eye(10)[:4])
    shown = rl.check_obfuscation(rl.open_oracle(network), wrong, np.ones((20, 10)), 10.0)
    assert shown.largest_change > 1e-2


@pytest.mark.parametrize(
    ("span", "x", "scale", "message"),
    [
        (rl.Subspace(np.eye(3)), np.ones((1, 3)), 1.0, "null space"),
        (rl.Subspace(np.eye(3)[:1]), np.ones((1, 4)), 1.0, "x: got shape"),
        (rl.Subspace(np.eye(3)[:1]), np.ones((1, 3)), -1.0, "scale"),
        ("span.npz", np.ones((1, 3)), 1.0, "span: got str"),
    ],
)
def test_what_is_refused(span, x, scale, message):
    with pytest.raises(InvalidInput, match=message):
        rl.obfuscate(span, x, scale)


def test_a_partial_span_is_refused():
    partial = rl.Span(rl.Outcome.SPAN_PARTIAL, rl.Subspace(np.eye(3)[:1]), {})
    with pytest.raises(NotRecovered) as raised:
        rl.obfuscate(partial, np.ones((1, 3)))
    assert raised.value.result is partial


def test_labels_are_compared_as_labels(seed):
    """A wrong span changes the class of many inputs: told for class numbers, counted from 0 or from 1, and for one."""
    network, x = planted((20, 6, 8, 5), 1), np.random.default_rng(seed).standard_normal((500, 20))
    wrong = rl.Subspace(np.eye(20)[:3])
    rows = rl.obfuscate(wrong, x, 10.0, rng=seed)
    true = (network(x).argmax(axis=1) == network(rows).argmax(axis=1)).mean()
    for first in (0, 1):
        oracle = rl.open_oracle(lambda x, first=first: network(x).argmax(axis=1) + first, dim=20)
        assert rl.check_obfuscation(oracle, wrong, x, 10.0, rng=seed).same_label == pytest.approx(true)
    one = planted((20, 6, 8, 1), 1)
    true = ((one(x) > 0) == (one(rows) > 0)).mean()
    sigmoid = rl.open_oracle(lambda x: 1 / (1 + np.exp(-one(x))), dim=20)
    assert rl.check_obfuscation(sigmoid, wrong, x, 10.0, rng=seed).same_label == pytest.approx(true)
    level = rl.check_obfuscation(rl.open_oracle(one), wrong, x, 10.0, rng=seed, threshold=0.0)
    assert level.same_label == pytest.approx(true)


def with_sleeper(bias: float) -> rl.ReLUNetwork:
    network = planted((20, 5, 1), 4)
    weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
    weights[0][0] /= np.linalg.norm(weights[0][0])
    biases[0][0] = bias
    return rl.ReLUNetwork(weights, biases)


def test_noise_is_no_larger_than_the_span_was_followed():
    """A neuron of bias -20 sleeps within reach=3 and wakes up at ten times the norm."""
    network, x = with_sleeper(-20.0), np.random.default_rng(0).standard_normal((200, 20))
    oracle = rl.open_oracle(network)
    near = rl.recover_span(oracle, rng=0, reach=3.0)
    assert (near.ok, near.rank) == (True, 4)
    assert near.followed == pytest.approx(3 * np.sqrt(20))
    with pytest.raises(InvalidInput, match="followed no farther"):
        rl.obfuscate(near, x, 10.0)
    assert rl.check_obfuscation(oracle, near.subspace, x, 10.0).largest_change > 1e-3
    assert rl.check_obfuscation(oracle, near, x).largest_change < 1e-9  # as far as it was followed
    far = rl.recover_span(oracle, rng=0, reach=30.0)
    assert far.rank == 5
    assert rl.check_obfuscation(oracle, far, x, 10.0).largest_change < 1e-9


def test_noise_of_ten_times_the_norm_needs_no_setting():
    network, x = planted((20, 5, 1), 4), np.random.default_rng(0).standard_normal((200, 20))
    span = rl.recover_span(network, rng=0)
    assert rl.check_obfuscation(network, span, x, 10.0).largest_change < 1e-9


def test_noise_does_not_leave_the_domain_silently():
    network = planted((20, 4, 5, 3), 1)
    oracle = rl.open_oracle(network, domain=(0, 1))
    span = rl.recover_span(oracle, rng=0)
    assert span.ok
    x = np.full((5, 20), 0.5)
    with pytest.raises(InvalidInput, match="leaves"):
        rl.obfuscate(span, x, 1.0)
    assert rl.check_obfuscation(oracle, span, x, 0.1).largest_change < 1e-9
