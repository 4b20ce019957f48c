"""Probabilities are read through their link, and where they saturate the network is recovered inside a box."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.interface.reach import unsaturated_box
from reluctant.networks import ReLUNetwork
from reluctant.oracles.links import LINK_FUNCTIONS
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
    assert result.evidence["inside"].domain.is_box
    rows = np.random.default_rng(seed).uniform(-1, 1, (500, 12))
    expected = rl.open_oracle(network).query(rows)
    got = rl.open_oracle(result.network.before_link(link)).query(rows)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9)


def test_log_probabilities_need_no_box(seed: int) -> None:
    network = classifier("log-softmax", seed)
    result = rl.extract(rl.open_oracle(network, link="log-softmax"), rng=seed)
    assert result.ok
    assert "inside" not in result.evidence
    assert rl.compare(result.network.log_ratios(), network.log_ratios()).parameter_error < 1e-9


@pytest.mark.parametrize("link", ["softmax", "log-softmax", "top-k"])
def test_a_network_has_an_output_for_each_class(link: str, tmp_path) -> None:
    network = classifier("log-softmax" if link == "log-softmax" else "softmax", 1)
    oracle = rl.open_oracle(network, link=link)
    result = rl.extract(oracle, rng=0)
    assert result.ok
    assert result.network.outputs == network.outputs
    assert result.network.link == network.link
    rows = np.random.default_rng(0).uniform(-1, 1, (100, 12))
    assert not result.network(rows)[:, 0].any()
    expected = rl.open_oracle(network).query(rows)
    np.testing.assert_allclose(LINK_FUNCTIONS[network.link](result.network(rows)), expected, rtol=0, atol=1e-9)
    assert rl.verify(oracle, result.network).ok
    assert rl.flip_sign(oracle, rows[0], network=result.network).ok
    result.as_written(link).save(tmp_path / "copy.npz")
    np.testing.assert_allclose(rl.open_oracle(tmp_path / "copy.npz").query(rows), expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(result.as_written(link)(rows), result.network(rows))


def test_a_network_of_one_output_behind_a_softmax_has_one(seed: int) -> None:
    result = rl.extract(classifier("softmax", seed), link="softmax", output=1, rng=seed)
    assert result.network.outputs == 1
    assert result.network.link == "identity"


def test_a_student_of_log_ratios_has_an_output_for_each_class() -> None:
    network = classifier("softmax", 0)
    student = rl.train_student(network, link="softmax", domain=(-0.1, 0.1), rows=300, steps=100, hidden=(8,)).network
    assert student.outputs == network.outputs
    assert student.link == "softmax"


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
