"""`reluctant reproduce`."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from reluctant.papers.experiments.experiment import ADVERSARIAL_PAPER, PAPERS, Check, Experiment, Finding
from reluctant.papers.experiments.reproduction import EXPERIMENTS


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Real experiments with numbers that take a moment, one with a check that fails, one that breaks."""

    def failing(rng):
        """Fails."""
        return Finding("t", "c", ("x",), ((1,),), lambda figure: None, (Check("c", 2.0, 0, 1),))

    def broken(rng):
        """Breaks."""
        raise ValueError("not today")

    real = EXPERIMENTS["bottlenecks"]
    small = {"wide": 100, "narrow": 10, "networks": 2}
    for name, measure, quick in (
        ("bottlenecks", real.measure, small),
        ("failing", failing, {}),
        ("broken", broken, {}),
    ):
        monkeypatch.setitem(EXPERIMENTS, name, Experiment(name, ADVERSARIAL_PAPER, "Section 0", measure, quick))


@pytest.mark.parametrize("names", [[], ["list"]])
def test_experiments_are_listed_with_their_papers(names, command):
    ended = command("reproduce", *names)
    assert ended.status == 0
    assert all(name in ended.out for name in EXPERIMENTS)
    assert all(paper.short in ended.out for paper in PAPERS)
    assert "Appendix D, Figure 1" in ended.out


def test_the_papers_as_bibtex(command):
    entry = (
        "@inproceedings{daniely2023,\n"
        "  author = {Amit Daniely and Elad Granot},\n"
        "  title = {{An Exact Poly-Time Membership-Queries Algorithm for Extracting a Three-Layer ReLU Network}},\n"
        "  booktitle = {International Conference on Learning Representations},\n"
        "  year = {2023},\n}\n"
    )
    assert command("reproduce", "exact-one-layer", "exact-orthant", "--bibtex").out == entry
    every = command("reproduce", "list", "--bibtex").out
    assert entry in every
    assert every.count("@inproceedings") == len(PAPERS)
    assert every.count("{") == every.count("}")
    citation = (Path(__file__).parents[2] / "CITATION.cff").read_text("utf-8")
    assert all(paper.title in citation and paper.book in citation for paper in PAPERS)


def test_an_experiment_writes_its_files_and_the_page(folder, command):
    ended = command("reproduce", "bottlenecks", "--out", folder / "figures", "--seed", "5", "-q")
    record = json.loads((folder / "figures" / "bottlenecks.json").read_text())
    assert ended.status == (0 if record["ok"] else 1)
    assert (record["size"], record["seed"]) == ("quick", 5)
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".svg", ".json", ".txt", ".html"}
    assert record["measured"] in ended.out
    assert f"Open: {folder / 'figures' / 'index.html'}" in ended.out
    assert ended.err == ""


def test_a_failed_check_is_status_one(folder, command):
    ended = command("reproduce", "failing", "--out", folder / "figures")
    assert ended.status == 1
    assert "[1/1] failing (Section 0): 0 of 1 checks hold" in ended.err


def test_a_broken_experiment_is_status_one_and_the_others_run(folder, command):
    ended = command("reproduce", "broken", "bottlenecks", "--out", folder / "figures")
    assert ended.status == 1
    assert "not today" in ended.out
    assert "2 experiments" in ended.out
    assert "broken did not run" in ended.out
    assert (folder / "figures" / "bottlenecks.svg").exists()
    assert "not today" in (folder / "figures" / "index.html").read_text()


@pytest.mark.parametrize(
    "arguments",
    [("depth", "--mnist", "missing"), ("depth", "--seed", "-1"), ("depth", "--size", "huge"), ("depth", "-j", "0")],
)
def test_bad_arguments_are_found_before_anything_runs(arguments, folder, command):
    assert command("reproduce", *arguments, "--out", folder / "new").status == 2
    assert not (folder / "new").exists()


def test_an_unknown_experiment_is_status_two(command):
    ended = command("reproduce", "nonsense")
    assert ended.status == 2
    assert "nonsense" in ended.err
    assert "`reluctant reproduce list`" in ended.err
    assert len(ended.err) < 160


def test_ctrl_c_leaves_what_was_finished(main, folder, patience):
    arguments = ["reproduce", "learn-theorem", "span-thin", "--out", str(folder / "figures")]
    running = subprocess.Popen([*main, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finished = folder / "figures" / "index.html"
    end = time.monotonic() + patience
    while not (finished.exists() and "learn-theorem" in finished.read_text()) and time.monotonic() < end:
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=patience)
    assert running.returncode == 130
    assert "The check holds" in finished.read_text()
    assert not (folder / "figures" / "span-thin.json").exists()
