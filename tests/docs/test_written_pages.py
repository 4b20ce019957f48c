"""Pages that scripts write are up to date, links between pages lead somewhere, and evidence has a description."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from examples import PAGES, ROOT, python_examples

import reluctant as rl
from reluctant.testing import planted

LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)|!\[[^\]]*\]\((?P<picture>[^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (?P<title>.*)$", re.MULTILINE)


@pytest.mark.parametrize("name", ["cli_page.py", "notebook.py"])
def test_a_page_is_what_its_script_writes(name: str, script: Callable[..., object]) -> None:
    assert script(name, "--check") == 0


def test_the_notebook_has_the_code_of_the_tutorial() -> None:
    notebook = json.loads((ROOT / "docs" / "tutorial.ipynb").read_text("utf-8"))
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code == [example.rstrip("\n") for example in python_examples(ROOT / "docs" / "tutorial.md")]
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(CODE, "", page.read_text("utf-8"))
    for found in LINK.finditer(text):
        target = found["target"] or found["picture"]
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        file = page if not name else (page.parent / name).resolve()
        assert file.exists(), f"{page.name}: {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as the site and the code host write them."""
    titles = [found["title"] for found in HEADING.finditer(page.read_text("utf-8"))]
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f" {page.name}\n" not in navigation] == []


def test_evidence_is_described() -> None:
    page = (ROOT / "docs" / "evidence.md").read_text("utf-8")
    network = planted((4, 2, 1), 3)
    results = [
        rl.extract(network, rng=0),
        rl.extract(rl.defend(rl.open_oracle(network), "decimals=4"), rng=0),
        rl.extract(lambda x: 1 / (1 + np.exp(-np.clip(network(x), -700, 700))), dim=4, rng=0),
        rl.extract(network, budget=60, rng=0),
        rl.recover_span(planted((12, 3, 1), 0), rng=0),
        rl.recover_span(planted((8, 2, 1), 0), rng=0, labels=True),
        rl.learn(network, rng=0),
        rl.train_student(network, rng=0, rows=500, steps=20),
        rl.flip_sign(network, np.ones(4)),
    ]
    keys = {key for result in results for key in result.evidence}
    assert len(keys) > 12
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []


def test_the_changelog_says_what_changed_and_not_how() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    entries = re.findall(r"^- .*(?:\n  .*)*", text, re.MULTILINE)
    assert not [entry for entry in entries if entry.count("\n") >= 3], "at most three lines an entry"
    headings = re.findall(r"^### (\w+)", text.split("\n## ", 2)[1], re.MULTILINE)
    assert len(headings) == len(set(headings))
