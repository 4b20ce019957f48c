"""The page of an audit: everything in one file, nothing of a record runs, the same record gives the same page."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from page_kit import states, typed, with_verdict

from reluctant.audit.record import LeakKind, Level
from reluctant.report import audit_page, three_figures, verdict_sentence
from reluctant.report.overview import level_words
from reluctant.report.page import CONTENTS
from reluctant.report.sweep_text import defense_table
from reluctant.report.tables import recovered_facts
from reluctant.report.text import flip_sentence

LOADING_ATTRIBUTES = {"src", "srcset", "data", "action", "poster", "background", "href", "xlink:href"}
LOADING_TAGS = {"iframe", "object", "embed", "link", "img", "base", "form"}
VOID = {"meta", "input", "link", "br", "img"}
LARGEST = 1_500_000  # bytes of a page
GOLDEN = Path(__file__).parent / "golden-audit.html"


class Page(HTMLParser):
    """Tags, attributes and text of a page, and whether every tag is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def html(written_record, page_of) -> str:
    return page_of(written_record)


@pytest.fixture(scope="module")
def page(html) -> Page:
    return Page(html)


def test_the_page_loads_nothing(page, html):
    loaded = [value for name, value in page.attributes if name in LOADING_ATTRIBUTES]
    assert all(value.startswith(("#", "data:image/png;base64,")) for value in loaded)
    assert not LOADING_TAGS & set(page.tags)
    assert not re.search(r"@import|url\((?!#)", html)
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert page.tags.count("script") == 1


def test_the_page_is_complete_html(page, html):
    assert html.startswith("<!doctype html>")
    assert html.rstrip().endswith("</html>")
    assert page.open == []
    assert page.tags.count("h1") == page.tags.count("main") == page.tags.count("title") == 1
    assert ("lang", "en") in page.attributes


def test_the_page_is_small(html):
    assert len(html.encode()) < LARGEST / 3  # of a small model: a large one has room


@pytest.mark.parametrize(("creases", "film"), [(2000, True), pytest.param(8000, False, marks=pytest.mark.slow)])
def test_the_page_of_a_large_network_fits(record, creases, film):
    rng = np.random.default_rng(0)
    rows, t = 4 * creases, np.linspace(-9, 9, 4 * creases)
    record["pictures"]["search"] = {
        "scale": 1.0, "t": t.tolist(), "answers": rng.standard_normal((rows, 10)).tolist(),
        "round": (np.arange(rows) % 20).tolist(), "known": [True] * (rows - 1),
        "creases": np.linspace(-8, 8, creases).tolist(), "found_in_round": [],
    }  # fmt: skip
    record["pictures"]["line"]["creases"] = np.linspace(-1, 2, creases).tolist()
    plane = record["pictures"]["plane"]
    plane["creases"] = [[[x, -1.0], [y, 1.0]] for x in (-1.0, 1.0) for y in rng.uniform(-1, 1, 500).tolist()]
    plane["layers"] = [1] * len(plane["creases"])
    html = audit_page(typed(record))
    assert len(html.encode()) < LARGEST
    assert ('class="film"' in html) == film
    assert ("too long to draw" in html) != film


def test_no_name_is_given_twice(page):
    names = [value for name, value in page.attributes if name == "id"]
    assert len(names) == len(set(names))
    targets = [value[1:] for name, value in page.attributes if name in {"href", "xlink:href"} and value[0] == "#"]
    assert set(targets) <= set(names)


def test_every_section_is_there_and_in_the_contents(page):
    for anchor, title in CONTENTS:
        assert ("id", anchor) in page.attributes
        assert ("href", f"#{anchor}") in page.attributes
        assert page.text.count(title) >= 2


def test_every_picture_has_words(html):
    pictures = re.findall(r'<div class="picture" role="img" aria-label="([^"]+)">', html)
    assert len(pictures) == html.count('class="picture"') == 9
    assert len(set(pictures)) == 9
    assert all(len(words) > 30 and words.endswith(".") for words in pictures)
    assert html.count("<svg") == 10  # and the film, with words of its own
    assert "32 creases found in" in html


def test_the_page_says_what_was_found(page, record):
    assert page.text.count(verdict_sentence(typed(record)).partition(".")[0]) == 1  # once, at its head
    for words in ("2,410", "64-32-10", "AML.T0024.002", "AML.M0004", "ML05:2023", "NIST AI 100-2", "How to repeat it"):
        assert words in page.text
    assert record["repeat"]["command"] in page.text
    assert f"numpy {record['versions']['numpy']}" in page.text
    for step in record["steps"]:
        assert step["step"] in page.text


