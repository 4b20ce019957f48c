"""Experiments run into a folder: what is written when, what stays, what an error does."""

from __future__ import annotations

import json

import pytest

from reluctant.papers.experiments.experiment import SPAN_PAPER, Check, Experiment, Finding
from reluctant.papers.experiments.reproduction import (
    EXPERIMENTS,
    GALLERY_PAGE,
    ReproductionPlan,
    run_experiments,
    write_gallery,
)


def measured(rng, value=0.5):
    """Something measured."""
    return Finding("A title", "A claim", ("x",), ((value,),), _draw, (Check("c", value, 0, 1),), measured="0.5 it is")


def broken(rng):
    """Something that breaks."""
    raise RuntimeError("nothing to measure with")


def _draw(figure):
    figure.add_subplot().plot([1, 2])


@pytest.fixture(autouse=True)
def _experiments(monkeypatch):
    """Three, in the place of those of the papers."""
    some = (
        Experiment("good", SPAN_PAPER, "Figure 7", measured, {}),
        Experiment("bad", SPAN_PAPER, "Figure 8", measured, {"value": 2.0}),
        Experiment("broken", SPAN_PAPER, "Figure 9", broken, {}),
    )
    for name in list(EXPERIMENTS):
        monkeypatch.delitem(EXPERIMENTS, name)
    for experiment in some:
        monkeypatch.setitem(EXPERIMENTS, experiment.name, experiment)


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def test_records_say_how_they_were_made(tmp_path):
    (record,) = run_experiments(["good"], ReproductionPlan(tmp_path, "quick", 7, commands={"good": "repeat good"}))
    assert record == json.loads((tmp_path / "good.json").read_text())
    assert record["command"] == "repeat good"
    assert record["ok"]
    assert record["error"] is None
    assert record["seconds"] >= 0
    assert names_in(tmp_path) == {"good.json", "good.svg", "good.txt", GALLERY_PAGE}


def test_an_error_is_kept_and_the_others_go_on(tmp_path):
    records = list(run_experiments(["broken", "good"], ReproductionPlan(tmp_path)))
    assert [record["name"] for record in records] == ["broken", "good"]
    assert not records[0]["ok"]
    assert "nothing to measure with" in records[0]["error"]
    page = (tmp_path / GALLERY_PAGE).read_text()
    assert "nothing to measure with" in page
    assert "Figure 7" in page


def test_a_run_that_is_stopped_leaves_what_it_finished(tmp_path):
    running = run_experiments(["good", "broken"], ReproductionPlan(tmp_path))
    next(running)
    running.close()
    assert "Figure 7" in (tmp_path / GALLERY_PAGE).read_text()
    assert "broken.json" not in names_in(tmp_path)


def test_a_later_run_adds_to_the_page(tmp_path):
    list(run_experiments(["good"], ReproductionPlan(tmp_path, "full", 1)))
    list(run_experiments(["bad"], ReproductionPlan(tmp_path, "quick", 2)))
    page = (tmp_path / GALLERY_PAGE).read_text()
    assert "Seed 1, full size" in page
    assert "Seed 2, quick size" in page
    assert "1 of 2 checks hold" in page


def test_an_experiment_that_fails_now_shows_nothing_old(tmp_path, monkeypatch):
    list(run_experiments(["good"], ReproductionPlan(tmp_path)))
    monkeypatch.setitem(EXPERIMENTS, "good", Experiment("good", SPAN_PAPER, "Figure 7", broken, {}))
    list(run_experiments(["good"], ReproductionPlan(tmp_path)))
    assert names_in(tmp_path) == {"good.json", GALLERY_PAGE}


def test_other_files_of_the_folder_are_left_alone(tmp_path):
    (tmp_path / "good.json").write_text('{"name": "something else"}')
    (tmp_path / "bad.json").write_text("not json")
    write_gallery(tmp_path)
    assert "Nothing has been run" in (tmp_path / GALLERY_PAGE).read_text()
    assert (tmp_path / "bad.json").read_text() == "not json"


@pytest.mark.parametrize("elsewhere", ["processes", "cluster"])
def test_several_at_a_time_give_the_same(elsewhere, tmp_path, request):
    there = {"jobs": 2} if elsewhere == "processes" else {"engine": request.getfixturevalue("client")}
    for folder, where in (("here", {}), ("there", there)):
        (tmp_path / folder).mkdir()
        records = list(run_experiments(["good", "bad", "broken"], ReproductionPlan(tmp_path / folder), **where))
        assert [record["name"] for record in records] == ["good", "bad", "broken"]
    for name in ("good", "bad"):
        one, two = (json.loads((tmp_path / folder / f"{name}.json").read_text()) for folder in ("here", "there"))
        assert one | {"seconds": 0} == two | {"seconds": 0}
        for suffix in (".svg", ".txt"):
            assert (tmp_path / "here" / f"{name}{suffix}").read_text() == (
                tmp_path / "there" / f"{name}{suffix}"
            ).read_text()
    assert names_in(tmp_path / "here") == names_in(tmp_path / "there")
