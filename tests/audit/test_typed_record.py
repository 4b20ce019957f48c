"""The typed record: its schema is made from its classes, what is read back is checked, older records are refused."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from audit_kit import QUICK

from reluctant import open_oracle
from reluctant.audit import audit, not_opened
from reluctant.audit.facts import Bounds
from reluctant.audit.record import AuditRecord, Confidence, LeakKind, Level, schema
from reluctant.domains import Domain
from reluctant.errors import InvalidInput, UnknownTarget
from reluctant.testing import planted


@pytest.fixture(scope="module")
def made() -> AuditRecord:
    return audit(open_oracle(planted((6, 8, 3))), steps=QUICK, price={"per thousand": 2.0, "currency": "EUR"}).record


def test_it_keeps_to_the_schema_made_of_its_classes(made):
    rules = schema()
    jsonschema.Draft202012Validator.check_schema(rules)
    jsonschema.validate(json.loads(made.to_json()), rules)


def test_it_is_read_back_as_it_was_written(made, tmp_path):
    made.write(tmp_path / "audit.json")
    again = AuditRecord.load(tmp_path / "audit.json")
    assert again.to_dict() == made.to_dict()
    assert (again.verdict, again.recovered, again.pictures) == (made.verdict, made.recovered, made.pictures)


def test_the_verdict_is_facts(made):
    assert made.verdict.level is Level.EXACT
    assert made.verdict.confidence is Confidence.VERIFIED
    assert made.verdict.leaks[:2] == (LeakKind.EXTRACTABLE, LeakKind.APPROXIMABLE)
    assert made.recovered is not None
    assert made.recovered.cost == pytest.approx(made.recovered.queries * 2 / 1000)


def test_steps_say_by_slug_why_they_were_skipped(made):
    assert {step.step: step.diagnosis.slug for step in made.steps if step.state == "skipped"} == {
        "part": "copy-exists", "learning": "recovered-exactly", "training": "copy-exists", "truth": "not-a-file",
        "defenses": "left-out",
    }  # fmt: skip


def test_a_target_that_is_not_open_has_a_record():
    made = not_opened("nowhere", UnknownTarget("nothing there"), seed=0, budget=10, repeat="").record
    assert made.verdict.confidence is Confidence.NOT_OPENED
    assert made.steps[0].diagnosis.fields["error"] == "unknown-target"
    assert made.target.inputs is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"schema": "reluctant-audit/1"}, "reluctant-audit/1"),
        ({}, "schema None"),
        ([], "schema None"),
        ({"schema": "reluctant-audit/4"}, "missing required field"),
    ],
)
def test_other_records_are_refused(wrong, said):
    with pytest.raises(InvalidInput, match=said):
        AuditRecord.from_dict(wrong)


def test_lists_that_belong_together_are_of_one_length(made):
    data = made.to_dict()
    data["pictures"]["line"]["positions"].pop()
    with pytest.raises(InvalidInput, match="positions"):
        AuditRecord.from_dict(data)


def test_a_file_that_is_no_record(tmp_path):
    (tmp_path / "audit.json").write_text("{NaN}")
    for path in (tmp_path / "audit.json", tmp_path / "absent.json"):
        with pytest.raises(InvalidInput, match="RECORD"):
            AuditRecord.load(path)


def test_bounds_are_numbers_and_their_domain():
    box = Domain(np.array([0.0, -np.inf]), 2.0)
    bounds = Bounds.of(box)
    assert bounds == Bounds((0.0, None), 2.0)
    assert bounds.domain.contains(np.array([[1.0, -9.0]]))
    assert Bounds.of(Domain()) == Bounds()
    assert replace(bounds, high=None).domain.contains(np.array([[1.0, 9.0]]))
