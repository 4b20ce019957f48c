"""Links that nobody gave: verbs read the answers through the link that these show, and say which."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import reluctant as rl
from reluctant.extraction import recovery
from reluctant.interface import Shape
from reluctant.interface.health import examine
from reluctant.oracles.links import LINK_FUNCTIONS
from reluctant.testing import in_float32, planted

NETWORK, ONE = planted((4, 3, 3), 1), planted((4, 3, 1), 1)
ROWS = np.random.default_rng(0).standard_normal((50, 4))
LINKS = ("softmax", "sigmoid", "log-softmax", "tanh")


def behind(link: str):
    """A target that answers through this link."""
    values = NETWORK if "softmax" in link else ONE
    return lambda x: LINK_FUNCTIONS[link](values(x))


@pytest.mark.parametrize("link", LINKS)
def test_extraction_finds_the_link_and_says_so(link):
    target = behind(link)
    oracle = rl.open_oracle(target, dim=4)
    found = rl.extract(oracle, rng=0)
    assert found.ok
    assert found.evidence["found link"] == link
    assert found.queries == oracle.queries - 1  # the one that opened it
    written = rl.open_oracle(found.as_written("identity"))
    assert np.abs(written.query(ROWS) - target(ROWS)).max() < 1e-9


def test_percentages_are_read_too():
    found = rl.extract(lambda x: 100 * behind("softmax")(x), dim=4, rng=0)
    assert found.ok
    assert (found.evidence["found link"], found.evidence["percent"]) == ("softmax", True)


@pytest.mark.parametrize("link", ["identity", "none"])
def test_a_link_that_was_ruled_out_is_not_looked_for(link):
    found = rl.extract(behind("softmax"), dim=4, rng=0, link=link)
    assert found.outcome is rl.Outcome.NOT_PIECEWISE_LINEAR
    assert found.diagnosis.slug == "answers-of-link"
    assert "found link" not in found.evidence


def test_an_oracle_keeps_what_it_was_opened_with():
    with rl.open_oracle(behind("softmax"), dim=4, link="identity") as oracle:
        assert not rl.extract(oracle, rng=0, budget=500).ok
    with rl.open_oracle(behind("softmax"), dim=4) as oracle:
        assert rl.extract(oracle, rng=0, budget=5000).evidence["found link"] == "softmax"


def test_values_and_labels_cost_nothing_more():
    for target in (NETWORK, lambda x: NETWORK(x).argmax(axis=1)):
        plain, ruled_out = (rl.extract(target, dim=4, rng=0, budget=3000, **given) for given in ({}, {"link": "none"}))
        assert plain.queries == ruled_out.queries
        assert "found link" not in plain.evidence


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_the_span_is_found_behind_a_link(link):
    found = rl.recover_span(behind(link), dim=4, rng=0)
    assert found.ok
    assert found.rank == 3
    assert found.evidence["found link"] == link


def test_a_flip_is_found_behind_a_link():
    """One number between 0 and 1 does not change its sign; the value before its sigmoid does."""

    def target(x: np.ndarray) -> np.ndarray:
        return LINK_FUNCTIONS["sigmoid"](x.sum(axis=1, keepdims=True))

    raw, read = (rl.flip_sign(target, [0.3] * 4, dim=4, **given) for given in ({"link": "none"}, {}))
    assert not raw.ok
    assert read.ok
    assert read.evidence["found link"] == "sigmoid"
    assert target(read.x[None])[0, 0] < 0.5


def test_smooth_neurons_behind_a_link_are_named():
    found = rl.extract(lambda x: LINK_FUNCTIONS["softmax"](np.sin(x[:, :3])), dim=4, rng=0)
    assert found.diagnosis.slug == "curved-behind-link"


def test_answers_that_are_not_refused_are_not_searched_for_a_link(monkeypatch):
    monkeypatch.setattr("reluctant.extraction.recovery.find_link", None)
    assert rl.extract(planted((4, 6, 1), 0), rng=0).ok


def test_a_sigmoid_whose_curve_four_lines_do_not_show_is_looked_at_again(monkeypatch):
    values, looks = in_float32(planted((10, 6, 1), 0, bias=0.5)), []

    def blind_at_first(*args, **keywords):
        looks.append(examine(*args, **keywords))
        straight = {"shape": Shape.PIECEWISE_LINEAR, "sigmoids": False, "like_sigmoids": True, "saturated": True}
        return replace(looks[-1], **straight) if len(looks) == 1 else looks[-1]

    monkeypatch.setattr(recovery, "examine_health", blind_at_first)
    result = rl.extract(lambda x: LINK_FUNCTIONS["sigmoid"](values(x)).astype(np.float32), dim=10, budget=1000)
    assert result.evidence["found link"] == "sigmoid"
    assert len(looks) == 2
    assert looks[0].queries < looks[1].queries < 400
