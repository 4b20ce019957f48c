"""Numbers in words, tables and pictures, each by itself."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from page_kit import typed

from reluctant.audit.record import (
    DefenseRow,
    ErrorHistogram,
    FirstLayerImages,
    HonestFacts,
    LinePicture,
    PlanePicture,
    StageRows,
    StandsFor,
    SweepFacts,
    SweepInputs,
    Trial,
)
from reluctant.messages.diagnosis import distinct_percentages
from reluctant.report import render, three_figures
from reluctant.report.drawings import (
    MOST_DIGITS,
    Drawing,
    _finer,
    _mosaic,
    draw_errors,
    draw_first_layer,
    draw_flip,
    draw_leak,
    draw_leak_queries,
    draw_line,
    draw_plane,
    draw_stages,
    figure_svg,
    leak_points,
    new_figure,
)
from reluctant.report.sweep_text import defense_table
from reluctant.report.tables import Cell, Column, Table
from reluctant.report.text import (
    NO_BREAK,
    bytes_,
    count,
    defense_words,
    duration,
    money,
    percent,
    powers,
    size,
)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3.14e-13, "3.1 × 10⁻¹³"), (0.031, "0.031"), (12.34, "12"), (-2.5e-7, "−2.5 × 10⁻⁷"), (0, "0"), (1.0, "1.0"),
        (9.99e4, "1.0 × 10⁵"), (None, "–"), (float("nan"), "–"), (float("inf"), "–"), (1e9, "1.0 × 10⁹"),
    ],
)  # fmt: skip
def test_sizes(value, words):
    assert size(value).replace(NO_BREAK, " ") == words


def test_shares_are_not_rounded_up_to_all():
    assert [percent(share) for share in (0, 3e-4, 0.5, 0.999, 0.99999, 1, None)] == [
        "0%", "0.03%", "50.0%", "99.9%", "> 99.9%", "100%", "–",
    ]  # fmt: skip


def test_counts_times_and_money():
    assert [count(value) for value in (0, 1234567, None)] == ["0", "1,234,567", "–"]
    assert [duration(value) for value in (0.04, 12, 90, 7200, None)] == ["< 0.1 s", "12 s", "1.5 min", "2.0 h", "–"]
    assert [duration(days * 86_400) for days in (1.5, 3, 3650)] == ["36.0 h", "3.0 days", "10.0 years"]
    assert [bytes_(value) for value in (0, 999, 24e5, 1e12, None)] == ["0 bytes", "999 bytes", "2.4 MB", "1.0 TB", "–"]
    assert [money(value, "EUR") for value in (0, 0.0026, 1.5, None)] == ["0.00 EUR", "0.0026 EUR", "1.50 EUR", "–"]


def test_numbers_beside_others_show_the_difference():
    assert distinct_percentages(0.0102, 0.01) == ("1.02%", "1%")
    assert distinct_percentages(0.5, 0.01) == ("50%", "1%")


def test_powers_in_a_sentence():
    said = "error 2.0e-13 at most, 1e+06 far, 0.0e+00 none, sha 3e5a1, v1.2e3x, 12e4"
    read = "error 2.0 × 10⁻¹³ at most, 1 × 10⁶ far, 0 none, sha 3e5a1, v1.2e3x, 12e4"
    assert powers(said).replace(NO_BREAK, " ") == read


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none", "no defense"), ("decimals=3", "3 decimals"), ("softmax, top=1", "top probability"),
        ("gaussian=1e-3,fixed", "Gaussian noise 1e-3 (fixed)"), ("softmax, decimals=2", "probabilities of 2 decimals"),
        ("something=new", "something=new"), ("labels", "label alone"), ("decimals=1", "1 decimal"),
        ("gaussian=1", "Gaussian noise 1"), ("decimals=2, float32", "2 decimals, float32"),
        ("softmax, top=1, float32", "top probability in float32"),
    ],
)  # fmt: skip
def test_defenses_in_words(name, words):
    assert defense_words(name) == words


def test_cells_that_are_not_known_are_sorted_last():
    assert Cell("–", "").sort_key == ""
    assert Cell("1,200", 1200).sort_key == 1200
    table = Table("Words", (Column("name"), Column("number", numeric=True)), [["a", Cell("1,200", 1200)]])
    assert [[cell.text for cell in row] for row in table.cells()] == [["a", "1,200"]]


def test_the_base_page_stands_alone():
    html = render("base.html")
    assert "<main" in html
    assert "<nav" not in html


def test_pictures_have_names_of_their_own():
    """Two pictures in one page do not take each other's clips."""
    svgs = [draw_line(LinePicture((0, 1, 2), ((0,), (k,), (1,)), (1.0,), 1.0)).picture for k in (1, 2)]
    names = [{each.get("id") for each in ElementTree.fromstring(svg).iter()} - {None} for svg in svgs]
    assert names[0]
    assert not names[0] & names[1]


