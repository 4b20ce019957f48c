"""The history of a search: what was known after every round, derived from its end."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from reluctant.geometry import DistanceNoise, Lines, LineSearch, scan_lines
from reluctant.testing import planted

NOISE = DistanceNoise(near=5e-16, growth=5e-16)


def searched(target, dim: int, seed: int) -> tuple[LineSearch, list[int]]:
    """The search when it has ended, and the rows of every call."""
    rng, calls = np.random.default_rng(seed), []
    lines = Lines.random(rng, 1, dim)

    def ask(x):
        calls.append(len(x))
        return target(x)

    return LineSearch.of(lines, scan_lines(ask, lines, NOISE, rng)), calls


@pytest.mark.parametrize("widths", [(784, 32, 1), (64, 32, 10)])
def test_creases_once_found_stay(widths, seed):
    end, _ = searched(planted(widths, seed, bias=0.5), widths[0], seed)
    counts = [len(end.at(number).creases) for number in range(end.rounds)]
    assert counts == sorted(counts)
    assert counts[-1] == len(end.creases) == 32
    assert end.known.all()


def test_rounds_are_the_calls(seed):
    end, calls = searched(planted((20, 30, 2), seed), 20, seed)
    assert np.bincount(end.round).tolist() == calls


def test_what_is_known_is_straight(seed):
    network = planted((20, 30, 1), seed)
    rng = np.random.default_rng(seed)
    lines = Lines.random(rng, 1, 20)
    end = LineSearch.of(lines, scan_lines(network, lines, NOISE, rng))
    for number in range(end.rounds):
        then = end.at(number)
        middle = (then.t[1:] + then.t[:-1]) / 2
        crossed = np.searchsorted(then.creases, then.t[1:]) > np.searchsorted(then.creases, then.t[:-1])
        straight = then.known & ~crossed
        off = network(lines.points(np.zeros(len(middle), int), middle))[:, 0] - then.answers[:, 0][1:] / 2
        off -= then.answers[:, 0][:-1] / 2
        assert np.all(np.abs(off[straight]) <= 1e-9 * (1 + np.abs(middle[straight])))


def test_a_line_without_creases():
    end, _ = searched(lambda x: x[:, :1], 5, 0)
    assert (len(end.creases), len(end.found_in)) == (0, 0)
    assert end.known.all()
    assert end.at(0).rounds == 1


def test_creases_at_the_same_place_do_no_harm(seed):
    end, _ = searched(planted((6, 8, 1), seed), 6, seed)
    twice = replace(end, creases=np.sort(np.repeat(end.creases, 2)))
    assert len(twice.found_in) == 16
    assert len(twice.at(twice.rounds - 1).creases) == 16


def test_it_is_plain_data(seed):
    end, _ = searched(planted((6, 8, 3), seed), 6, seed)
    data = json.loads(json.dumps(end.to_dict()))
    assert len(data["t"]) == len(data["round"]) == len(data["answers"]) == len(data["known"]) + 1
    assert len(data["creases"]) == len(data["found in round"]) == 8
