"""The range that inputs are clipped to is found where there is one, and none is made up."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from reluctant import DepthTwo, Outcome, check_health, extract, learn, open_oracle
from reluctant.interface.reach import _Probes, clipped_range
from reluctant.testing import planted

DIM = 6
ODD = (-0.123456789, 2.718281828)


def clipped(low, high, seed=0, digits=lambda y: y):
    network = planted((DIM, 8, 1), seed)
    return lambda x: digits(network(np.clip(x, low, high) / max(1.0, high / 8)))


CLIPPED = {
    "images": (clipped(0, 1), 0, 1),
    "around zero": (clipped(-1, 1), -1, 1),
    "bytes": (clipped(0, 255), 0, 255),
    "odd bounds": (clipped(*ODD), *ODD),
    "float32": (clipped(0, 1, digits=np.float32), 0, 1),
    "three decimals": (clipped(0, 1, digits=lambda y: np.round(y, 3)), 0, 1),
}


def found_range(target, dim=DIM):
    oracle = open_oracle(target, dim=dim)
    health, before = check_health(oracle), oracle.queries
    box = clipped_range(oracle, health, np.random.default_rng(0))
    assert oracle.queries - before <= 1002
    return box


@pytest.mark.parametrize("name", CLIPPED)
def test_the_range_is_found(name):
    target, low, high = CLIPPED[name]
    box = found_range(target)
    told = (-0.12345, 2.71828) if (low, high) == ODD else (low, high)  # no digits that are not known, and inside
    assert (box.low, box.high) == told


UNCLIPPED = {
    "a network": planted((DIM, 8, 1), 0),
    "one step, not along an axis": lambda x: np.clip(x @ np.linspace(-1, 2, DIM), 0, 1),
    "a bump": lambda x: np.maximum(0, 1 - np.abs(x @ np.linspace(-1, 2, DIM) - 1)),
    "a sigmoid": lambda x: np.tanh(planted((DIM, 8, 1), 0)(x)),
}


@pytest.mark.parametrize("name", UNCLIPPED)
def test_no_range_is_made_up(name):
    assert found_range(UNCLIPPED[name]) is None


def test_certain_answers_are_infinite_behind_a_link_and_equal():
    oracle = open_oracle(CLIPPED["images"][0], dim=DIM)
    probes = _Probes(oracle, np.zeros((2, DIM)), np.ones((2, DIM), dtype=bool), noise=1e-9)
    answers, far = np.full((2, 3, 1), np.inf), np.full((2, 1), np.inf)
    answers[0, 1] = 1.0
    assert probes._last_other(answers, far).tolist() == [1, -1]


def bounded(dim, seed):
    """Answers that are clipped, and inputs that are not."""
    network = planted((dim, 4, 1), seed)
    middle = network(np.zeros((1, dim)))
    return lambda x: np.clip(network(x) - middle, -0.5, 0.5)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_no_range_is_made_up_of_few_inputs(dim):
    assert not [seed for seed in range(20) if found_range(bounded(dim, seed), dim) is not None]


def test_the_same_choice_of_inputs_again_is_no_second_witness(monkeypatch):
    """One direction has one bound, however often it is asked."""
    monkeypatch.setattr("reluctant.interface.reach.MOVED", 1.0)
    assert found_range(clipped(0, 1)) is None


def test_digits_that_were_too_few_are_the_reason_and_no_range_is_looked_for():
    target = clipped(0, 1, digits=lambda y: np.round(y, 4))
    found = extract(open_oracle(target, dim=DIM), attempts=1)
    assert found.outcome is Outcome.LOW_PRECISION
    assert found.diagnosis.slug == "too-few-digits"
    assert "reach" not in found.rows


def test_where_few_digits_would_do_inside_the_range_it_is_named():
    """In float32 the method for few digits fails on bounds that are no creases, and not for its digits."""
    target = clipped(-4, 4, digits=np.float32)
    found = extract(open_oracle(target, dim=DIM), attempts=1)
    assert found.outcome is Outcome.LOW_PRECISION
    assert found.evidence["clipped"] == (-4, 4)
    assert (found.diagnosis.slug, found.diagnosis.fields["outcome"]) == ("clipped-inputs", "low-precision")
    assert extract(open_oracle(target, dim=DIM, domain=(-4, 4))).ok


@pytest.mark.parametrize("method", [partial(extract, attempts=1), learn], ids=["extract", "learn"])
@pytest.mark.parametrize("link", ["identity", "sigmoid"])
def test_the_range_is_named_and_looking_inside_works(method, link):
    def target(x):
        values = clipped(0, 1)(x)
        return values if link == "identity" else 1 / (1 + np.exp(-values))

    failed = method(open_oracle(target, dim=DIM, link=link))
    assert failed.outcome in (Outcome.PARTIAL, Outcome.UNVERIFIED, Outcome.NOT_ACCURATE)
    assert failed.diagnosis.slug == "clipped-inputs"
    assert failed.diagnosis.fields == {"low": 0.0, "high": 1.0, "outcome": failed.outcome.slug}
    assert "reach" in failed.rows
    assert failed.stage != "reach"
    (inside,) = failed.diagnosis.remedies
    assert inside.verb == "extract"
    assert extract(open_oracle(target, dim=DIM, link=link, **inside.options)).ok


def test_a_budget_that_ends_at_the_search_of_a_range_is_no_outcome():
    whole = extract(open_oracle(clipped(0, 1), dim=DIM), attempts=1)
    least = whole.queries - whole.rows["reach"].queries + 1
    found = extract(open_oracle(clipped(0, 1), dim=DIM, budget=least + 10), attempts=1)
    assert found.outcome is whole.outcome
    assert "reason" not in found.evidence


def test_what_is_not_clipped_costs_nothing_more():
    deep = extract(open_oracle(planted((DIM, 8, 6, 1), 1)), DepthTwo(), attempts=1)
    assert not deep.ok
    assert "reach" not in deep.rows


def bumps_and_a_step(x):
    """Far out all outputs but the last are 0."""
    return np.column_stack([np.maximum(0, 1 - np.abs(x)), 5 + np.clip(x[:, :1], -1, 1)])


SATURATED = {
    "a sigmoid": (lambda x: (1 + np.tanh(planted((DIM, 8, 1), 0)(x))) / 2, True),
    "small values": (lambda x: 1e-12 * clipped(0, 1)(x), False),
    "mostly 0, and large where not": (bumps_and_a_step, False),
}


@pytest.mark.parametrize("name", SATURATED)
@pytest.mark.parametrize("rng", range(3))
def test_only_answers_between_0_and_1_saturate_and_are_so_against_their_size(name, rng):
    target, expected = SATURATED[name]
    health = check_health(open_oracle(target, dim=DIM), rng=rng)
    assert health.constant_beyond is not None
    assert health.saturated is expected