def test_every_curve_is_drawn():
    answers = np.arange(12.0).reshape(4, 3)
    one, three = (
        draw_line(LinePicture((0, 1, 2, 3), tuple(map(tuple, drawn)), None, 1.0)) for drawn in (answers[:, :1], answers)
    )
    assert three.picture.count("stroke-linecap: square") == one.picture.count("stroke-linecap: square") + 2
    assert three.alt.startswith("The target's 3 outputs")
    assert "creases" not in three.alt


def test_long_numbers_are_cut_in_paths_and_nowhere_else():
    figure = new_figure()
    axes = figure.add_subplot()
    axes.plot([0, 1 / 3, 1], [0, 2 / 3, 1 / 7])
    axes.set_title("0.123456")
    svg = figure_svg(figure)
    assert "0.123456" in svg
    paths = "".join(path.get("d") for path in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}path"))
    assert "." in paths
    assert all(len(number.split(".")[1]) <= 2 for number in paths.replace("\n", " ").split() if "." in number)


def test_the_mosaic_has_gaps_and_keeps_order():
    images = np.arange(3.0)[:, None, None] * np.ones((3, 2, 2))
    tiles = _mosaic(images)
    assert tiles.shape == (2, 8)
    np.testing.assert_array_equal(tiles[0], [0, 0, np.nan, 1, 1, np.nan, 2, 2])
    tiles = _mosaic(np.ones((9, 2, 2)))  # five and four
    assert tiles.shape == (5, 14)
    assert np.isnan(tiles[3:, 12:]).all()
    assert not np.isnan(tiles[3:, 9:11]).any()


def test_dead_neurons_can_be_drawn():
    assert draw_first_layer(FirstLayerImages(2, 2, ((0.0,) * 4,), 1)) is not None


def test_a_flip_is_drawn_only_where_inputs_are_images():
    assert draw_flip([0.0] * 4, [1.0] * 4, (2, 2), ("$cat$", "<b>")) is not None
    assert draw_flip([0.0] * 4, [1.0] * 4, None) is None
    assert draw_flip([0.0] * 4, [1.0] * 4, (3, 2)) is None
    assert draw_flip(None, None, (2, 2)) is None


def test_the_plane_is_drawn_the_right_way_up():
    values = np.zeros((3, 3))
    values[0, 2] = 9.0  # low in the second direction, high in the first: the lower right corner
    finer = _finer(values)
    assert finer.shape == (13, 13)
    assert finer[0, -1] == 9
    assert finer[0, -4] == pytest.approx(4.5)
    assert finer[3, -1] == pytest.approx(4.5)
    assert finer[-1].max() == 0


@pytest.mark.parametrize("most", [0, 1, 9, 40])
def test_labels_are_drawn_whatever_their_number(most):
    part = PlanePicture((0, 0), (1, 1), ((0, most), (most, 0)), None, (), ())
    assert draw_plane(part, labels=True).alt == "Heat map of the target's label on a plane through input space."


def test_small_stages_are_put_together():
    drawing = draw_stages({f"stage {k}": StageRows(k, k, 0) for k in range(30)})
    assert drawing.alt.count("stage ") == 13  # and all others as one
    assert f"other stages {sum(range(17))}" in drawing.alt
    assert draw_stages({}) is None


def test_errors_of_a_copy_without_any():
    group = ErrorHistogram(1.0, (1e-18, 1e-17, 1e-16), (0, 0), 0.0, 0)
    assert draw_errors([group]) is not None
    assert draw_errors([]) is None


def row(defense: str, digits: float | None, error: float | None = 1e-3, ok: bool = True, **changes) -> DefenseRow:
    outcome = changes.pop("outcome", "recovered")
    rebuilt = Trial("extract", outcome, ok, error, None, None, 100, ok, True, False, False, False)
    fields = {"span": None, "tried": (), "rebuilt": rebuilt, "stopped": not ok} | changes
    return DefenseRow(defense, HonestFacts(None, None, None, 9), digits, no_method=False, cut=False, **fields)


def swept(*rows: DefenseRow) -> SweepFacts:
    return SweepFacts(StandsFor.FILE, 1000, SweepInputs(9, True), rows)


def test_the_leak_curve_has_rows_about_digits_in_their_order():
    rows = [row("none", 16.0), row("decimals=2", 3.0, None, ok=False), row("softmax", 16.0), row("labels", None),
            row("gaussian=0.1,fixed", 1.0, 0.0)]  # fmt: skip
    points = leak_points(rows)
    assert [point.given for point in points] == ["noise\n0.1", "2\ndecimals", "all\ndigits"]
    assert [point.copied for point in points] == [MOST_DIGITS, None, 3.0]
    assert [point.ok for point in points] == [True, False, True]
    assert "all digits: 3.0" in draw_leak(rows).alt
    assert draw_leak([row("none", 16.0)]) is None
    assert draw_leak([row("none", 16.0), row("decimals=2", 3.0, rebuilt=None)]) is None
    assert draw_leak([]) is None


