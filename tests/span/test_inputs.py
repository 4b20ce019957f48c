"""Where a target is asked: kinds of inputs in a box, inputs of the user's own, narrow coordinates."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.domains import Domain
from reluctant.errors import InvalidInput
from reluctant.span.first_look import Inputs
from reluctant.testing import planted

DIM = 30


def linear_where_awake(x):
    """A direction that matters where the first half is bright and the second half is dark, and nowhere else."""
    first, second = x[:, : DIM // 2].sum(axis=1), x[:, DIM // 2 :].sum(axis=1)
    return x[:, :3].sum(axis=1) + np.maximum(first - second - 12.5, 0)


def half_bright(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.uniform(0.9, 1, (40, DIM // 2)), rng.uniform(0, 0.1, (40, DIM // 2))], axis=1)


def test_given_inputs_show_what_random_ones_do_not(seed):
    oracle = rl.open_oracle(linear_where_awake, dim=DIM, domain=(0, 1))
    with_them = rl.recover_span(oracle, rng=seed, inputs=half_bright(seed))
    assert (with_them.ok, with_them.rank) == (True, 2)
    assert with_them.evidence["limits"].entries[0].fields["given"] == 40
    assert rl.recover_span(oracle, rng=seed).rank == 1


def test_given_inputs_bring_a_second_label(seed):
    def bright_then_dark(x):
        return x[:, : DIM // 2].sum(axis=1) - x[:, DIM // 2 :].sum(axis=1) > 12.5

    oracle = rl.open_oracle(bright_then_dark, dim=DIM, domain=(0, 1))
    assert rl.recover_span(oracle, labels=True, rng=seed).outcome is rl.Outcome.ONE_LABEL
    span = rl.recover_span(oracle, labels=True, rng=seed, inputs=half_bright(seed))
    assert (span.ok, span.rank) == (True, 1)


@pytest.mark.parametrize("given", [None, np.full((5, 8), 0.5)])
@pytest.mark.parametrize("domain", [Domain(), Domain(0, 1), Domain(0, np.inf)])
def test_inputs_stay_in_the_domain(domain, given, seed):
    drawn = Inputs.of(domain, 8, given).draw(60, 1.0, np.random.default_rng(seed))
    assert drawn.shape == (60, 8)
    assert domain.contains(drawn)
    assert len(np.unique(drawn, axis=0)) >= 31


@pytest.mark.parametrize(
    "given", [np.ones(DIM), np.ones((2, 4)), np.empty((0, DIM)), np.full((1, DIM), np.nan), np.full((1, DIM), 2.0), "x"]
)
def test_inputs_that_are_none(given):
    with pytest.raises(InvalidInput, match="inputs"):
        rl.recover_span(rl.open_oracle(linear_where_awake, dim=DIM, domain=(0, 1)), inputs=given)


@pytest.mark.parametrize("width", [1e-9, 1e-6, 1e-3])
def test_coordinates_that_hardly_vary(width, seed):
    network = planted((40, 6, 8, 3), 3 + seed)
    domain = (np.zeros(40), np.r_[np.full(8, width), np.ones(32)])
    span = rl.recover_span(rl.open_oracle(network, domain=domain), rng=seed)
    true = rl.Subspace.spanned_by(network.weights[0])
    if span.ok:
        assert np.linalg.norm(true.reject(span.basis), 2) < 1e-4
    assert span.ok or width < 1e-3


@pytest.mark.parametrize("factor", [1e-200, 1e-150])
def test_tiny_answers_end_with_an_outcome(factor):
    network = planted((12, 4, 5, 3), 1)
    span = rl.recover_span(rl.open_oracle(lambda x: factor * network(x), dim=12), rng=0)
    if span.ok:
        assert span.subspace.distance(rl.Subspace.spanned_by(network.weights[0])) < 1e-9