def test_the_truth_stands_apart(html, record):
    section = html[html.index('<section id="truth"') : html.index('<section id="limits"')]
    assert 'class="apart"' in section
    assert "32 of 32" in section
    record["truth"] = None
    without = audit_page(typed(record))
    section = without[without.index('<section id="truth"') : without.index('<section id="limits"')]
    assert 'class="apart"' not in section
    assert 'class="absent"' in section


def test_the_picture_takes_the_colour_of_the_page(html):
    assert "#000000" not in html
    assert "currentColor" in html
    assert "@media screen and (prefers-color-scheme: dark)" in html
    assert "@media print" in html


def test_numbers_are_written_for_people(page):
    assert not re.search(r"\d\.\de-\d\d", page.text)
    assert "× 10⁻¹³" in page.text


def test_a_flip_stands_beside_that_of_a_random_network(page, record):
    assert "√" not in page.text
    typical = 0.6745 / 64**0.5
    for times, words in ((3.0, "3.0 times that"), (1.1, "1.1 times that"), (0.25, "0.25 times that")):
        record["flip"]["relative_size"] = times * typical
        assert words in flip_sentence(typed(record))


def test_directions_are_counted(record):
    for rank, note in ((63, "the other one does not matter to it"), (64, "every direction counts")):
        span = record["span"] | {"rank": rank}
        figures = three_figures(typed(record | {"recovered": None, "defenses": None, "span": span}))
        assert figures[1].note == note


def test_hostile_words_are_only_text(hostile_record, page, page_of):
    hostile = Page(page_of(hostile_record))
    assert hostile.open == []
    assert hostile.tags.count("script") == page.tags.count("script")
    assert not LOADING_TAGS & set(hostile.tags)
    assert not any(name.startswith("on") for name, _ in hostile.attributes)
    limits = [limit["fields"]["message"] for limit in hostile_record["limits"]]
    for text in [*limits, hostile_record["target"]["name"], hostile_record["repeat"]["command"]]:
        assert text in hostile.text


# ---- golden page


def _words_of(picture: re.Match[str]) -> str:
    """The words of a picture, the marks beside them counted."""
    svg = picture.group()
    marks = {tag: len(re.findall(f"<{tag}[ >]", svg)) for tag in ("path", "use", "image")}
    return f"<svg {marks}>{' | '.join(re.findall(r'<text[^>]*>([^<]*)', svg))}</svg>"


def scrubbed(html: str) -> str:
    """The page without what may change from version to version: style, script, paths of pictures, versions."""
    html = re.sub(r"<svg.*?</svg>", _words_of, html, flags=re.DOTALL)
    html = re.sub(r"<style>.*?</style>", "<style/>", html, flags=re.DOTALL)
    html = re.sub(r"<script>.*?</script>", "<script/>", html, flags=re.DOTALL)
    html = re.sub(r"\b(reluctant|numpy|python) \d[\w.+]*", r"\1 VERSION", html)
    html = re.sub(r'<p class="when">.*?</p>', '<p class="when"/>', html)
    html = re.sub(r'data-key="[\d.e-]+">(&lt; )?[\d.]+ (s|min|h)<', 'data-key="TIME">TIME<', html)
    return re.sub(r"\n\s*\n+", "\n", html)


def test_the_page_is_the_one_that_was_looked_at(html):
    """After a change that is meant: RELUCTANT_GOLDEN=write pytest tests/report -k looked_at; read what changed."""
    if os.environ.get("RELUCTANT_GOLDEN") == "write":
        GOLDEN.write_text(scrubbed(html), encoding="utf-8")
    assert scrubbed(html) == GOLDEN.read_text("utf-8")


def test_versions_and_times_do_not_change_the_golden_page(record, html):
    record["versions"] = {"reluctant": "9.9.9", "numpy": "9.9.9", "python": "9.9.9"}
    for step in record["steps"]:
        step["seconds"] += 0.3
    other = audit_page(typed(record))
    assert other != html
    assert scrubbed(other) == scrubbed(html)


def test_the_same_record_gives_the_same_page(record, html, drawn_anew):
    assert audit_page(typed(record)) == html


# ---- the first screen


