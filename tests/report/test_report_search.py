"""The moving picture of a search: one SVG that is whole without motion and runs no script."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

import reluctant as rl
from reluctant.geometry import LineSearch
from reluctant.report import search_svg
from reluctant.report.film import Heights
from reluctant.testing import planted

SVG = "{http://www.w3.org/2000/svg}"


def search_of(target, method=None, **options) -> LineSearch:
    return rl.extract(rl.open_oracle(target, **options), method, rng=0).evidence["line search"]


@pytest.fixture(scope="module")
def search() -> LineSearch:
    return search_of(planted((20, 12, 3), 1))


def paths(svg: str, kind: str) -> list[str]:
    return [path.get("d") for path in ElementTree.fromstring(svg).iter(f"{SVG}path") if path.get("class") == kind]


def test_every_crease_has_its_mark(search):
    assert "".join(paths(search_svg(search), "rug")).count("M") == len(search.creases) == 12


def test_every_question_has_its_dot(search):
    svg = search_svg(search)
    assert "".join(paths(svg, "asked")).count("h0") == len(search.t)
    assert len(paths(svg, "asked")) == search.rounds


def test_the_curves_are_whole_at_the_end(search):
    cells = sum(stretch.count("L") for stretch in paths(search_svg(search), "curve"))
    assert cells == 3 * (360 - 1 + 12)  # three outputs; creases split cells


def test_a_search_comes_back_from_a_record(search):
    again = LineSearch.from_dict(json.loads(json.dumps(search.to_dict())))
    assert search_svg(again) == search_svg(search)
    np.testing.assert_array_equal(again.found_in, search.found_in)


def test_it_says_what_happened_in_words(search):
    svg = search_svg(search)
    assert svg.count('class="during"') == search.rounds
    assert f"12 creases found in {search.rounds} rounds with {len(search.t)} rows." in svg
    assert "Round 1: 16 rows asked, 0 creases found, 0 in all." in svg
    assert " 1 creases" not in svg


def test_motion_is_for_screens_that_want_it(search):
    svg = search_svg(search)
    before, moving = svg.split("@media screen and (prefers-reduced-motion: no-preference) {")
    assert "animation" not in before
    assert "animation" in moving
    assert "script" not in svg
    assert not re.search(r'[\s"]on\w+=|href|url\(', svg)


def test_it_ends_after_a_few_seconds():
    svg = search_svg(search_of(planted((30, 200, 1), 0)))
    assert max(float(at) for at in re.findall(r"--at: ([\d.]+)s", svg)) < 11


def test_the_picture_of_a_line_without_creases():
    search = search_of(lambda x: x @ np.ones((4, 1)) + 1, rl.DepthTwo(), dim=4)
    ElementTree.fromstring(search_svg(search))
    assert "0 creases found" in search_svg(search)


def test_heights_are_in_the_frame_and_reach_its_edges(search):
    heights = Heights.of(search)
    own = heights.at(search.angles)
    assert own.min() == pytest.approx(0, abs=1e-6)
    assert own.max() == pytest.approx(1, abs=1e-6)


def test_a_crease_is_a_kink_and_a_piece_is_none(search):
    """Away from creases heights are combinations of cosine and sine."""
    heights, creases = Heights.of(search), np.arctan(search.creases / search.scale)
    widest = int(np.argmax(np.diff(creases)))
    angles = np.linspace(creases[widest], creases[widest + 1], 9)[1:-1]
    basis = np.column_stack([np.cos(angles), np.sin(angles), np.ones(7)])  # ones: the frame begins at its lowest
    values = heights.at(angles)
    fit = basis @ np.linalg.lstsq(basis, values, rcond=None)[0]
    np.testing.assert_allclose(fit, values, atol=1e-9)
