"""The page in a real browser: offline and quiet, light and dark, wide and narrow, sorted, read by everybody."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

from reluctant.report.page import MOST_WORDS

PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 900}
FILM = "document.querySelector('.film .scroll')"


@pytest.fixture
def report(write_report) -> Path:
    return write_report()


def test_it_loads_offline_and_says_nothing(visit, report):
    page = visit(report)
    assert page.title() == "Audit of digits-64-32-10.onnx – reluctant"
    assert page.locator("section").count() == 13
    assert page.locator(".picture svg").count() == 9
    assert not page.locator("#limits li").first.is_visible()
    page.get_by_role("link", name="Limits and assumptions").click()
    page.locator("#limits li").first.wait_for(state="visible")


def test_layers_open_at_a_click_and_all_at_once(visit, report):
    page = visit(report)
    first = "#content details.layer[open]"
    assert page.locator(first).count() == 2
    page.locator("#steps summary").click()
    assert page.locator("#steps table").is_visible()
    page.get_by_role("button", name="Open all sections").click()
    assert page.locator(first).count() == page.locator("section").count()


@pytest.mark.parametrize("data", ["record", "unreachable"])
def test_the_first_screen_is_short(data, visit, write_report, request):
    page = visit(write_report(request.getfixturevalue(data)))
    assert 5 < len(page.locator(".lead").inner_text().split()) <= MOST_WORDS
    page.locator(".lead summary").click()
    assert "Confidence." in page.locator(".lead").inner_text() or data == "unreachable"


def test_every_number_has_a_meaning(visit, report):
    """On hover at its name, and in the last section."""
    page = visit(report)
    named = page.locator(".figures div, .facts tr, th.n").evaluate_all("all => all.map(each => each.title)")
    assert len(named) > 25
    assert all(len(title) > 10 for title in named)
    notes = page.locator("#meanings dd").all_text_contents()
    assert set(named) <= set(notes)


def test_a_request_would_be_heard(visit, report, heard):
    """The check above can fail."""
    report.write_text(report.read_text("utf-8").replace("</main>", '<img src="other.png" alt="no"></main>'), "utf-8")
    visit(report)
    assert any("other.png" in sound for sound in heard)
    heard.clear()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_light_or_dark(scheme, visit, report, tmp_path):
    page = visit(report, color_scheme=scheme)
    page.screenshot(path=tmp_path / "page.png")
    pixels = imread(tmp_path / "page.png")[:, :, :3].mean(axis=2)
    background = pixels[400, 5]
    assert background < 0.2 if scheme == "dark" else background > 0.9
    assert pixels.std() > 0.03  # something is drawn on it


@pytest.mark.parametrize("data", ["record", "hostile_record", pytest.param("unreachable", marks=pytest.mark.slow)])
@pytest.mark.parametrize("viewport", [PHONE, pytest.param(DESK, marks=pytest.mark.slow)], ids=["phone", "desk"])
def test_nothing_is_wider_than_the_page(viewport, data, visit, write_report, request):
    page = opened(visit(write_report(request.getfixturevalue(data)), viewport=viewport))
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("data", ["record", pytest.param("unreachable", marks=pytest.mark.slow)])
def test_everybody_can_read_it(scheme, data, visit, write_report, request):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe: install the extra dev")
    page = opened(visit(write_report(request.getfixturevalue(data)), color_scheme=scheme))
    found = axe.Axe().run(page).response
    assert len(found["passes"]) > 15
    serious = [each for each in found["violations"] if each["impact"] in {"serious", "critical"}]
    assert [(each["id"], [node["html"][:100] for node in each["nodes"]]) for each in serious] == []


def opened(page: Any) -> Any:
    """The page with all its layers open."""
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    return page


def column(page: Any, table: str, number: int) -> list[str]:
    return page.locator(f"{table} tbody tr").evaluate_all(
        f"rows => rows.map(row => row.cells[{number}].dataset.key ?? row.cells[{number}].textContent)"
    )


def test_the_defenses_need_no_scrolling_beside_the_contents(visit, report):
    page = visit(report, viewport={"width": 1200, "height": 900})
    assert page.locator("nav.contents").bounding_box()["x"] > 900  # it stands beside
    table = "document.querySelector('#defenses .scroll')"
    shown, whole = (page.evaluate(f"{table}.{which}Width") for which in ("client", "scroll"))
    assert 700 < whole <= shown


def test_no_name_in_a_picture_is_cut(visit, report):
    page = opened(visit(report, viewport={"width": 1200, "height": 900}))
    outside = page.locator(".picture svg").evaluate_all(
        """pictures => pictures.flatMap(svg => [...svg.querySelectorAll("text")].filter(text => {
          const [a, b] = [text.getBoundingClientRect(), svg.getBoundingClientRect()];
          return a.left < b.left - 1 || a.right > b.right + 1;
        }).map(text => text.textContent))"""
    )
    assert outside == []


def test_tables_are_sorted_by_a_click(visit, report):
    page = opened(visit(report))
    before = column(page, "#queries", 1)
    heading = page.locator("#queries thead th").nth(1)
    heading.get_by_role("button").click()
    assert column(page, "#queries", 1) == sorted(before, key=int) != before
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.get_by_role("button").click()
    assert column(page, "#queries", 1) == sorted(before, key=int, reverse=True)
    assert heading.get_attribute("aria-sort") == "descending"
    page.locator("#queries thead th").nth(0).get_by_role("button").click()
    assert column(page, "#queries", 0) == sorted(column(page, "#queries", 0), key=str.lower)
    assert heading.get_attribute("aria-sort") is None


def test_what_is_not_known_is_last_both_ways(visit, report):
    page = visit(report)
    for _ in range(2):
        page.locator("#defenses thead th").nth(1).get_by_role("button").click()
        errors = column(page, "#defenses", 1)
        known = [each for each in errors if each]
        assert 0 < len(known) < len(errors)
        assert errors[: len(known)] == known
    assert [float(each) for each in known] == sorted(map(float, known), reverse=True)


def test_sorting_by_keyboard(visit, report):
    page = opened(visit(report))
    page.locator("#steps thead button").nth(3).focus()
    page.keyboard.press("Enter")
    queries = [int(each) for each in column(page, "#steps", 3)]
    assert queries == sorted(queries)


def test_it_is_whole_without_script(visit, report):
    page = visit(report, java_script_enabled=False)
    assert page.locator("#defenses tbody tr").count() == 9
    assert page.locator("thead button").count() == 0


def test_nothing_in_a_record_runs(visit, write_report, hostile_record):
    page = opened(visit(write_report(hostile_record)))
    assert page.title() == f"Audit of {hostile_record['target']['name']} – reluctant"
    assert page.locator("script").count() == 1
    assert page.locator("img").count() == 0
    limits = [" ".join(limit["fields"]["message"].split()) for limit in hostile_record["limits"]]
    assert page.locator("#limits li").all_inner_texts() == limits


def test_it_prints_on_a_few_pages(visit, report, tmp_path):
    page = visit(report, color_scheme="dark")
    page.pdf(path=tmp_path / "page.pdf", format="A4")
    pages = (tmp_path / "page.pdf").read_bytes().count(b"/Type /Page\n")
    assert 4 <= pages <= 10
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav.contents").is_visible()


def test_the_film_is_whole_without_motion(visit, report, tmp_path):
    """Marks of creases are there at once for a reader who wants no motion, and have yet to come for others."""
    for motion in ("reduce", "no-preference"):
        page = opened(visit(report, reduced_motion=motion))
        page.locator(".film svg").screenshot(path=tmp_path / f"{motion}.png", animations="allow")
    still, moving = (marks(imread(tmp_path / f"{motion}.png")) for motion in ("reduce", "no-preference"))
    assert still > 30
    assert moving < still


def marks(picture) -> int:
    """Pixels in the colour of a found crease."""
    red, green, blue = (picture[:, :, channel] for channel in range(3))
    return int(((red > 0.65) & (green < 0.4) & (blue < 0.25)).sum())


def test_the_search_fits_a_phone(visit, report):
    page = opened(visit(report, viewport=PHONE))
    shown, whole = (page.evaluate(f"{FILM}.{which}Width") for which in ("client", "scroll"))
    assert 250 < whole <= shown


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="no pdftotext: install the Debian package poppler-utils")
def test_a_table_that_goes_on_overleaf_has_its_heading_again(visit, write_report, record, tmp_path):
    rows = {"asked": 3, "sent": 3, "replayed": 0}
    record["queries"]["by_stage"] = {f"stage {number}": rows for number in range(120)}
    page = visit(write_report(record))
    page.pdf(path=tmp_path / "page.pdf")
    command = ["pdftotext", "-layout", tmp_path / "page.pdf", "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pages = sum("stage 1" in leaf or "stage 9" in leaf for leaf in text.split("\f"))
    assert pages > 1
    assert len(re.findall(r"stage +asked", text)) >= pages
