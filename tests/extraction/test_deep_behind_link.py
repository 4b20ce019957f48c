"""Several hidden layers behind a link: inside the box where probabilities keep their digits they are like any other."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.extraction.any_depth.in_box import _largest_size
from reluctant.extraction.method import StageFailed
from reluctant.oracles.links import LINK_FUNCTIONS
from reluctant.testing import planted
from reluctant.verification.comparison import USE_POINTS


@pytest.mark.parametrize(("widths", "link"), [((5, 5, 4, 3), "softmax"), ((5, 5, 4, 1), "sigmoid")])
def test_two_hidden_layers_are_recovered_behind_a_link(widths, link):
    network = planted(widths, 3)
    found = rl.extract(lambda x: LINK_FUNCTIONS[link](network(x)), dim=5, rng=0)
    assert found.ok
    assert found.network.widths == widths
    assert found.evidence["found link"] == link
    assert found.evidence["attempts"].entries[-1].method == "DeepInBox"
    rows = np.random.default_rng(1).standard_normal((200, 5))
    values = network(rows)
    shown = values - values[:, :1] if link == "softmax" else values
    assert np.abs(found.network(rows) - shown).max() < 1e-9


def test_a_box_of_the_users_own_is_not_left():
    """There rows outside are never asked."""
    network, asked = planted((5, 5, 4, 3), 2), []

    def target(x):
        asked.append(np.abs(x).max())
        return LINK_FUNCTIONS["softmax"](network(x))

    found = rl.extract(target, dim=5, rng=0, domain=(-3, 3))
    assert found.ok
    assert max(asked) <= 3
    rows = np.random.default_rng(1).uniform(-3, 3, (2000, 5))
    values = network(rows)
    assert np.abs(found.network(rows) - (values - values[:, :1])).max() < 1e-9


def test_several_layers_are_compared_at_typical_inputs_as_they_cost():
    """A unit that one input in 200 turns off looks like one that is always on; some hundred inputs may not meet it."""
    network = planted((6, 9, 6, 3), 3)
    steep = rl.ReLUNetwork([*network.weights[:-1], 10 * network.weights[-1]], network.biases)
    found = rl.extract(lambda x: LINK_FUNCTIONS["softmax"](steep(x)), dim=6, rng=0)
    assert found.ok
    at_use = found.evidence["verification"].at_use
    assert at_use.asked > 4 * USE_POINTS


@pytest.mark.slow
def test_a_unit_that_few_inputs_turn_off_is_not_missed():
    from sklearn.datasets import load_breast_cancer
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    rows, labels = load_breast_cancer(return_X_y=True)
    rows, _, labels, _ = train_test_split(rows, labels, test_size=0.3, random_state=0)
    rows = StandardScaler().fit_transform(rows)
    with pytest.warns(ConvergenceWarning):
        trained = MLPClassifier((16, 8), max_iter=200, random_state=0).fit(rows, labels)
    typical = np.random.default_rng(1).standard_normal((20_000, 30))
    for seed in (0, 1, 4):
        found = rl.extract(trained, rng=seed)
        values = found.network(typical)
        off = LINK_FUNCTIONS["softmax"](values) - trained.predict_proba(typical)
        assert not found.ok or np.abs(off).max() < 1e-8


def test_values_beyond_all_numbers_are_no_digits_to_compare() -> None:
    """Of infinite values there is no deviation, and no warning that there is none."""
    network = planted((5, 8, 1), 7000, bias=1.5)
    (w, a), (b, c) = network.weights, network.biases
    steep = rl.ReLUNetwork([w, 30 * a], [b, 30 * c])
    oracle = rl.open_oracle(lambda x: np.tanh(steep(x)), dim=5, link="tanh")
    with pytest.raises(StageFailed, match=r"^reach: "):
        _largest_size(oracle, 2.0, np.random.default_rng(0))
