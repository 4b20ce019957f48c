"""The map of the package: its picture and its table of modules are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "reluctant"


def test_the_map_is_the_one_of_the_code(script):
    assert script("draw_architecture.py", "--check") == 0, "run: python scripts/draw_architecture.py"


def test_every_place_named_for_a_change_exists():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("## Where a change goes")[2]
    rows = [line.split("|")[2] for line in page.partition("## How a question")[0].splitlines() if "`" in line]
    named = [part for row in rows for part in row.split("`")[1::2] if part.endswith((".py", "/"))]
    places = [part.replace("<method>", "depth_two") for part in named]
    assert len(places) > 20
    assert [place for place in places if not _exists(place)] == []


def test_what_contributing_names_is_where_it_says():
    """In its table each file exists, and a name before a file in parentheses is defined there."""
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Adding things")[2]
    files = re.findall(r"`([\w/]+(?:\.py|\.html|/))`", table)
    assert len(files) > 15
    assert [file for file in files if not _exists(file)] == []
    for names, file in re.findall(r"((?:`\w+`(?: and )?)+) \(`([\w/]+\.py)`\)", table):
        text = (SOURCE / file).read_text("utf-8")
        for name in names.replace("`", "").split(" and "):
            assert re.search(rf"^(?:class |def )?{name}\b", text, re.MULTILINE), f"{name} is not in {file}"


def _exists(place: str) -> bool:
    return (ROOT / place).exists() or (SOURCE / place).exists() or bool(list(SOURCE.rglob(place)))
