"""The history of a search: what was known after every round, live and told from its end."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from reluctant.geometry import DistanceNoise, Lines, LineSearch, scan_lines
from reluctant.testing import planted

NOISE = DistanceNoise(near=5e-16, growth=5e-16)


def searched(target, dim: int, seed: int) -> tuple[LineSearch, list[LineSearch], list[int]]:
    """The search when it has ended, as it stood after every round, and the rows of every call."""
    rng, live, calls = np.random.default_rng(seed), [], []
    lines = Lines.random(rng, 1, dim)

    def ask(x):
        calls.append(len(x))
        return target(x)

    scan = scan_lines(ask, lines, NOISE, rng, watch=lambda scan: live.append(LineSearch.of(lines, scan)))
    return LineSearch.of(lines, scan), live, calls


@pytest.mark.parametrize("widths", [(784, 32, 1), (10, 100, 1), (64, 32, 10)])
def test_the_end_tells_the_same_story_as_the_rounds(widths, seed):
    end, live, _ = searched(planted(widths, seed, bias=0.5), widths[0], seed)
    assert len(live) == end.rounds
    for number, then in enumerate(live):
        told = end.at(number)
        np.testing.assert_array_equal(told.t, then.t)
        assert abs(len(told.creases) - len(then.creases)) <= 1  # a piece may be seen through two samples for a round
    np.testing.assert_allclose(live[-1].creases, end.creases)
    assert end.known.all()


def test_creases_once_found_stay(seed):
    end, live, _ = searched(planted((20, 30, 1), seed), 20, seed)
    counts = [len(search.creases) for search in live]
    assert counts == sorted(counts)
    assert counts[-1] == len(end.creases) == 30


def test_rounds_are_the_calls(seed):
    end, _, calls = searched(planted((20, 30, 2), seed), 20, seed)
    assert np.bincount(end.round).tolist() == calls


def test_watching_changes_nothing(seed):
    network = planted((20, 30, 1), seed)
    watched, _, _ = searched(network, 20, seed)
    rng = np.random.default_rng(seed)
    lines = Lines.random(rng, 1, 20)
    alone = LineSearch.of(lines, scan_lines(network, lines, NOISE, rng))
    assert alone.to_dict() == watched.to_dict()


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
    end, live, _ = searched(lambda x: x[:, :1], 5, 0)
    assert (len(end.creases), len(end.found_in)) == (0, 0)
    assert end.known.all()
    assert end.at(0).rounds == 1
    assert len(live) == end.rounds


def test_creases_at_the_same_place_do_no_harm(seed):
    end, _, _ = searched(planted((6, 8, 1), seed), 6, seed)
    twice = replace(end, creases=np.sort(np.repeat(end.creases, 2)))
    assert len(twice.found_in) == 16
    assert len(twice.at(twice.rounds - 1).creases) == 16


def test_it_is_plain_data(seed):
    end, _, _ = searched(planted((6, 8, 3), seed), 6, seed)
    data = json.loads(json.dumps(end.to_dict()))
    assert len(data["t"]) == len(data["round"]) == len(data["answers"]) == len(data["known"]) + 1
    assert len(data["creases"]) == len(data["found in round"]) == 8
