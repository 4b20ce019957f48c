"""A record from a file: the page of a good one, and what is said about a bad one."""

from __future__ import annotations

import json

import pytest
from page_kit import typed

from reluctant.cli.app import run
from reluctant.errors import InvalidInput
from reluctant.report import report, verdict_sentence


@pytest.fixture
def write(tmp_path):
    def write_file(text: str | bytes):
        path = tmp_path / "audit.json"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_file


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "JSON"),
        (b"\xff\xfe\x00", "JSON"),
        ("<!doctype html>", "JSON"),
        ('{"schema": NaN}', "NaN"),
        ("[1, 2]", "schema None"),
        ('{"schema": 1, "command": "extract"}', "schema 1"),
        ('{"schema": "reluctant-audit/1"}', "schema 'reluctant-audit/1'"),
        ('{"schema": "reluctant-audit/4"}', "seed"),
    ],
)
def test_another_file_is_refused_with_the_reason(write, tmp_path, text, named):
    with pytest.raises(InvalidInput, match="RECORD") as caught:
        report(write(text), tmp_path / "page.html")
    assert named in str(caught.value)
    assert not (tmp_path / "page.html").exists()


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InvalidInput, match="No such file"):
        report(tmp_path / "audit.json", tmp_path / "page.html")


WRONG = {
    "another level": ("verdict.level", lambda d: d["verdict"].update(level="terrible")),
    "a search of other data": ("pictures.search", lambda d: d["pictures"].update(search={"a": 1})),
    "a search without order": ("not in order", lambda d: d["pictures"]["search"]["t"].reverse()),
    "a search cut off": ("not of one length", lambda d: d["pictures"]["search"]["round"].pop()),
    "noise that is no number": ("interface.noise", lambda d: d["interface"].update(noise="x")),
    "a ragged plane": ("rows of values", lambda d: d["pictures"]["plane"]["values"][0].pop()),
    "a line cut off": ("positions and answers", lambda d: d["pictures"]["line"]["positions"].pop()),
    "images of another height": ("height times width", lambda d: d["pictures"]["first_layer"].update(height=3)),
    "a flip of one class": ("flip.classes", lambda d: d["flip"].update(classes=[1])),
    "a flip of two lengths": ("start and x", lambda d: d["flip"]["x"].pop()),
    "a histogram cut off": ("one edge more", lambda d: d["pictures"]["errors"][0]["counts"].pop()),
    "gradients cut off": ("the curves and radii", lambda d: d["linearity"]["radii"].pop()),
    "an empty line": ("no page can be made", lambda d: d["pictures"]["line"].update(positions=[], answers=[])),
}


@pytest.mark.parametrize("name", WRONG)
def test_numbers_that_do_not_fit_together_are_refused(write, record, name, tmp_path, capsys):
    place, spoil = WRONG[name]
    spoil(record)
    assert run(["report", str(write(json.dumps(record))), "-o", str(tmp_path / "page.html")]) == 2
    told = capsys.readouterr().err
    assert "RECORD" in told
    assert place in told
    assert not (tmp_path / "page.html").exists()


def test_the_command_writes_the_page(write, record, tmp_path, capsys):
    assert run(["report", str(write(json.dumps(record))), "-o", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_text("utf-8").startswith("<!doctype html>")
    printed = capsys.readouterr().out
    assert verdict_sentence(typed(record)) in printed
    assert str(tmp_path / "page.html") in printed


def test_the_command_refuses_a_wrong_file(write, tmp_path, capsys):
    assert run(["report", str(write("{}")), "-o", str(tmp_path / "page.html")]) == 2
    assert "expected schema 'reluctant-audit/4'" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


def test_the_command_refuses_a_folder_that_is_not_there(write, record, tmp_path, capsys):
    assert run(["report", str(write(json.dumps(record))), "-o", str(tmp_path / "no" / "page.html")]) == 2
    assert "an existing folder" in capsys.readouterr().err
