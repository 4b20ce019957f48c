"""Probabilities are read through their link, and where they saturate the network is recovered inside a box."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.interface.reach import unsaturated_box
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted

WIDTHS = (12, 10, 4)


def classifier(link: str, seed: int, outputs: int = 4) -> ReLUNetwork:
    network = planted((12, 10, outputs), seed)
    return ReLUNetwork(network.weights, network.biases, link=link)


@pytest.mark.parametrize(("link", "outputs"), [("softmax", 4), ("softmax", 2), ("sigmoid", 1)])
def test_a_classifier_is_recovered_from_its_probabilities(link: str, outputs: int, seed: int) -> None:
    network = classifier(link, seed, outputs)
    oracle = rl.open_oracle(network, link=link)
    result = rl.extract(oracle, rng=seed)
    assert result.ok, result
    assert "saturate" in result.evidence["reach"]
    rows = np.random.default_rng(seed).uniform(-1, 1, (500, 12))
    expected = rl.open_oracle(network).query(rows)
    got = rl.open_oracle(result.network.before_link(link)).query(rows)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9)


def test_log_probabilities_need_no_box(seed: int) -> None:
    network = classifier("log-softmax", seed)
    result = rl.extract(rl.open_oracle(network, link="log-softmax"), rng=seed)
    assert result.ok
    assert "reach" not in result.evidence
    assert rl.compare(result.network, network.log_ratios()).parameter_error < 1e-9


def test_the_box_keeps_away_from_saturation(seed: int) -> None:
    oracle = rl.open_oracle(classifier("softmax", seed), link="softmax")
    box = unsaturated_box(oracle, np.random.default_rng(seed))
    assert box is not None
    assert oracle.queries == 120
    corners = np.sign(np.random.default_rng(seed + 1).standard_normal((1000, 12))) * box.high
    assert np.isfinite(oracle.answer(corners)).all()


def test_nothing_but_certainty_is_refused_by_name() -> None:
    oracle = rl.open_oracle(lambda x: np.tile([1.0, 0.0], (len(x), 1)), dim=3, link="softmax")
    assert unsaturated_box(oracle, np.random.default_rng(0)) is None
    assert not rl.extract(oracle, rng=0).ok
