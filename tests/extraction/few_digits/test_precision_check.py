"""Verification at a target's own precision: what is wrong by more than the noise does not pass."""

from __future__ import annotations

import numpy as np
import pytest
from targets import in_float32

import reluctant as rl
from reluctant.networks.symmetry import match
from reluctant.oracles.open import as_opened
from reluctant.testing import planted
from reluctant.verification.precision import Precision, PrecisionCheck, examine_precision

NOISE = Precision(np.array([3e-7]), np.array([1e-7]))


def check(network: rl.ReLUNetwork, target: rl.Oracle, seed: int) -> PrecisionCheck:
    return examine_precision(as_opened(target), network, NOISE, np.random.default_rng(seed), spent=0)


def parts(network: rl.ReLUNetwork) -> tuple[np.ndarray, ...]:
    (w, a), (b, c) = network.weights, network.biases
    return w.copy(), b.copy(), a.copy(), c.copy()


def first_layer_errors(network: rl.ReLUNetwork, true: rl.ReLUNetwork) -> tuple[float, float]:
    """The largest of a weight and of a bias, output weights being of norm one."""
    matching = match(network, true)
    assert matching is not None
    found, other = (
        np.column_stack([net.weights[0], net.biases[0]]) * np.linalg.norm(net.weights[1], axis=0)[:, None]
        for net in (matching.network, matching.other)
    )
    errors = np.abs(found - other[matching.pairs[0]]).max(axis=0)
    return float(errors[:-1].max()), float(errors[-1])


def test_standard_errors_are_not_called_bounds() -> None:
    target, true = in_float32(planted((12, 6, 1), 3))
    kinds = (target, lambda x: np.round(true(x), 4), true)
    found = [rl.extract(rl.open_oracle(kind, dim=12)) for kind in kinds]
    noise = (2e-7, 1e-4)  # of an answer
    told = [str(each.evidence["certificate"]) for each in found]
    assert ["standard error" in words for words in told] == [True, True, False]
    assert ["at worst" in words for words in told] == [False, False, True]
    assert all("tens of times that), biases to about the noise of an answer" in words for words in told[:2])
    for each, sd in zip(found[:2], noise, strict=True):
        weights, biases = first_layer_errors(each.network, true)
        assert weights < 100 * each.evidence["certificate"].weight_errors.max()
        assert biases < 3 * sd


@pytest.mark.parametrize("fault", ["none", "missing", "merged", "wrong sign"])
def test_faults_are_seen(fault: str, seed: int) -> None:
    true = planted((12, 10, 1), 80 + seed)
    w, b, a, c = parts(true)
    w[1], b[1] = w[0] + 1e-3, b[0]  # a close pair
    true = rl.ReLUNetwork([w, a], [b, c])
    target, true = in_float32(true)
    w, b, a, c = parts(true)
    if fault == "missing":
        w, b, a = w[:-1], b[:-1], a[:, :-1]
    elif fault == "merged":
        a[:, 0] += a[:, 1]
        w, b, a = np.delete(w, 1, 0), np.delete(b, 1), np.delete(a, 1, 1)
    elif fault == "wrong sign":
        w[3], b[3] = -w[3], -b[3]
    found = check(rl.ReLUNetwork([w, a], [b, c]), rl.open_oracle(target, dim=12), seed)
    assert found.ok is (fault == "none")
    assert str(found)
    assert found.to_dict()["ok"] is found.ok


def test_a_crease_far_out_is_not_forgotten(seed: int) -> None:
    true = planted((12, 10, 1), 80 + seed)
    w, b, a, c = parts(true)
    w[-1] /= np.linalg.norm(w[-1])
    b[-1] = -15 * np.sqrt(12)  # off wherever inputs of ten times the usual size are
    target, true = in_float32(rl.ReLUNetwork([w, a], [b, c]))
    oracle = rl.open_oracle(target, dim=12)
    w, b, a, c = parts(true)
    assert check(true, oracle, seed).ok
    without = check(rl.ReLUNetwork([w[:-1], a[:, :-1]], [b[:-1], c]), oracle, seed)
    assert [group.name for group in without.groups if group.rms > 3] == ["random, scale 100"]
    assert not without.ok


def test_two_parallel_creases_are_not_taken_for_one(seed: int) -> None:
    true = planted((12, 10, 1), 80 + seed)
    w, b, a, c = parts(true)
    w[1], b[1], a[:, 1] = w[0], b[0] + 2e-3 * np.linalg.norm(w[0]), -0.2 * a[:, 0]
    target, true = in_float32(rl.ReLUNetwork([w, a], [b, c]))
    oracle = rl.open_oracle(target, dim=12)
    assert check(true, oracle, seed).ok
    w, b, a, c = parts(true)
    both = a[:, 0] + a[:, 1]
    b[0] = ((a[:, 0] * b[0] + a[:, 1] * b[1]) / both).item()  # right on either side of the two
    a[:, 0] = both
    merged = check(rl.ReLUNetwork([np.delete(w, 1, 0), np.delete(a, 1, 1)], [np.delete(b, 1), c]), oracle, seed)
    assert [group.name for group in merged.groups if group.largest > 15] == ["across creases"]
    assert not merged.ok
