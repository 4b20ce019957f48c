"""The page: everything in one file, nothing of the target's name runs, light and dark."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from reluctant import open_oracle
from reluctant.report import ask_profile
from reluctant.report.pictures import profile_svg
from reluctant.testing import planted

LOADING_ATTRIBUTES = {"src", "srcset", "href", "xlink:href", "data", "action", "poster", "background"}
LOADING_TAGS = {"script", "iframe", "object", "embed", "link", "img", "base", "form"}


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.text += data


def test_the_page_loads_nothing(write_report):
    html = write_report().read_text("utf-8")
    page = Page(html)
    loaded = [value for name, value in page.attributes if name in LOADING_ATTRIBUTES]
    assert all(value.startswith("#") for value in loaded)
    assert not LOADING_TAGS & set(page.tags)
    assert not re.search(r"@import|url\((?!#)", html)
    assert not any(name.startswith("on") for name, _ in page.attributes)


HOSTILE = [
    "<script>alert(1)</script>.onnx",
    "<img src=x onerror=alert(1)>.onnx",
    '"><svg onload=alert(1)>',
    "{{ 7 * 7 }}.onnx",
    "</title><script>alert(1)</script>",
    "&lt;b&gt;.onnx",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_only_text(name, write_report):
    harmless, hostile = (Page(write_report(each).read_text("utf-8")) for each in ("model.onnx", name))
    assert hostile.tags == harmless.tags
    assert name in hostile.text


def test_a_hostile_command_is_only_text(write_report):
    page = Page(write_report(repeat="reluctant health '<script>alert(1)</script>'").read_text("utf-8"))
    assert "script" not in page.tags
    assert "reluctant health '<script>alert(1)</script>'" in page.text


def test_there_is_a_dark_mode(write_report):
    html = write_report().read_text("utf-8")
    assert "@media (prefers-color-scheme: dark)" in html
    assert "color-scheme: light dark" in html


def test_the_picture_takes_the_colour_of_the_page(write_report):
    html = write_report().read_text("utf-8")
    assert "#000000" not in html
    assert "currentColor" in html


def test_the_page_says_what_was_found(write_report):
    page = Page(write_report().read_text("utf-8"))
    for words in ("Looks piecewise linear at small scale.", "Deterministic.", "model.onnx", "reluctant demo"):
        assert words in page.text
    assert "Rows that reached the target: 343" in page.text  # 1 to open, 102 for health, 240 for the picture


def test_a_refused_target_is_said_to_be_refused(write_report):
    path = write_report(target=lambda x: np.tanh(x).sum(axis=1))
    assert "Exact methods do not apply to this interface." in path.read_text("utf-8")


def test_the_page_is_complete_html(write_report):
    html = write_report().read_text("utf-8")
    assert html.startswith("<!doctype html>")
    assert html.rstrip().endswith("</html>")
    page = Page(html)
    for tag in ("title", "h1", "figure", "figcaption", "svg", "table", "caption"):
        assert tag in page.tags
    assert ("lang", "en") in page.attributes
    assert any(name == "aria-label" for name, _ in page.attributes)


def test_the_same_run_writes_the_same_numbers(write_report):
    first = Page(write_report().read_text("utf-8")).text
    assert first == Page(write_report().read_text("utf-8")).text


def test_the_page_of_a_recovered_network_has_the_film(write_report):
    html = write_report(recover=True).read_text("utf-8")
    page = Page(html)
    assert page.tags.count("svg") == 2
    assert "8 creases found in" in page.text
    assert not LOADING_TAGS & set(page.tags)
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert ".film:has(:checked) svg * { animation: none; }" in html


def test_a_refused_target_has_no_film(write_report):
    path = write_report(target=lambda x: np.tanh(x).sum(axis=1), recover=True)
    assert 'class="film"' not in path.read_text("utf-8")


# ---- the picture


def test_the_profile_costs_its_points(seed):
    oracle = open_oracle(planted((6, 8, 3), seed))
    profile = ask_profile(oracle, rng=seed, points=50)
    assert oracle.queries == 50
    assert oracle.ledger.stages["picture"].sent == 50
    assert (profile.positions.shape, profile.answers.shape) == ((50,), (50, 3))


def test_the_profile_stays_in_the_domain(seed):
    oracle = open_oracle(planted((6, 8, 3), seed), domain=(0, 1))
    profile = ask_profile(oracle, rng=seed)
    assert (profile.positions.min(), profile.positions.max()) == (0, 1)


def test_the_picture_is_one_svg_with_a_curve_for_each_output(seed):
    svg = profile_svg(ask_profile(open_oracle(planted((6, 8, 3), seed)), points=20))
    assert svg.startswith("<svg")
    assert svg.count("<path") >= 3
