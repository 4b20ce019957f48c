"""`reluctant flip`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reluctant.networks import ReLUNetwork
from reluctant.testing import planted

TRUE = planted((20, 10, 1), 0)
START = np.random.default_rng(0).standard_normal(20)


@pytest.fixture
def target(folder):
    TRUE.save(folder / "target.npz")
    np.save(folder / "x.npy", START)
    return folder / "target.npz"


def test_the_flipped_input_is_written(target, folder, command):
    ended = command("flip", target, "--input", folder / "x.npy", "-o", folder / "flipped.npy")
    flipped = np.load(folder / "flipped.npy")
    assert ended.status == 0
    assert "sign changes" in ended.out
    assert TRUE(flipped[None])[0, 0] * TRUE(START[None])[0, 0] < 0


def test_a_known_network_saves_the_questions(target, folder, command):
    ended = command("flip", target, "--input", folder / "x.npy", "--network", target, "--json", "-", "-q")
    record = json.loads(ended.out)
    assert record["flip"]["ok"]
    assert record["flip"]["queries"] == 2


def test_a_known_span_saves_most_of_them(target, folder, command):
    assert command("span", target, "-o", folder / "span.npz", "-q").status == 0
    plain, cheap = (
        json.loads(command("flip", target, "--input", folder / "x.npy", *more, "--json", "-", "-q").out)["flip"]
        for more in ((), ("--span", folder / "span.npz"))
    )
    assert cheap["ok"]
    assert cheap["queries"] == plain["queries"] - 10  # 20 inputs, 10 neurons


def test_nothing_flipped_is_status_one(folder, command):
    (folder / "hill.py").write_text("import numpy as np\ndef f(x):\n    return np.abs(x).sum(axis=1) + 1\n")
    np.save(folder / "x.npy", np.ones(4))
    ended = command("flip", "hill:f", "--dim", "4", "--input", folder / "x.npy", "-o", folder / "y.npy")
    assert ended.status == 1
    assert not (folder / "y.npy").exists()


@pytest.mark.parametrize(
    "arguments",
    [("--input", "missing.npy"), ("--input", "x.npy", "-o", "y.txt"), ("--input", "x.npy", "--steps", "0"), ()],
)
def test_bad_input_is_status_two(arguments, target, command):
    assert command("flip", target, *arguments).status == 2


def test_an_input_of_the_wrong_size_is_status_two(target, folder, command):
    np.save(folder / "short.npy", np.ones(3))
    ended = command("flip", target, "--input", folder / "short.npy")
    assert ended.status == 2
    assert "shape (3,)" in ended.err


MODELS = """
import numpy as np
W, V = np.linspace(-1, 2, 4), np.linspace(1, -1, 4)
def odds(x): return x @ W + 0.5
def chance(x): return 1 / (1 + np.exp(-odds(x)))
def coarse(x): return (0.03 * odds(x)).round(2)
def labels(x): return (odds(x) > 0).astype(float)
def classes(x): return np.stack([x @ W, x @ V, 0 * x[:, 0] - 2], axis=1).argmax(axis=1)
"""


@pytest.fixture
def flip(folder, command):
    """Run it on one of these models, from ones."""
    (folder / "few.py").write_text(MODELS)
    np.save(folder / "x.npy", np.ones(4))
    return lambda name, *more: command("flip", f"few:{name}", "--dim", "4", "--input", folder / "x.npy", *more)


def saved(folder, weights, biases, link="identity"):
    ReLUNetwork([weights], [biases], link=link).save(folder / "own.npz")
    return folder / "own.npz"


W, V = np.linspace(-1, 2, 4), np.linspace(1, -1, 4)


def test_two_decimals_flip_without_a_network(flip):
    ended = flip("coarse")
    assert ended.status == 0
    assert "sign changes" in ended.out


def test_a_probability_names_both_ways_to_read_it(flip):
    ended = flip("chance", "--link", "none")
    assert ended.status == 1
    assert "--threshold 0.5" in ended.out
    assert "--link sigmoid" in ended.out
    assert "--steps" not in ended.out


@pytest.mark.parametrize("more", [("--threshold", "0.5"), ("--link", "sigmoid"), ()])
def test_both_ways_flip_it(flip, more):
    ended = flip("chance", *more)
    assert ended.status == 0
    assert "0.5" in ended.out


@pytest.mark.parametrize("more", [(), ("--link", "sigmoid")])
def test_a_network_with_its_link_flips_a_probability(flip, folder, more):
    ended = flip("chance", "--network", saved(folder, W[None], [0.5], "sigmoid"), *more)
    assert ended.status == 0
    assert "0.5" in ended.out


@pytest.mark.parametrize("name", ["labels", "classes"])
def test_labels_are_told_that_a_network_helps(flip, name):
    ended = flip(name)
    assert ended.status == 1
    assert "no gradient" in ended.out
    assert "flip --network" in ended.out
    assert "noise" not in ended.out
    assert "--steps" not in ended.out


def test_a_network_flips_labels(flip, folder):
    two = flip("labels", "--network", saved(folder, np.stack([-W, W]), [0, 0.5]))
    three = flip("classes", "--network", saved(folder, np.stack([W, V, 0 * W]), [0, 0, -2]))
    assert (two.status, three.status) == (0, 0)
    assert "Class 1 becomes class 0" in two.out
    assert "Class 0 becomes class 1" in three.out
