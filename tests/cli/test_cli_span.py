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
    assert "4 of 30" in printed
    assert "86.7%" in printed
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
    assert str(rl.Outcome.CONSTANT).split(".")[0] in capsys.readouterr().out
    assert not (tmp_path / "span.npz").exists()


def test_a_partial_span_gets_a_name_that_says_so(tmp_path, capsys):
    network = planted((30, 4, 6, 1), 1)
    network.save(tmp_path / "net.npz")
    assert run(["span", str(tmp_path / "net.npz"), "-o", str(tmp_path / "span.npz"), "--budget", "220"]) == 1
    printed = capsys.readouterr().out
    assert "budget" in printed
    assert "of 30" in printed
    assert "invisible" not in printed
    assert [file.name for file in tmp_path.glob("span*.npz")] == ["span.partial.npz"]


def test_a_partial_span_is_not_used_without_a_word(target, tmp_path, capsys):
    network, path = target
    rl.Subspace.spanned_by(network.weights[0][:2]).save(tmp_path / "span.partial.npz")
    np.save(tmp_path / "x.npy", np.ones(30))
    run(["flip", path, "--input", str(tmp_path / "x.npy"), "--span", str(tmp_path / "span.partial.npz")])
    assert "span.partial.npz" in capsys.readouterr().err


def test_inputs_of_the_users_own(target, tmp_path, capsys):
    _, path = target
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).uniform(0, 1, (20, 30)))
    assert run(["span", path, "--domain", "0,1", "--inputs", str(tmp_path / "rows.npy")]) in (0, 1)
    assert "20" in capsys.readouterr().out
    np.save(tmp_path / "rows.npy", np.ones((20, 7)))
    assert run(["span", path, "--inputs", str(tmp_path / "rows.npy")]) == 2
    assert "(n, 30)" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["-o", "span.txt"], ["--threshold", "1"], ["--reach", "0"]])
def test_bad_usage_is_status_two(target, arguments, capsys):
    assert run(["span", target[1], *arguments]) == 2
    assert "expected" in capsys.readouterr().err
