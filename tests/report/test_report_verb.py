"""`rl.report`: the page of an audit, of its record, of its file."""

from __future__ import annotations

import json

import pytest

import reluctant as rl
from reluctant.errors import InvalidInput
from reluctant.testing import planted


def test_an_audit_its_record_and_its_file_make_one_page(tmp_path):
    found = rl.audit(planted((3, 4, 1)), budget=500, steps=["health"])
    found.write(tmp_path / "audit.json")
    record = json.loads((tmp_path / "audit.json").read_text())
    pages = [
        rl.report(source, tmp_path / f"{k}.html").read_text()
        for k, source in enumerate([found, record, tmp_path / "audit.json"])
    ]
    assert pages[0] == pages[1] == pages[2]
    assert all(page.startswith("<!doctype html>") for page in pages)


def test_a_folder_that_is_missing_is_refused(tmp_path, record):
    with pytest.raises(InvalidInput, match="path"):
        rl.report(record, tmp_path / "missing" / "report.html")


def test_something_else_is_refused(tmp_path):
    with pytest.raises(InvalidInput):
        rl.report({"verdict": "fine"}, tmp_path / "report.html")