@pytest.mark.parametrize("base", [16.0, 3.0])
def test_all_digits_stand_last_whatever_users_lose(base):
    """Where answers have three digits of their own, six decimals take none away: users lose the same, nothing."""
    named = {"none": 16.0, "decimals=6": 7.0, "decimals=2": 3.0, "float16": 3.5, "decimals=3": 4.0}
    points = leak_points([row(defense, min(digits, base)) for defense, digits in named.items()])
    order = [point.given for point in points if point.given != "float16"]
    assert order == ["2\ndecimals", "3\ndecimals", "6\ndecimals", "all\ndigits"]


@pytest.fixture
def figures(monkeypatch) -> list:
    """Pictures as they are drawn, with their words."""
    found: list = []
    monkeypatch.setattr(Drawing, "of", lambda figure, alt: found.append((figure, alt)))
    return found


def test_a_copy_that_failed_is_joined_to_nothing(figures):
    rows = [row("none", 16.0), row("float16", 4.0, 0.6, ok=False), row("decimals=2", 3.0)]
    draw_leak(rows)
    draw_leak_queries(rows)
    for figure, _ in figures:
        curve = next(line for line in figure.axes[0].lines if line.get_linestyle() == "-")
        assert np.isnan(curve.get_ydata()).tolist() == [False, True, False]
        cross = next(line for line in figure.axes[0].lines if line.get_marker() == "x")
        assert cross.get_xdata().tolist() == [1]


def test_a_legend_is_as_wide_as_its_picture_at_most(figures):
    draw_leak([row(name, digits) for name, digits in (("none", 16.0), ("decimals=2", 3.0))])
    figure, _ = figures[0]
    figure.draw_without_rendering()
    legend = figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()][-1] == "no verified copy"
    assert legend.get_window_extent().x1 <= figure.bbox.width


def test_one_hot_answers_are_drawn_as_classes(figures):
    one_hot = ((1, 0, 0), (0, 0, 1), (0, 1, 0))
    flat = PlanePicture((0, 0), (1, 1), ((1, 1), (1, 1)), ((0, 2), (1, 0)), (), ())
    draw_line(LinePicture((0, 1, 2), one_hot, None, 1.0), labels=True)
    draw_plane(flat, labels=True)
    (line, said), (plane, _) = figures
    curves = [list(curve.get_ydata()) for curve in line.axes[0].lines if len(curve.get_xdata())]
    assert curves == [[0.0, 2.0, 1.0]]
    assert said == "The target's label along a line through input space."
    assert plane.axes[0].images[0].get_array().tolist() == [[0, 2], [1, 0]]


def test_the_leak_curve_has_a_gap_where_nothing_is_decided(figures):
    rows = [row("none", 16.0), row("decimals=6", 7.0), row("decimals=2", 3.0, 0.6, ok=False, stopped=None)]
    draw_leak(rows)
    draw_leak_queries(rows)
    for figure, _ in figures:
        curve = next(line for line in figure.axes[0].lines if line.get_linestyle() == "-")
        assert np.isnan(curve.get_ydata()).tolist() == [True, False, False]
    assert "2 decimals: not decided" in figures[0][1]
    assert "2 decimals" not in figures[1][1]
    assert leak_points(rows[1:]) == []


def test_labels_that_no_method_reads_are_not_called_safe():
    labels = row("labels", None, None, ok=False, outcome="piecewise-constant")
    cell = defense_table(swept(labels)).rows[0][4]
    assert (cell.text, cell.tone) == ("no network from labels by these methods", "calm")


def test_a_defense_that_is_not_decided_is_not_praised():
    undecided, stopped = (row("decimals=2", 3.0, 0.6, ok=False, stopped=stopped) for stopped in (None, True))
    table = defense_table(swept(undecided, stopped))
    assert [(cells[4].text, cells[4].tone) for cells in table.rows] == [
        ("not decided", "calm"),
        ("none by these methods", "calm"),
    ]


@pytest.mark.parametrize(
    ("shape", "answers", "value"),
    [
        ("constant", "values", "nothing new"),
        ("piecewise constant", "probabilities", "a label"),
        ("piecewise constant", "labels", "a label"),
        ("piecewise constant", "values", "a few levels"),
        ("unclear", "values", "float16"),
        ("piecewise linear", "values", "float16"),
    ],
)
def test_digits_are_shown_where_they_matter(record, shape, answers, value):
    record |= dict.fromkeys(("recovered", "defenses", "span", "flip"))
    record["interface"] |= {"shape": shape, "answers": answers, "number_format": "float16", "decimals": None}
    assert three_figures(typed(record))[1].value == value


@pytest.mark.parametrize(
    ("link", "words"), [("softmax", "log-ratios of its probabilities"), ("sigmoid", "before its sigmoid")]
)
def test_pictures_behind_a_link_say_what_they_show(record, page_of, link: str, words: str) -> None:
    assert words not in page_of(record)
    record["target"]["link"] = link
    assert page_of(record).count(words) == 2


def test_fresh_noise_is_told_instead_of_digits(record):
    record["recovered"] = record["defenses"] = record["span"] = record["flip"] = None
    record["interface"] |= {"deterministic": False, "fresh_noise": 0.0018}
    figures = [(figure.name, figure.value) for figure in three_figures(typed(record))]
    assert ("Noise of an answer", "0.0018") in figures
