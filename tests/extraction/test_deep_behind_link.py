"""Several hidden layers behind a link: inside the box where probabilities keep their digits they are like any other."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.oracles.adapters.dispatch import LINK_FUNCTIONS
from reluctant.testing import planted


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
    """There rows outside are never asked, and one hidden layer is what can be found."""
    network, asked = planted((5, 5, 4, 3), 2), []

    def target(x):
        asked.append(np.abs(x).max())
        return LINK_FUNCTIONS["softmax"](network(x))

    found = rl.extract(target, dim=5, rng=0, domain=(-3, 3))
    assert not found.ok
    assert max(asked) <= 3
