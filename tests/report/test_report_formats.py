"""SARIF and JUnit XML of a record: valid, with every leak in its place, and made of the record alone."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

import reluctant as rl
from reluctant.audit.record import LEAKS, AuditRecord
from reluctant.errors import InvalidInput
from reluctant.messages import Diagnosis
from reluctant.report import junit_text, sarif_log

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
LEVEL = {"enum": ["none", "note", "warning", "error"]}


def closed(required: list[str], **properties: object) -> dict[str, object]:
    """An object with these properties and no others."""
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def many(items: object) -> dict[str, object]:
    return {"type": "array", "items": items}


# What SARIF 2.1.0 and code scanning ask of the properties that are used here.
PLACE = closed(
    ["artifactLocation", "region"],
    artifactLocation=closed(["uri"], uri={"type": "string", "pattern": r"^(file://)?[^:\s]+$"}),
    region=closed(["startLine"], startLine={"type": "integer", "minimum": 1}),
)
RULE = closed(
    ["id"], id={"type": "string"}, name={"type": "string"}, shortDescription=TEXT, fullDescription=TEXT, help=TEXT,
    defaultConfiguration=closed(["level"], level=LEVEL), properties={"type": "object"},
)  # fmt: skip
RESULT = closed(
    ["ruleId", "message", "locations", "partialFingerprints"], ruleId={"type": "string"}, ruleIndex={"type": "integer"},
    level=LEVEL, message=TEXT, partialFingerprints={"type": "object", "additionalProperties": {"type": "string"}},
    locations=many(closed(
        ["physicalLocation"], physicalLocation=PLACE,
        logicalLocations=many(closed([], name={"type": "string"}, kind={"type": "string"})),
    )),
)  # fmt: skip
INVOCATION = closed(
    ["executionSuccessful"], executionSuccessful={"type": "boolean"}, commandLine={"type": "string"},
    toolExecutionNotifications=many(
        closed(["message"], level=LEVEL, message=TEXT, descriptor=closed(["id"], id={"type": "string"}))
    ),
)  # fmt: skip
RUN = closed(
    ["tool", "results"], results=many(RESULT), invocations=many(INVOCATION), properties={"type": "object"},
    tool=closed(["driver"], driver=closed(["name"], name={"const": "reluctant"}, version=True, rules=many(RULE))),
    automationDetails=closed(["id"], id={"type": "string"}),
)  # fmt: skip
SARIF = closed(["version", "runs"], **{"$schema": True, "version": {"const": "2.1.0"}, "runs": many(RUN)})


def run_of(record: dict) -> dict:
    """The one run of a valid log."""
    log = json.loads(json.dumps(sarif_log(AuditRecord.from_dict(record))))
    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [result["ruleId"] for result in run["results"]]
    prints = [result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]]
    assert len(set(prints)) == len(prints)
    return run


def cases_of(record: dict) -> dict[str, ElementTree.Element | None]:
    """How every test ended, by its name in its suite: an element, None where it passed."""
    root = ElementTree.fromstring(junit_text(AuditRecord.from_dict(record)))
    found = {f"{suite.get('name')}.{case.get('name')}": case for suite in root for case in suite.iter("testcase")}
    ended = {name: next((each for each in case if each.tag != "system-out"), None) for name, case in found.items()}
    tags = ["" if each is None else each.tag for each in ended.values()]
    counted = {"tests": len(tags), "failures": tags.count("failure"), "errors": tags.count("error")}
    assert {name: int(root.get(name) or -1) for name in counted} == counted
    return ended


@pytest.fixture
def undecided(record) -> dict:
    """Nothing was found, and copies are not settled."""
    reason = Diagnosis("rows-ran-out", {"steps": ["extraction"]}).to_dict()
    record["verdict"] |= {
        "level": "unknown", "leaks": [], "unsettled": ["extractable", "approximable"],
        "reasons": [{"diagnosis": reason, "step": "extraction"}],
    }  # fmt: skip
    return record


# ---- SARIF


def test_every_leak_is_a_result_with_its_rule(record):
    run = run_of(record)
    assert [(each["ruleId"], each["level"]) for each in run["results"]] == [
        ("extractable", "error"), ("approximable", "error"), ("span", "warning"), ("flippable", "warning"),
    ]  # fmt: skip
    assert "2,410 parameters in 1,183 queries" in run["results"][0]["message"]["text"]
    assert "float16" in run["results"][0]["message"]["text"]
    assert run["invocations"][0]["executionSuccessful"] is True


def test_what_is_not_settled_is_a_warning_and_its_reason_a_note(undecided):
    results = run_of(undecided)["results"]
    assert [(each["ruleId"], each["level"]) for each in results] == [
        ("leak-not-settled", "warning"), ("leak-not-settled", "warning"), ("rows-ran-out", "note"),
    ]  # fmt: skip
    assert "extractable" in results[0]["message"]["text"]


def test_a_target_that_did_not_open_is_an_execution_that_failed(unreachable):
    run = run_of(unreachable)
    assert run["invocations"][0]["executionSuccessful"] is False
    assert run["invocations"][0]["toolExecutionNotifications"][0]["level"] == "error"


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("models/my digits.onnx", "models/my%20digits.onnx"),
        ("/home/me/digits.onnx", "file:///home/me/digits.onnx"),
        ("https://host:8080/v2/models/digits", "host_8080/v2/models/digits"),
        ("package.served:predict", "package/served.py"),
    ],
)
def test_a_place_is_one_that_code_scanning_takes(location, place, record):
    record["target"]["location"] = location
    found = run_of(record)["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert found == place


# ---- JUnit


def test_every_leak_that_was_found_fails(record):
    ended = cases_of(record)
    assert [ended[f"reluctant.leaks.{leak}"].tag for leak in LEAKS] == ["failure"] * 4
    assert ended["reluctant.steps.extraction"] is None
    assert ended["reluctant.steps.learning"].tag == "skipped"


def test_with_gates_these_alone_fail(record):
    record["gates"] = ["extractable"]
    ended = cases_of(record)
    assert [ended[f"reluctant.leaks.{leak}"].tag for leak in LEAKS] == ["failure", "skipped", "skipped", "skipped"]


@pytest.mark.parametrize(("gates", "tag"), [([], "skipped"), (["extractable"], "failure")])
def test_what_is_not_settled_does_not_pass(gates, tag, undecided):
    undecided["gates"] = gates
    ended = cases_of(undecided)
    assert ended["reluctant.leaks.extractable"].tag == tag
    assert "ran out" in ended["reluctant.leaks.extractable"].get("message")
    assert ended["reluctant.leaks.span"] is None


def test_a_step_that_failed_is_an_error(unreachable):
    assert cases_of(unreachable)["reluctant.steps.open"].tag == "error"


def test_texts_of_others_stay_texts(hostile_record):
    hostile_record["verdict"]["reasons"][0]["diagnosis"]["slug"] = "\x00\x1b[31m]]>"
    run_of(hostile_record)
    cases_of(hostile_record)


# ---- files


@pytest.mark.parametrize(
    ("name", "starts"), [("a.sarif", "{"), ("a.xml", "<?xml"), ("a.json", "{"), ("a", "<!doctype")]
)
def test_the_ending_decides(name, starts, record, tmp_path):
    assert rl.report(record, tmp_path / name).read_text("utf-8").startswith(starts)


def test_a_format_that_is_none_is_refused(record, tmp_path):
    with pytest.raises(InvalidInput, match="format"):
        rl.report(record, tmp_path / "a.pdf", format="pdf")


def test_a_record_written_as_json_is_the_record(record, tmp_path):
    path: Path = rl.report(record, tmp_path / "again", format="json")
    assert AuditRecord.load(path).to_dict() == AuditRecord.from_dict(record).to_dict()
