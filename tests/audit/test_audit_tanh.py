"""A tanh is read by the audit itself, and nothing is said of it that is true of probabilities alone."""

from __future__ import annotations

import numpy as np
import pytest
from audit_kit import limits, reason, reasons
from scipy.special import erf

from reluctant import open_oracle
from reluctant.audit import audit
from reluctant.audit.defense_sweep import default_defenses
from reluctant.oracles import NetworkOracle
from reluctant.oracles.base import Facts
from reluctant.testing import planted

ONE, NETWORK = planted((6, 8, 1)), planted((6, 8, 3))
STEPS = ["health", "span", "extraction", "flip"]


@pytest.mark.parametrize("network", [ONE, NETWORK], ids=["one", "three"])
def test_the_network_before_a_tanh_is_taken(record, network):
    found = record(lambda x: np.tanh(network(x)), 6, steps=STEPS)
    assert (found.target.link, found.target.link_found) == ("tanh", True)
    assert found.verdict.level == "exact"
    assert (found.recovered.widths, found.recovered.link) == (tuple(network.widths), "tanh")
    assert limits(found)["read-through-link"]["link"] == "tanh"
    assert found.served.tanh


def test_the_copy_answers_as_the_target_does():
    oracle = open_oracle(lambda x: np.tanh(NETWORK(x)), dim=6)
    known = audit(oracle, steps=["health", "extraction"]).known
    copy = NetworkOracle(known.copy.as_written(known.written_link))
    rows = np.random.default_rng(0).standard_normal((100, 6))
    np.testing.assert_allclose(copy.answer(rows), np.tanh(NETWORK(rows)), rtol=0, atol=1e-9)


def test_one_answer_of_a_tanh_flips_where_its_sign_changes(record):
    found = record(lambda x: np.tanh(ONE(x) - ONE(x[:1] * 0)), 6, steps=["health", "extraction", "flip"])
    assert found.flip.ok
    assert found.flip.threshold is None


def test_a_tanh_with_fresh_noise_is_named_and_left_open(record):
    noise = np.random.default_rng(0)
    found = record(
        lambda x: np.tanh(NETWORK(x)) + 1e-11 * noise.standard_normal((len(x), 3)), 6, steps=["health", "extraction"]
    )
    assert found.target.link == "identity"
    assert "extractable" in found.verdict.unsettled
    assert reason(found.verdict, "unread-link")["try"] == [("read-link", {"link": "tanh"})]


def test_an_error_function_is_not_read_through_a_tanh(record):
    found = record(lambda x: erf(NETWORK(x)), 6, steps=["health", "extraction"])
    assert found.target.link == "identity"
    assert "squashed-far-out" in reasons(found.verdict)


def test_a_tanh_is_offered_no_defense_for_classes():
    def tried(link):
        return {name for trial in default_defenses(Facts(4, 3), 1.0, link=link) for name in trial}

    assert tried("identity") - tried("tanh") == {"softmax", "top=1"}
