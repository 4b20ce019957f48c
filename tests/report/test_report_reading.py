"""A record from a file: what is accepted, and what is said about what is not."""

from __future__ import annotations

import json

import pytest

from reluctant.cli.app import run
from reluctant.errors import InvalidInput
from reluctant.report import check_audit, read_audit


@pytest.fixture
def write(tmp_path):
    def write_file(text: str | bytes):
        path = tmp_path / "audit.json"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_file


def test_the_record_that_the_command_wrote_is_read(write, record):
    assert read_audit(write(json.dumps(record))) == record


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON"),
        (b"\xff\xfe\x00", "no JSON"),
        ("<!doctype html>", "no JSON"),
        ('{"schema": NaN}', "no JSON (NaN"),
        ("[1, 2]", "schema None"),
        ('{"schema": 1, "command": "extract"}', "schema 1"),
        ('{"schema": "reluctant-audit/2"}', "schema 'reluctant-audit/2'"),
        ('{"schema": "reluctant-audit/1"}', "wrong at its top: 'command' is a required property"),
    ],
)
def test_another_file_is_refused_with_the_reason(write, text, said):
    with pytest.raises(InvalidInput, match="RECORD") as caught:
        read_audit(write(text))
    assert said in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InvalidInput, match="No such file"):
        read_audit(tmp_path / "audit.json")


def test_the_place_of_a_mistake_is_named(record):
    record["verdict"]["level"] = "terrible"
    with pytest.raises(InvalidInput, match="wrong at verdict/level: 'terrible' is not one of"):
        check_audit(record)


WRONG = {
    "a search of other data": ("pictures/search", lambda d: d["pictures"].update(search={"a": 1})),
    "a search without order": ("t is not in order", lambda d: d["pictures"]["search"]["t"].reverse()),
    "a search cut off": ("not of one length", lambda d: d["pictures"]["search"]["round"].pop()),
    "noise that is no number": ("health/noise", lambda d: d["health"].update(noise="x")),
    "health with more": ("health", lambda d: d["health"].update(more=1)),
    "a ragged slice": ("rows of values", lambda d: d["pictures"]["slice"]["values"][0].pop()),
    "a slice of one value": ("slice/values", lambda d: d["pictures"]["slice"].update(values=[[1.0]])),
    "an empty line": ("line/", lambda d: d["pictures"]["line"].update(positions=[], answers=[])),
    "a line cut off": ("positions and answers", lambda d: d["pictures"]["line"]["positions"].pop()),
    "images of another height": ("height times width", lambda d: d["pictures"]["first layer"].update(height=3)),
    "a flip of one class": ("flip/classes", lambda d: d["flip"].update(classes=[1])),
    "a flip of two lengths": ("start and x", lambda d: d["flip"]["x"].pop()),
    "a histogram cut off": ("one edge more", lambda d: d["pictures"]["errors"][0]["counts"].pop()),
    "gradients cut off": ("the curves and radii", lambda d: d["linearity"]["radii"].pop()),
}


@pytest.mark.parametrize("name", WRONG)
def test_numbers_that_do_not_fit_together_are_refused(write, record, name, tmp_path, capsys):
    place, spoil = WRONG[name]
    spoil(record)
    assert run(["report", str(write(json.dumps(record))), "-o", str(tmp_path / "page.html")]) == 2
    said = capsys.readouterr().err
    assert "RECORD" in said
    assert place in said
    assert not (tmp_path / "page.html").exists()


def test_whatever_else_a_page_stumbles_over_is_told(write, record, monkeypatch, capsys):
    monkeypatch.setattr("reluctant.report.write_audit_page", lambda out, data: data["nothing"])
    assert run(["report", str(write(json.dumps(record)))]) == 2
    assert "of which no page can be made (KeyError: 'nothing')" in capsys.readouterr().err


def test_the_command_writes_the_page(write, record, tmp_path, capsys):
    assert run(["report", str(write(json.dumps(record))), "-o", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_text("utf-8").startswith("<!doctype html>")
    said = capsys.readouterr().out
    assert record["verdict"]["sentence"] in said
    assert str(tmp_path / "page.html") in said


def test_the_command_refuses_a_wrong_file(write, tmp_path, capsys):
    assert run(["report", str(write("{}")), "-o", str(tmp_path / "page.html")]) == 2
    assert "expected schema 'reluctant-audit/1'" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


def test_the_command_refuses_a_folder_that_is_not_there(write, record, tmp_path, capsys):
    assert run(["report", str(write(json.dumps(record))), "-o", str(tmp_path / "no" / "page.html")]) == 2
    assert "an existing folder" in capsys.readouterr().err
