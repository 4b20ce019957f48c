"""Diagnoses are data; the catalogue has a text for each slug and each purpose, and an edge writes the remedies."""

from __future__ import annotations

import json

from reluctant.cli.advice import as_command
from reluctant.messages import Diagnosis, Remedy, as_python
from reluctant.messages.catalogue import PURPOSES, TEXTS
from reluctant.results import Outcome

READ = Diagnosis("non-finite", remedies=(Remedy("read-link", "open", {"link": "softmax", "percent": True}),))


def test_a_remedy_is_written_by_the_edge():
    assert "rl.open_oracle(..., link='softmax', percent=True)" in str(READ)
    assert "--link softmax --percent" in READ.text(as_command)
    assert "--" not in str(READ)


def test_a_value_that_only_the_user_knows_stays_open():
    remedy = Remedy("give-domain", "extract", {"domain": None})
    assert as_python(remedy) == "rl.extract(..., domain=...)"
    assert as_command(remedy) == "reluctant extract --domain LOW,HIGH"


def test_what_happened_comes_without_remedies():
    assert str(READ).startswith(READ.happened)


def test_a_diagnosis_is_plain_data():
    assert json.loads(json.dumps(READ.to_dict())) == READ.to_dict()


def test_every_entry_renders_with_its_example():
    for slug, entry in TEXTS.items():
        found = Diagnosis(slug, entry.example or {}, entry.remedies)
        assert found.happened.endswith("."), slug
        assert "{" not in str(found), slug
        assert "--" not in str(found), slug


def test_every_purpose_has_room_for_the_call():
    assert [purpose for purpose, text in PURPOSES.items() if "{call}" not in text] == []


def test_every_outcome_renders_without_fields():
    assert [Diagnosis(outcome.slug).happened for outcome in Outcome] == [outcome.happened for outcome in Outcome]


def test_what_an_audit_says_is_in_the_catalogue_too():
    assert str(Diagnosis("left-out")) == "The settings of the audit leave this step out."
    assert str(Diagnosis("rows-ran-out", {"steps": ["span", "flip"]})) == "The rows for span and flip ran out."
    why = Diagnosis("time-over").to_dict()
    assert Diagnosis("step-not-ended", {"step": "span", "why": why}).happened.endswith(
        Diagnosis.from_dict(why).happened
    )


def test_a_slug_without_an_entry_is_read_out():
    assert str(Diagnosis("something-new", {"rows": 3})) == "Something new (rows: 3)."


def test_a_field_that_is_missing_leaves_a_dash():
    assert "–" in Diagnosis("unusable-answers").happened
