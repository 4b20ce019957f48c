"""`reluctant span`: what it prints, writes and returns."""

from __future__ import annotations

import json

import numpy as np
import pytest

import reluctant as rl
from reluctant.cli.app import run
from reluctant.testing import planted


@pytest.fixture
def target(tmp_path):
    network = planted((30, 4, 6, 2), 1)
    network.save(tmp_path / "net.npz")
    return network, str(tmp_path / "net.npz")


def test_it_writes_the_span(target, tmp_path, capsys):
    network, path = target
    out = tmp_path / "span.npz"
    assert run(["span", path, "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "4 of 30 directions: 86.7% invisible." in printed
    assert "Margin of the rank" in printed
    found = rl.Subspace.load(out)
    assert found.distance(rl.Subspace.spanned_by(network.weights[0])) < 1e-11


def test_labels_alone(target, capsys):
    _, path = target
    assert run(["span", path, "--labels"]) == 0
    assert "4 of 30 directions" in capsys.readouterr().out


def test_json(target, capsys):
    _, path = target
    assert run(["span", path, "--json", "-", "--coarse"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["command"] == "span"
    assert (record["span"]["rank"], record["span"]["ok"]) == (4, True)
    assert record["span"]["queries"] == record["queries"]["total"]


def test_nothing_found_is_status_one(tmp_path, capsys):
    flat = rl.ReLUNetwork([np.zeros((3, 5)), np.ones((1, 3))], [np.zeros(3), np.ones(1)])
    flat.save(tmp_path / "flat.npz")
    assert run(["span", str(tmp_path / "flat.npz"), "-o", str(tmp_path / "span.npz")]) == 1
    assert "same answer everywhere" in capsys.readouterr().out
    assert not (tmp_path / "span.npz").exists()


def test_a_partial_span_gets_a_name_that_says_so(target, tmp_path, capsys):
    _, path = target
    assert run(["span", path, "-o", str(tmp_path / "span.npz"), "--budget", "180"]) == 1
    assert "budget" in capsys.readouterr().out
    written = [file.name for file in tmp_path.glob("span*.npz")]
    assert "span.npz" not in written


@pytest.mark.parametrize("arguments", [["-o", "span.txt"], ["--threshold", "1"], ["--reach", "0"]])
def test_bad_usage_is_status_two(target, arguments, capsys):
    assert run(["span", target[1], *arguments]) == 2
    assert "expected" in capsys.readouterr().err
