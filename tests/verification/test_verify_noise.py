"""A target whose noise hides every difference is said to be so, not to agree."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from reluctant import ReLUNetwork, extract, open_oracle, verify
from reluctant.testing import planted
from reluctant.testing.faults import noisy
from reluctant.verification.agreement import GroupError, Verification
from reluctant.verification.comparison import MOST_TOLERANCE, AcceptedError
from reluctant.verification.points import PointCounts


@pytest.mark.parametrize("sd", [0.01, 0.1, 3.0])
def test_noise_that_hides_everything_decides_nothing(sd, seed):
    true = planted((10, 8, 1), seed)
    wrong = ReLUNetwork([true.weights[0], 1.05 * true.weights[1]], true.biases)
    found = verify(open_oracle(noisy(true, sd), dim=10), wrong)
    assert not found.ok
    assert "decides nothing" in str(found) or "NOT agree" in str(found)


def test_answers_beside_a_crease_may_be_handed_in():
    from reluctant.oracles.open import as_opened
    from reluctant.verification.agreement import HeldOutRows, examine

    true = planted((6, 4, 1), 0)
    rows = np.random.default_rng(0).standard_normal((5, 6))
    oracle = as_opened(open_oracle(true))
    compare = partial(examine, oracle, true, counts=PointCounts(), accepted=AcceptedError(tol=1e-9))
    good = compare(rng=np.random.default_rng(1), held_out=HeldOutRows(rows, true(rows)))
    bad = compare(rng=np.random.default_rng(1), held_out=HeldOutRows(rows, true(rows) + 1))
    assert good.ok
    assert not bad.ok
    assert good.queries == 5 * 64


def test_what_was_decided_is_not_said_to_be_undecided():
    """Few digits are held against a tolerance of their own."""
    true = planted((10, 4, 1))
    found = extract(open_oracle(lambda x: np.round(true(x), 2), dim=10))
    verification = found.evidence["verification"]
    assert verification.ok
    assert verification.tol > MOST_TOLERANCE
    assert "agrees" in str(verification)


def test_an_error_within_the_tolerance_of_typical_inputs_is_told_with_its_own():
    """Far out the output deviates more, and the same rounding is a smaller part of it."""
    true = planted((6, 4, 1), 0)
    wrong = ReLUNetwork([1.001 * true.weights[0], true.weights[1]], true.biases)
    found = verify(open_oracle(lambda x: np.round(true(x), 3), dim=6), wrong)
    assert not found.ok
    assert found.max_error <= found.tol
    error, tol = found.exceeded
    assert tol < error <= found.tol
    assert f"elsewhere an error of {error:.1e} is beyond its own, {tol:.1e})" in str(found)


@pytest.mark.parametrize("number_format", [np.float16, np.float32])
@pytest.mark.parametrize("dim", [1, 10])
def test_a_number_format_is_not_taken_for_another_network(number_format, dim, seed):
    """Half the answers of one neuron are the same, and those far out are rounded more than those nearby."""
    one = planted((dim, 1, 1), seed)
    shifted = ReLUNetwork(one.weights, [one.biases[0], one.biases[1] * 0])
    for true in (one, shifted, planted((dim, 5, 2), seed)):
        found = verify(open_oracle(lambda x, true=true: true(x).astype(number_format), dim=dim), true, rng=seed)
        assert found.ok or found.undecided, found


def test_a_constant_that_fits_any_format_is_held_to_all_digits():
    one, other = (ReLUNetwork([np.zeros((1, 4))], [np.array([value])]) for value in (1.0, 1.001))
    assert verify(open_oracle(one), one).ok
    assert not verify(open_oracle(one), other).ok


def test_what_was_seen_beyond_the_tolerance_is_not_said_to_be_rare() -> None:
    """Where answers have fewer digits more is accepted: inputs that err by so much are not those few."""
    groups = (GroupError("random, scale 1", 64, 3e-6, 1e-7),)
    found = Verification(True, 3e-6, 1e-7, 1.5e-8, 64, groups, 0, 0.046, 0.95, 64)
    assert found.bound == 3e-6
    assert "3.0e-06" in str(found)
    within = replace(found, max_error=1e-9)
    assert within.bound == 1.5e-8
