"""`reluctant flip`."""

from __future__ import annotations

import json

import numpy as np
import pytest

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
    assert "did not flip" in ended.out
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
