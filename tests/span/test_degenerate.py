"""Targets that have no span, a whole one, or none that can be told: each ends with a named outcome."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput, NotRecovered
from reluctant.testing import in_float32, planted
from reluctant.testing.faults import Dying, noisy, rounded

DIM = 12


def dead(x):
    return np.maximum(x[:, :1] * 0 - 1, 0) + 0.5


def curved(x):
    return np.tanh(x[:, :3]).sum(axis=1)


NETWORK = planted((DIM, 4, 4, 1), 3)

# target, options, outcome, rank
CASES = {
    "constant": (lambda x: np.ones((len(x), 2)), {}, "constant", 0),
    "dead": (dead, {}, "constant", 0),
    "full rank": (planted((DIM, 20, 8, 1), 1), {}, "full-rank", DIM),
    "labels as values": (lambda x: (x[:, 0] > 0) * 1.0, {}, "piecewise-constant", 0),
    "curved": (curved, {}, "not-piecewise-linear", 0),
    "very noisy": (noisy(NETWORK, 1.0), {}, "too-noisy", 0),
    "labels that never change": (lambda x: np.zeros(len(x)), {"labels": True}, "one-label", 0),
    "threshold out of range": (NETWORK, {"labels": True, "threshold": 1e9}, "one-label", 0),
    "labels of noisy values": (noisy(planted((DIM, 4, 3), 3), 0.1), {"labels": True}, "too-noisy", 0),
    "labels at random": (
        lambda x: np.random.default_rng(len(x)).integers(0, 2, len(x)),
        {"labels": True},
        "too-noisy",
        0,
    ),
    "full rank by labels": (planted((3, 20, 8, 1), 1), {"labels": True}, "full-rank", 3),
}


@pytest.mark.parametrize("name", CASES)
def test_outcome(name):
    target, options, outcome, rank = CASES[name]
    dim = target.dim if isinstance(target, rl.ReLUNetwork) else DIM
    span = rl.recover_span(rl.open_oracle(target, dim=dim), rng=0, **options)
    assert (span.outcome.slug, span.rank) == (outcome, rank)
    assert span.ok == (outcome == "full-rank")
    if not span.ok:
        with pytest.raises(NotRecovered, match="queries were spent"):
            span.raise_for_status()


@pytest.mark.parametrize("sd", [1e-6, 1e-4, 1e-2])
def test_noise_never_gives_a_wrong_span_with_ok(sd):
    span = rl.recover_span(rl.open_oracle(noisy(NETWORK, sd), dim=DIM), rng=0)
    true = rl.Subspace.spanned_by(NETWORK.weights[0])
    if span.ok:
        assert span.rank == 4
        assert span.subspace.distance(true) < 1e3 * sd
    else:
        assert span.outcome.slug in {"too-noisy", "rank-unclear", "span-partial", "not-piecewise-linear"}


@pytest.mark.parametrize(("decimals", "ok"), [(2, False), (6, True), (9, True)])
def test_rounded_answers(decimals, ok):
    span = rl.recover_span(rl.open_oracle(rounded(NETWORK, decimals), dim=DIM), rng=0)
    assert span.ok == ok
    if ok:
        assert span.subspace.distance(rl.Subspace.spanned_by(NETWORK.weights[0])) < 1e2 * 10.0**-decimals


@pytest.mark.parametrize("labels", [False, True])
def test_a_small_budget_keeps_what_was_found(labels):
    network = planted((60, 8, 4, 1), 2)
    span = rl.recover_span(rl.open_oracle(network, budget=6000 if labels else 400), labels=labels, rng=0)
    assert span.outcome is rl.Outcome.OUT_OF_BUDGET
    assert 0 < span.rank < 8
    assert np.linalg.norm(rl.Subspace.spanned_by(network.weights[0]).reject(span.basis), 2) < 0.1
    assert "budget" in span.evidence["error"]


def test_a_target_that_dies():
    span = rl.recover_span(rl.open_oracle(Dying(NETWORK, 200), dim=DIM), rng=0)
    assert span.outcome is rl.Outcome.TARGET_FAILED


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 1.0}, "threshold"),
        ({"threshold": np.nan, "labels": True}, "threshold"),
        ({"threshold": "a", "labels": True}, "threshold"),
        ({"reach": 0.0}, "reach"),
        ({"reach": np.inf}, "reach"),
        ({"reach": "far"}, "reach"),
        ({"labels": "yes"}, "labels"),
        ({"fine": 1}, "fine"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(InvalidInput, match=message):
        rl.recover_span(rl.open_oracle(NETWORK), **options)


def test_a_threshold_is_for_one_output():
    with pytest.raises(InvalidInput, match="3 outputs"):
        rl.recover_span(rl.open_oracle(planted((DIM, 4, 3), 0)), labels=True, threshold=0.5)


def test_float32_keeps_what_was_found_when_the_budget_ends():
    network = planted((60, 8, 6, 1), 2)
    whole = rl.recover_span(rl.open_oracle(in_float32(network), dim=60), rng=0)
    span = rl.recover_span(rl.open_oracle(in_float32(network), dim=60, budget=whole.queries * 3 // 5), rng=0)
    assert span.outcome is rl.Outcome.OUT_OF_BUDGET
    assert span.rank > 0
    coarse = rl.recover_span(rl.open_oracle(in_float32(network), dim=60), rng=0, fine=False)
    assert coarse.ok
    assert coarse.queries < whole.queries


def test_full_rank_by_values_has_a_margin(seed):
    span = rl.recover_span(rl.open_oracle(planted((DIM, 20, 8, 1), 1 + seed)), rng=seed)
    assert span.outcome is rl.Outcome.FULL_RANK
    assert 0 < span.margin < 0.1
    assert span.rows["verification"].asked > 0


def test_an_unclear_rank_is_not_told():
    """7-6-1-1 beside an offset of 3e4: the answers have too few digits for the sixth direction."""
    network = planted((7, 6, 1, 1), 5)
    for seed in range(5):
        span = rl.recover_span(rl.open_oracle(lambda x: network(x) + 3e4, dim=7), rng=seed)
        true = rl.Subspace.spanned_by(network.weights[0])
        assert not span.ok or np.linalg.norm(true.reject(span.basis), 2) < 1e-2


def test_no_number_has_a_name():
    span = rl.recover_span(rl.open_oracle(lambda x: np.where(x[:, :1] > 2, np.nan, NETWORK(x)), dim=DIM), rng=0)
    assert span.outcome is rl.Outcome.NON_FINITE


def test_outputs_that_are_mostly_nothing_have_a_span():
    """The largest value alone, in float32: two of three outputs are 0 wherever it is asked."""
    network = planted((8, 12, 3), 0)

    def largest(x):
        values = network(x)
        return np.where(values == values.max(axis=1, keepdims=True), values, 0).astype(np.float32)

    assert rl.recover_span(rl.open_oracle(largest, dim=8), rng=0).outcome is rl.Outcome.FULL_RANK


def test_probabilities_are_asked_where_they_do_not_saturate(seed):
    network = planted((DIM, 4, 6, 3), 1 + seed)

    def softmax(x):
        z = 60 * network(x)
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    span = rl.recover_span(rl.open_oracle(softmax, dim=DIM, link="softmax"), rng=seed)
    assert span.outcome is not rl.Outcome.TARGET_FAILED
    assert not span.domain.is_space
    if span.ok:
        assert np.linalg.norm(rl.Subspace.spanned_by(network.weights[0]).reject(span.basis), 2) < 1e-3


def test_as_data():
    data = rl.recover_span(rl.open_oracle(NETWORK), rng=0).to_dict()
    assert data["rank"] == 4
    assert data["invisible share"] == pytest.approx(8 / 12)
    assert data["outcome"] == "span-recovered"
    assert set(data["evidence"]) >= {"health", "live share", "gradients", "leak"}


def test_gradients_that_rounding_hides_are_no_gradients():
    """Most of them vanish: there is no size that others could be held against, and no span."""
    network = planted((4, 4, 1), 11)
    faint = rl.ReLUNetwork(
        [network.weights[0], 0.05 * network.weights[1]], [network.biases[0], 0.05 * network.biases[1]]
    )
    target = rl.defend(rl.open_oracle(faint), "float16", "decimals=2")
    span = rl.recover_span(rl.open_oracle(target), fine=False, rng=1)
    assert not span.ok
    assert span.rank == 0
