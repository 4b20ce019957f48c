"""The page of the experiments: everything of a record is on it, in a real browser too, and words stay words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reluctant.papers.experiments.gallery import gallery_page

HOSTILE = "<script>document.title='ran'</script>"
SVG = '<svg viewBox="0 0 9 9" xmlns="http://www.w3.org/2000/svg"><path d="M0 0L9 9" stroke="currentColor"/></svg>'
PHONE = {"width": 360, "height": 740}


def finding(name: str, **other: Any) -> dict[str, Any]:
    return {
        "name": name, "where": "Figure 1", "title": f"Title of {name}", "claim": "The claim.",
        "measured": "0.25 × 10⁻³.",
        "paper": {"title": "A paper", "authors": "Author", "venue": "Somewhere 2020"}, "ok": True,
        "columns": ["shape", "value", "how"], "rows": [["a-1", 0.003, "x"], ["b-1", 12.5, "y"], ["c-1", None, "z"]],
        "checks": [{"name": "it holds", "value": 0.5, "low": 0.0, "high": 1.0, "ok": True}], "notes": ["A note."],
        "error": None, "size": "quick", "seed": 3, "seconds": 1.5, "command": f"reluctant reproduce {name}",
        "version": "1.0",
    } | other  # fmt: skip


FAILING = {"ok": False, "checks": [{"name": "too large", "value": 2.0, "low": 0.0, "high": 1.0, "ok": False}]}
BROKEN = {"ok": False, "columns": [], "rows": [], "checks": [], "error": "Traceback: ran dry", "measured": ""}


@pytest.fixture
def write_gallery(tmp_path: Path):
    def write(*records: dict[str, Any]) -> Path:
        (tmp_path / "index.html").write_text(
            gallery_page(records, {record["name"]: SVG for record in records}), encoding="utf-8"
        )
        return tmp_path / "index.html"

    return write


def test_all_of_a_finding_is_on_the_page():
    page = gallery_page([finding("one")], {"one": SVG})
    for text in ("Figure 1", "A paper", "The claim.", "0.003", "12.5", "it holds", "A note.", "reluctant reproduce one",
                 "Seed 3", "1.5 s", "Title of one", "The check holds", "one.json", SVG):  # fmt: skip
        assert text in page


@pytest.mark.parametrize(
    "inside",
    [
        HOSTILE,
        "<path onclick=\"document.title='ran'\"/>",
        '<image href="http://host/x.png"/>',
        '<a href="javascript:void(0)"/>',
        "<foreignObject><body/></foreignObject>",
        "<style>@import 'x.css';</style>",
        '<rect style="fill: url(http://host/x)"/>',
        "<path",
    ],
)
def test_a_picture_that_does_more_than_draw_is_left_out(inside):
    page = gallery_page([finding("one")], {"one": SVG.replace("<path", f"{inside}<path", 1)})
    assert 'class="picture"' not in page
    assert inside not in page
    assert "The claim." in page


def test_a_picture_with_a_document_type_is_left_out():
    assert 'class="picture"' not in gallery_page([finding("one")], {"one": f"<!DOCTYPE svg>{SVG}"})


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ([finding("one"), finding("two", **FAILING)], "1 of 2 checks hold."),
        ([finding("one"), finding("two", **BROKEN)], "The check holds, two did not run."),
        ([], "Nothing has been run."),
    ],
)
def test_the_head_says_how_it_stands(records, sentence):
    page = gallery_page(records, {})
    assert f'<p class="sentence">{sentence}</p>' in page
    assert ("verdict good" in page) == (sentence == "Nothing has been run.")


def test_what_went_wrong_is_shown():
    page = gallery_page([finding("two", **BROKEN)], {})
    assert "ran dry" in page
    assert "two.txt" not in page


def test_words_stay_words():
    texts = dict.fromkeys(("where", "title", "claim", "measured", "command", "size", "version"), HOSTILE)
    record = finding("one", **texts, columns=[HOSTILE], rows=[[HOSTILE]], notes=[HOSTILE])
    page = gallery_page([record, finding("two", **(BROKEN | {"error": HOSTILE}))], {})
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("authors", "short"),
    [("One", "One 2020"), ("One and Two", "One and Two 2020"), ("One, Two and Three", "One et al. 2020")],
)
def test_a_paper_has_a_short_name_at_the_head(authors, short):
    record = finding("one", paper={"title": "A paper", "authors": authors, "venue": "Somewhere 2020"})
    assert f">{short}<" in gallery_page([record], {})


def test_papers_stand_together():
    other = {"paper": {"title": "Another", "authors": "B", "venue": "C"}}
    page = gallery_page([finding("one"), finding("two", **other), finding("three")], {})
    assert page.index('id="one"') < page.index('id="three"') < page.index('id="two"')


# ---- in a browser


def test_it_loads_offline_and_is_sorted_by_a_click(visit, write_gallery):
    page = visit(write_gallery(finding("one"), finding("two", **FAILING), finding("three", **BROKEN)))
    assert page.title() == "Four papers, run again – reluctant"
    assert page.locator("article").count() == 3
    heading = page.locator("#one thead th").nth(1).get_by_role("button")
    values = page.locator("#one table").first.locator("tbody tr td:nth-child(2)")
    heading.click()
    heading.click()
    assert values.all_text_contents() == ["12.5", "0.003", "–"]
    assert page.locator("#two details table").is_visible()  # what does not hold is open
    assert not page.locator("#one details table").is_visible()


@pytest.mark.parametrize("viewport", [PHONE, None], ids=["phone", "desk"])
def test_no_finding_is_wider_than_the_page(viewport, visit, write_gallery):
    wide = finding("wide", columns=[f"column {i}" for i in range(20)], rows=[[1.234e-5] * 20])
    page = visit(write_gallery(wide, finding("three", **BROKEN)), **({"viewport": viewport} if viewport else {}))
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_findings(scheme, visit, write_gallery):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe: install the extra dev")
    path = write_gallery(finding("one"), finding("two", **FAILING), finding("three", **BROKEN))
    page = visit(path, color_scheme=scheme)
    found = axe.Axe().run(page).response
    assert len(found["passes"]) > 15
    serious = [each for each in found["violations"] if each["impact"] in {"serious", "critical"}]
    assert [(each["id"], [node["html"][:100] for node in each["nodes"]]) for each in serious] == []
