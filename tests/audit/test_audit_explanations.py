"""An audit of answers that say more than a prediction: gradients and their defenses, and the space of many outputs."""

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


def test_many_outputs_give_the_width_of_the_last_layer_away():
    record = rl.audit(planted((6, 5, 40), 1), steps=("health", "span"), rng=0).record
    assert (record.answer_space.rank, record.answer_space.outputs) == (5, 40)
    assert record.answer_space.margin < 1e-9
    row = dict(interface_facts(record))["Space of answers"]
    assert row == "5 of 40 dimensions, the width of the last hidden layer"
    assert record.queries.by_stage["answers"].asked <= 5 + 20


def test_few_outputs_are_not_asked_for_their_space(record):
    assert record.answer_space is None
    assert "Space of answers" not in dict(interface_facts(record))
