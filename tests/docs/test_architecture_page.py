"""The map of the package: its picture and its table of modules are those of the code."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_map_is_the_one_of_the_code(script):
    assert script("draw_architecture.py", "--check") == 0, "run: python scripts/draw_architecture.py"


def test_every_place_named_for_a_change_exists():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("## Where a change goes")[2]
    rows = [line.split("|")[2] for line in page.partition("## How a question")[0].splitlines() if "`" in line]
    named = [part for row in rows for part in row.split("`")[1::2] if part.endswith((".py", "/"))]
    places = [part.replace("<method>", "depth_two") for part in named]
    source = ROOT / "src" / "reluctant"
    assert len(places) > 20
    missing = [place for place in places if not (source / place).exists() and not list(source.rglob(place))]
    assert missing == []
