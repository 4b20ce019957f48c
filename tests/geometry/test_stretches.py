"""Stretches of a crowded line: what is open is searched apart, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant.geometry import DistanceNoise, Lines, Scan, scan_lines
from reluctant.geometry.search import scanning
from reluctant.geometry.search.asking import Search, Wanted
from reluctant.geometry.search.rounds import next_round
from reluctant.geometry.search.starts import start
from reluctant.geometry.search.stretches import Stretches
from reluctant.testing import planted

NOISE = DistanceNoise(near=5e-16, growth=5e-16)
CROWD = (20, 2500, 1)


def searched(network, seed: int, watch=None) -> Scan:
    rng = np.random.default_rng(seed)
    lines = Lines.random(rng, 2, network.dim)
    return scan_lines(network, lines, NOISE, rng, watch=watch)


def test_a_crowd_is_found_as_without_stretches(seed, monkeypatch) -> None:
    network, parts = planted(CROWD, seed, bias=0.5), []
    around = Stretches.around
    monkeypatch.setattr(Stretches, "around", lambda seen: parts.append(len(seen.wanted)) or around(seen))
    found = searched(network, seed)
    assert parts  # some of the search was about stretches
    monkeypatch.setattr(scanning, "little_is_open", lambda search, seen: False)
    whole = searched(network, seed)
    assert len(found.creases) == len(whole.creases) == 2 * CROWD[1]
    assert not found.open.any()
    np.testing.assert_allclose(found.creases.t, whole.creases.t, rtol=1e-9, atol=1e-9)
    assert abs(len(found.samples) - len(whole.samples)) < 0.002 * len(whole.samples)


def test_whole_lines_are_shown_in_every_round(seed) -> None:
    shown: list[Scan] = []
    end = searched(planted(CROWD, seed, bias=0.5), seed, watch=shown.append)
    counts = [len(scan.samples) for scan in shown]
    assert counts == sorted(counts)
    assert counts[-1] == len(end.samples)
    assert all(set(scan.samples.line) == {0, 1} for scan in shown)


@pytest.fixture
def search() -> Search:
    network, rng = planted((5, 30, 1), 3), np.random.default_rng(3)
    lines = Lines.random(rng, 3, 5)
    return Search(lambda line, t: network(lines.points(line, t)), lines, NOISE, crowded=False)


def test_what_is_put_together_again_is_the_whole(search: Search) -> None:
    samples = start(search, np.random.default_rng(0))
    for _ in range(6):
        seen = next_round(search, samples)
        samples = seen.samples + search.ask_all(seen.wanted)
    seen = next_round(search, samples)
    few = Wanted()
    few.add(np.array([0, 2]), np.array([seen.samples.t[0], seen.samples.t[-1]]))  # the two ends of all
    stretches = Stretches.around(type(seen)(seen.samples, seen.pieces, few, seen.open, seen.usual))
    inside, others = stretches.apart(seen.samples)
    assert stretches.line.tolist() == [0, 2]
    assert set(inside.line) == {0, 1}
    assert 0 < len(inside) < len(seen.samples)
    assert (inside.t.min(), inside.t.max()) == (seen.samples.t[0], seen.samples.t[-1])
    again = stretches.together(inside, others)
    for name in ("line", "t", "f", "pair", "check", "round"):
        np.testing.assert_array_equal(getattr(again, name), getattr(seen.samples, name))
