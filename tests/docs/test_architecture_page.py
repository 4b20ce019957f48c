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


# A change, words of the row that a stranger would look up, the file that the row names, and what is changed there.
CHANGES = (
    ("another text for an empty budget", "what a message says", "messages/catalogue.py", "out-of-budget"),
    ("a flip of a twentieth of the norm is no leak", "which leaks an audit finds", "audit/verdict.py", "SMALL_FLIP"),
    ("a copy must err by less to be close", "when a network counts as a copy", "audit/facts.py", "CLOSE"),
    ("an audit asks 200,000 rows by itself", "how the budget of an audit is shared", "audit/budget.py", "BUDGET"),
    ("two decimals more in the sweep", "which ones an audit tries", "audit/defense_sweep.py", "DECIMALS"),
    ("another name of a defense on the page", "its name on a page", "report/text.py", "DEFENSE_NAMES"),
    ("a column in the table of defenses", "a sentence, a picture or a table", "report/sweep_text.py", "COLUMNS"),
    ("the meaning of a figure", "a number's meaning on hover", "report/page.py", "MEANINGS"),
    ("an open leak is an error in SARIF", "the severity of a leak", "report/sarif.py", "SEVERITIES"),
    ("a gate has a status of its own", "that of a gate", "cli/commands/audit_commands.py", "gates"),
    ("another column of the progress bar", "its progress bar", "cli/screen.py", "COLUMNS"),
    ("more lines in the check of an interface", "how many lines the check", "interface/health.py", "VERB_LINES"),
    ("softplus is recognised", "probabilities, percentages and values", "interface/kinds.py", "class Likeness"),
    ("longer pauses before a call is repeated", "which failures are asked again", "oracles/retry.py", "class Retrying"),
    ("credentials in two headers", "how a served model is queried", "oracles/http/security.py", "class Secret"),
    (
        "another form of the blocks on disk",
        "what the transcript writes",
        "oracles/framelog.py",
        "class FrameLog",
    ),
    ("few digits are tried before one hidden layer", "which method `extract` tries", "extraction/ladder.py", "LADDER"),
    ("verification at a fifth scale", "where these points lie", "verification/points.py", "SCALES"),
    ("a student takes more steps", "what a student is trained on", "learning/student.py", "STEPS"),
    ("another range of an estimate", "what `estimate` predicts", "estimation/cost.py", "def range"),
)


def test_twenty_changes_lead_to_the_place_that_the_page_names():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("## Where a change goes")[2]
    rows = [line for line in page.partition("## How a question")[0].splitlines() if line.startswith("| ")]
    for change, words, file, name in CHANGES:
        named = [row for row in rows if words in row and (f"`{file}`" in row or f"`{Path(file).name}`" in row)]
        assert len(named) == 1, f"{change}: no row, or several, have {words!r} and {file}"
        assert name in (SOURCE / file).read_text("utf-8"), f"{change}: {name} is not in {file}"
