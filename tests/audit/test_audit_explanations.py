"""An audit of a target that answers gradients: what they save, and which defenses of them take that away."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.report.sweep_text import sweep_sentence
from reluctant.report.tables import interface_facts
from reluctant.testing import planted

NETWORK = planted((4, 2, 1), 3)
STEPS = ("health", "extraction", "defenses")


@pytest.fixture(scope="module")
def record():
    return rl.audit(NETWORK, gradients=True, steps=STEPS, rng=0).record


def test_the_sweep_has_the_defenses_of_gradients(record):
    names = [row.defense.split("=")[0] for row in record.defenses.rows]
    kinds = ["decimals", "noise", "top", "sign", "absolute", "none"]
    assert [name for name in names if name.startswith("gradient-")] == [f"gradient-{kind}" for kind in kinds]
    assert all(row.stopped is False for row in record.defenses.rows if row.defense.startswith("gradient-"))


def test_queries_with_and_without_are_in_the_interface(record):
    with_them, without = record.defenses.explanations
    assert with_them == record.extraction.queries
    row = dict(interface_facts(record))["With explanations"]
    assert row == f"{with_them:,} queries for a copy; {without:,} without them"


def test_the_sentence_says_which_defense_takes_the_saving_away(record):
    said = sweep_sentence(record.defenses)
    assert all(f"{queries:,}" in said for queries in record.defenses.explanations)
    assert "no gradients" in said


def test_saliency_is_named_and_its_defenses_are_not_tried(record):
    def saliency(rows):
        return np.abs(NETWORK.gradients(rows))

    found = rl.audit(NETWORK, gradients=saliency, steps=STEPS, rng=0).record
    assert found.extraction.evidence["gradients"]["slug"] == "explanation-absolute"
    assert found.defenses.explanations is None
    assert "With explanations" not in dict(interface_facts(found))
    assert not [row for row in found.defenses.rows if row.defense.startswith("gradient-")]
