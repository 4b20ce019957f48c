"""A target without its first layer: same answers, one account."""

from __future__ import annotations

import numpy as np
import pytest
from three_layers import opened, unit_rows

import reluctant as rl
from reluctant.errors import OutsideDomain
from reluctant.extraction.depth_three.first_layer import FirstLayer, find_first_layer
from reluctant.extraction.depth_three.method import LEAST_HIDDEN, peel
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted


def true_layer(network: ReLUNetwork) -> FirstLayer:
    w, b = unit_rows(network)
    none = np.zeros(len(b))
    return FirstLayer(w, b, float(np.linalg.cond(w)), none, none)


def above(network: ReLUNetwork) -> ReLUNetwork:
    """The layers above the first, as a function of hidden values of unit rows."""
    norms = np.linalg.norm(network.weights[0], axis=1)
    return ReLUNetwork([network.weights[1] * norms, *network.weights[2:]], network.biases[1:])


@pytest.mark.parametrize("widths", [(12, 6, 9, 1), (8, 8, 5, 3)])
def test_answers_are_those_of_the_layers_above(widths: tuple[int, ...], seed: int) -> None:
    true = planted(widths, seed)
    hidden = np.abs(np.random.default_rng(seed).standard_normal((40, widths[1])))
    hidden[:5, 0] = LEAST_HIDDEN
    answers = peel(rl.open_oracle(true), true_layer(true)).query(hidden)
    np.testing.assert_allclose(answers, above(true)(hidden), atol=1e-11)


def test_found_layer_peels_as_well_as_the_true_one(seed: int) -> None:
    true = planted((20, 10, 15, 1), 30 + seed, bias=0.3)
    oracle, noise, rng = opened(true, seed)
    found = find_first_layer(oracle, noise, rng)
    order = (unit_rows(true)[0] @ found.weights.T).argmax(axis=1)
    hidden = np.abs(np.random.default_rng(1).standard_normal((40, 10)))
    np.testing.assert_allclose(peel(oracle, found).query(hidden), above(true)(hidden[:, order]), atol=1e-10)


def test_every_row_is_counted_once_in_the_same_account() -> None:
    true = planted((12, 6, 9, 1), 0)
    oracle = rl.open_oracle(true, budget=100)
    peeled = peel(oracle, true_layer(true))
    with peeled.stage("top"):
        peeled.query(np.ones((30, 6)))
    assert oracle.queries == peeled.queries == 30
    assert oracle.ledger.stages["top"].asked == oracle.ledger.stages["top"].sent == 30
    with pytest.raises(rl.errors.BudgetExhausted):
        peeled.query(np.ones((71, 6)))


def test_only_hidden_values_that_can_occur_are_asked() -> None:
    true = planted((12, 6, 9, 1), 0)
    peeled = peel(rl.open_oracle(true), true_layer(true))
    assert (peeled.dim, peeled.outputs) == (6, 1)
    assert not peeled.facts.domain.is_space
    assert peeled.facts.identity == ""
    with pytest.raises(OutsideDomain):
        peeled.query(-np.ones((1, 6)))
