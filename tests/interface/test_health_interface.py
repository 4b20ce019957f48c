"""Where the interface ends: far inputs, clipped inputs, failing targets, and domains that are never left."""

from __future__ import annotations

import numpy as np
import pytest
from health_targets import DIM, Recording, network

from reluctant import Domain, check_health, open_oracle
from reluctant.errors import InvalidInput, TargetError, TranscriptMismatch
from reluctant.interface import Shape
from reluctant.testing import planted
from reluctant.testing.faults import FAULTS

FAR = 1e3


def largest(x: np.ndarray) -> np.ndarray:
    return np.abs(x).max(axis=1)


def test_far_inputs_answered_with_nan(seed):
    good = network(seed)
    health = check_health(open_oracle(lambda x: np.where(largest(x) > FAR, np.nan, good(x)[:, 0]), dim=DIM))
    assert health.largest_scale == 100
    assert health.shape is Shape.PIECEWISE_LINEAR
    assert health.refusal is None
    assert health.nonfinite == 36  # six lines at scale 1e4 with two steps both ways, and at 1e6
    assert health.noise.relative == 0
    assert {"scale": 100, "linked": False} in [each.fields for each in health.findings()]


def test_far_inputs_that_raise(seed):
    good = network(seed)

    def target(x):
        if largest(x).max() > FAR:
            raise ValueError("out of range")
        return good(x)

    health = check_health(open_oracle(target, dim=DIM))
    assert health.largest_scale == 100
    assert health.refusal is None


def test_a_target_that_raises_at_once_is_an_error():
    good = network(0)
    answered = iter([True])

    def target(x):
        if next(answered, False):
            return good(x)
        raise RuntimeError("gone")

    with pytest.raises(TargetError, match="gone"):
        check_health(open_oracle(target, dim=DIM))


def test_clipped_inputs(seed):
    small = planted((4, 30, 1), seed)
    health = check_health(open_oracle(lambda x: small(np.clip(x, -0.5, 0.5)), dim=4), rng=0)
    assert health.constant_beyond == 100
    assert {"scale": 100, "why": "clipped"} in [each.fields for each in health.findings()]


@pytest.mark.parametrize("fault", ["answers NaN", "answers inf"])
def test_non_finite_answers_are_findings(fault, seed):
    health = check_health(open_oracle(FAULTS[fault](network(seed)), dim=DIM))
    assert health.nonfinite == health.queries
    assert health.largest_scale == 1
    assert np.isnan(health.noise.absolute)


DOMAINS = {
    "a box": (0, 1),
    "an orthant": (0, np.inf),
    "bounded above": (-np.inf, 2.0),
    "a box off the origin": (5.0, 5.5),
    "bounds by coordinate": (np.zeros(DIM), np.linspace(1, 3, DIM)),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_no_row_outside_the_domain_is_asked(name, seed):
    low, high = DOMAINS[name]
    target = Recording(network(seed))
    health = check_health(open_oracle(target, dim=DIM, domain=(low, high)), rng=seed)
    assert ((target.rows >= low) & (target.rows <= high)).all()
    assert len(target.rows) == health.queries + 1
    assert health.largest_scale is None
    assert health.constant_beyond is None


@pytest.mark.parametrize("name", ["a box", "an orthant"])
def test_a_network_in_its_domain_is_healthy(name, seed):
    health = check_health(open_oracle(network(seed), domain=DOMAINS[name]))
    assert health.refusal is None


def test_the_domain_may_be_an_object(seed):
    target = Recording(network(seed))
    check_health(open_oracle(target, dim=DIM, domain=Domain(0, 1)))
    assert target.rows.min() >= 0


@pytest.mark.parametrize("lines", [1, 0, -3])
def test_too_few_lines_are_refused(lines):
    with pytest.raises(InvalidInput, match=rf"^lines: got {lines}, expected at least 2"):
        check_health(open_oracle(network(0)), lines=lines)


@pytest.mark.parametrize("rng", ["seed", 1.5, True, -1])
def test_a_bad_rng_is_refused(rng):
    with pytest.raises(InvalidInput, match=r"^rng: got "):
        check_health(open_oracle(network(0)), rng=rng)


def test_another_seed_on_the_same_transcript_is_refused(tmp_path):
    with open_oracle(network(0), transcript=tmp_path) as oracle:
        check_health(oracle, rng=0)
        with pytest.raises(TranscriptMismatch):
            check_health(oracle, rng=1)
