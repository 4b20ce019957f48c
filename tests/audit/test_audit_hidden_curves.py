"""The span of probabilities whose curves their digits hide: gradients of a sigmoid are in it too."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.audit import audit
from reluctant.testing import planted

LINKS = {
    "sigmoid": (1, lambda v: (1 + np.tanh(v / 2)) / 2, {}),
    "softmax": (3, lambda v: np.exp(v - v.max(1, keepdims=True)) / np.exp(v - v.max(1, keepdims=True)).sum(1)[:, None],
                {"link": "softmax"}),
}  # fmt: skip


def two_directions(link: str, decimals: int, seed: int):
    rng, (outputs, function, _) = np.random.default_rng(seed), LINKS[link]
    basis = rng.standard_normal((2, 8)) / np.sqrt(8)
    w, b, a = rng.standard_normal((6, 2)) @ basis, rng.standard_normal(6), 0.7 * rng.standard_normal((6, outputs))
    return lambda x: np.round(function(np.maximum(x @ w.T + b, 0) @ a), decimals), basis


@pytest.mark.parametrize(("link", "decimals"), [("sigmoid", 5), ("sigmoid", 6), ("softmax", 6)])
def test_rounded_probabilities_give_their_span(link, decimals, seed):
    target, basis = two_directions(link, decimals, seed)
    found = rl.recover_span(rl.open_oracle(target, dim=8, **LINKS[link][2]), rng=seed)
    assert found.ok
    assert found.queries < 3000
    q = np.linalg.qr(basis.T)[0]
    off = found.basis - (found.basis @ q) @ q.T
    assert np.linalg.norm(off, 2) < 1e-3


@pytest.mark.parametrize("decimals", [1, 2, 3, 5])
def test_an_audit_never_settles_that_there_is_none(decimals, seed):
    target, _ = two_directions("sigmoid", decimals, seed)
    record = audit(rl.open_oracle(target, dim=8), budget=20_000, seconds=5, steps=["health", "span"]).record
    verdict = record.verdict
    assert ("span" in verdict.leaks) != ("span" in verdict.unsettled)
    assert decimals < 5 or "span" in verdict.leaks


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_the_span_of_one_curved_output_is_taken_from_its_sides(offset):
    rng = np.random.default_rng(0)
    w, a = rng.standard_normal((3, 8)), rng.standard_normal(3)
    oracle = rl.open_oracle(lambda x: offset + (np.tanh(x @ w.T) @ a)[:, None], dim=8)
    record = audit(oracle, budget=60_000, seconds=20, steps=["health", "span"]).record
    assert "span" in record.verdict.leaks
    assert record.span.rank == 3


@pytest.mark.parametrize("noise", [1e-6, 1e-5])
def test_noisy_sigmoids_are_not_read_through_a_link_that_nobody_gave(noise):
    target, _ = two_directions("sigmoid", 12, 0)
    rng = np.random.default_rng(0)
    oracle = rl.open_oracle(lambda x: target(x) + noise * rng.standard_normal((len(x), 1)), dim=8)
    record = audit(oracle, budget=20_000, seconds=5, steps=["health", "span"]).record
    assert record.target.link == "identity"
    assert not any("wrong-link" in str(step) for step in record.steps)


@pytest.mark.parametrize("dtype", sweep([np.float64, np.float32], fast=[np.float64]))
def test_log_probabilities_are_read_through_their_link(dtype):
    true = planted((6, 5, 3), 1)

    def log_softmax(x):
        values = true(x)
        values = values - values.max(axis=1, keepdims=True)
        return (values - np.log(np.exp(values).sum(axis=1, keepdims=True))).astype(dtype)

    record = audit(rl.open_oracle(log_softmax, dim=6), budget=20_000, seconds=5, steps=["health", "extraction"]).record
    if dtype is np.float64:
        assert record.target.link == "log-softmax"
        assert record.verdict.level == "exact"
    else:  # few digits: read or not, it does not pass for harmless
        assert {"extractable"} & {*record.verdict.leaks, *record.verdict.unsettled}