def test_three_figures_of_a_copied_network(record):
    record["price"] = {"per_thousand": 2.0, "currency": "EUR", "cost": 6.0}
    record["recovered"]["cost"] = 1.638
    copied, queries, defense = three_figures(typed(record))
    assert copied.value == "2,410"
    assert copied.note.startswith("64 → 32 → 10, largest error seen")
    assert queries.value == f"{record['recovered']['queries']:,}"
    assert queries.note.endswith(", at a cost of 1.64 EUR")
    assert (defense.name, defense.value) == ("Defense that stops every copy", "none known")
    assert defense.note.endswith("was not tried, and may succeed")


def row_of(record, defense):
    return next(row for row in record["defenses"]["rows"] if row["defense"] == defense)


def table_of(record):
    return {cells[0].text: [cell.text for cell in cells] for cells in defense_table(typed(record).defenses).rows}


def test_a_verified_copy_that_is_far_off_is_called_rough(record):
    row = row_of(record, "softmax, top=1")
    row["rebuilt"] |= {"method": "extract", "outcome": "recovered", "ok": True, "error": 0.011, "queries": 9}
    row["stopped"], row["honest"]["rms_error"] = False, None
    cells = table_of(record)["top probability"]
    assert (cells[1], cells[4]) == ("other answers", "rough")


def test_a_defense_that_left_a_close_copy_is_not_praised(record):
    row = row_of(record, record["defenses"]["cheapest"])
    row["rebuilt"] |= {"method": "extract", "outcome": "out-of-budget", "ok": False, "error": 1e-12, "queries": 9}
    assert "a close copy was made all the same" in three_figures(typed(record))[2].note
    assert any(cells[4] == "close, not verified" for cells in table_of(record).values())


def test_defenses_that_are_not_decided_are_not_counted_as_useless(record):
    defenses = record["defenses"]
    defenses["cheapest"] = None
    copied = next(row["rebuilt"] for row in defenses["rows"] if row["rebuilt"]) | {"ok": True, "error": 1e-9}
    for row in defenses["rows"][1:]:
        row |= {"rebuilt": dict(copied), "stopped": False}
    assert three_figures(typed(record))[2].value == "none known"
    defenses["rows"][4] |= {"stopped": None}
    defenses["rows"][4]["rebuilt"] |= {"ok": False, "error": 0.5, "outcome": "out-of-budget"}
    assert three_figures(typed(record))[2].value == "not decided"
    assert [cells[4] for cells in table_of(record).values()].count("not decided") == 1


def test_a_copy_that_was_not_verified_is_said_to_be_so(record):
    record["recovered"]["verified"] = False
    assert three_figures(typed(record))[0].note.endswith(", not verified")
    assert ("Verified", "no: measured") in recovered_facts(typed(record))
    record["recovered"]["method"] = "learning"
    assert three_figures(typed(record))[0].note.endswith(", measured")
    assert ("Verified", "no: measured") in recovered_facts(typed(record))


def test_leaks_are_found_or_not_or_not_settled(record):
    def found() -> list[str]:
        return list(states(typed(record)).values())

    assert found() == ["yes", "yes", f"{record['span']['rank']} of {record['span']['inputs']}", "yes"]
    record["verdict"]["leaks"] = []
    assert found() == ["not found", "not found", "all of them", "by a large one"]
    record["flip"]["ok"] = False
    record["extraction"]["outcome"] = "out-of-budget"
    record["span"] |= {"ok": False, "outcome": "rank-unclear"}
    assert found() == ["not settled", "not settled", "not settled", "not found"]
    record |= dict.fromkeys(("extraction", "learning", "span", "flip"))
    assert found() == ["no method here"] * 4  # settled, and nothing to show for it
    record["verdict"]["unsettled"] = ["extractable", "approximable", "span", "flippable"]
    assert found() == ["not tried"] * 4


def test_no_defense_is_named_where_nothing_was_copied(record):
    for row in record["defenses"]["rows"]:
        row["rebuilt"] = None
    record["defenses"]["cheapest"] = None
    assert not any(figure.name.startswith("Cheapest") for figure in three_figures(typed(record)))


def test_each_level_has_its_words(record):
    words = [level_words(with_verdict(typed(record), level=level)).words for level in Level]
    assert len(set(words)) == len(Level)


def test_no_copy_is_good_news_only_where_nothing_else_leaks(record):
    nothing = with_verdict(typed(record), level=Level.NOTHING, leaks=())
    assert level_words(nothing).tone == "good"
    assert level_words(with_verdict(nothing, leaks=(LeakKind.FLIPPABLE,))).tone == "warn"
