"""Two audits compared: leaks and figures that got worse or better, as a value and as a command."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest

from reluctant.audit import compare_audits
from reluctant.audit.changes import FigureChange
from reluctant.audit.record import AuditRecord, LeakKind, LeakState
from reluctant.cli.app import run

EXAMPLE = Path(__file__).parents[1] / "report" / "example-audit.json"  # everything leaks


@pytest.fixture
def leaking() -> dict:
    return json.loads(EXAMPLE.read_text("utf-8"))


@pytest.fixture
def tight(leaking) -> dict:
    """The same target with nothing found."""
    record = deepcopy(leaking)
    record["verdict"] |= {"level": "nothing", "leaks": [], "unsettled": []}
    record |= {"recovered": None, "flip": None}
    return record


def changes(old: dict, new: dict):
    return compare_audits(AuditRecord.from_dict(old), AuditRecord.from_dict(new))


def test_an_audit_and_itself_are_equal(leaking):
    found = changes(leaking, leaking)
    assert (found.worse, found.better, found.ok) == ((), (), True)


def test_leaks_that_are_new(tight, leaking):
    found = changes(tight, leaking)
    assert found.new_leaks == tuple(LeakKind)
    assert not found.ok
    back = changes(leaking, tight)
    assert back.ok
    assert [each.leak for each in back.better] == list(LeakKind)


def test_what_is_no_longer_settled_is_worse_and_no_new_leak(tight):
    new = deepcopy(tight)
    new["verdict"]["unsettled"] = ["extractable"]
    found = changes(tight, new)
    assert (found.new_leaks, found.no_longer_settled, found.ok) == ((), (LeakKind.EXTRACTABLE,), False)
    assert changes(new, tight).better[0].after is LeakState.ABSENT


def test_a_copy_that_became_cheaper_is_worse_and_no_leak(leaking):
    new = deepcopy(leaking)
    new["recovered"]["queries"] = leaking["recovered"]["queries"] // 2
    new["flip"]["relative_size"] = 3 * leaking["flip"]["relative_size"]
    found = changes(leaking, new)
    queries = leaking["recovered"]["queries"]
    assert found.worse == (FigureChange("copy-queries", queries, queries // 2),)
    assert [each.figure for each in found.better] == ["flip-size"]
    assert found.ok


def test_small_changes_of_figures_are_not_listed(leaking):
    new = deepcopy(leaking)
    new["recovered"]["queries"] += 20
    new["recovered"]["error"]["typical"] *= 3
    assert changes(leaking, new).worse == changes(leaking, new).better == ()


@pytest.fixture
def files(tmp_path, tight, leaking) -> list[str]:
    for name, record in (("tight", tight), ("leaking", leaking)):
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    return [str(tmp_path / "tight.json"), str(tmp_path / "leaking.json")]


def test_the_command_says_what_changed(files, capsys):
    assert run(["compare-audits", *files]) == 1
    said = capsys.readouterr().out.splitlines()
    assert "Extractable" in said[0]
    assert said[-1].endswith("extractable, approximable, span, flippable.")
    assert run(["compare-audits", *files[::-1]]) == 0
    assert "extractable," not in capsys.readouterr().out
    assert run(["compare-audits", files[0], files[0]]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_the_command_writes_json(files, capsys):
    assert run(["compare-audits", *files, "--json", "-"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["new_leaks"] == ["extractable", "approximable", "span", "flippable"]
    assert found["worse"][0] == {"leak": "extractable", "before": "absent", "after": "found"}


def test_a_file_that_is_no_record_is_bad_input(files, tmp_path, capsys):
    (tmp_path / "other.json").write_text("{}")
    assert run(["compare-audits", files[0], str(tmp_path / "other.json")]) == 2
    assert len(capsys.readouterr().err.splitlines()) <= 2
