"""Stretches of a crowded line: what is open is searched apart, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reluctant.geometry import DistanceNoise, Lines, Scan, scan_lines
from reluctant.geometry import scan as scanning
from reluctant.geometry.creases import UsualBend
from reluctant.geometry.lines import NO_NUMBER
from reluctant.geometry.scan import CreaseSearch, Stretches, WantedSamples, next_round, start_with_pairs
from reluctant.testing import planted

NOISE = DistanceNoise(near=5e-16, growth=5e-16)
CROWD = (20, 2500, 1)


def searched(network, seed: int) -> Scan:
    rng = np.random.default_rng(seed)
    lines = Lines.random(rng, 2, network.dim)
    return scan_lines(network, lines, NOISE, rng)


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


def test_pairs_and_checks_are_numbered_once(seed) -> None:
    samples = searched(planted(CROWD, seed, bias=0.5), seed).samples
    for numbers, most in ((samples.pair, 2), (samples.check, 3)):  # a check on a sample has one on either side
        assert np.bincount(numbers[numbers != NO_NUMBER]).max() <= most


@pytest.mark.parametrize("most", [9_000, 26_800])  # the second is reached in a part
def test_rows_that_are_allowed_are_kept_to_in_parts_too(most: int, monkeypatch) -> None:
    monkeypatch.setattr(scanning, "FRESH_STARTS", 0)
    rng, network = np.random.default_rng(1), planted(CROWD, 1, bias=0.5)
    lines = Lines.random(rng, 2, network.dim)
    samples = scan_lines(network, lines, NOISE, rng, most=most).samples
    before_last = (samples.round < samples.round.max()).sum()
    assert before_last < most <= len(samples)


def test_rounds_are_counted_in_parts_too(monkeypatch) -> None:
    """Somewhere in a crowd the function jumps: no round settles it."""
    monkeypatch.setattr(scanning, "FRESH_STARTS", 0)
    monkeypatch.setattr(scanning, "CROWD_ROUNDS", 30)
    network, rng = planted((20, 1500, 1), 2, bias=0.5), np.random.default_rng(2)
    lines = Lines.random(rng, 1, network.dim)

    def ask_at(line, t):
        return network(lines.points(line, t)) + 1e-3 * (t > 1.0)[:, None]

    scan = scan_lines(network, lines, NOISE, rng, ask_at=ask_at)
    assert scan.open.any()
    assert scan.samples.round.max() == 30


@pytest.fixture
def search() -> CreaseSearch:
    network, rng = planted((5, 30, 1), 3), np.random.default_rng(3)
    lines = Lines.random(rng, 3, 5)
    return CreaseSearch(lambda line, t: network(lines.points(line, t)), lines, NOISE, crowded=False)


def test_a_part_sees_what_is_usual_elsewhere(search: CreaseSearch) -> None:
    seen = next_round(search, start_with_pairs(search, np.random.default_rng(0)))
    stretches = Stretches(np.array([1]), np.array([-np.inf]), np.array([np.inf]))
    usual = UsualBend(bend=123.0, narrower=0.25)
    part = stretches.search(search, replace(seen, usual=usual))
    assert not part.is_whole
    inside, _ = stretches.apart(seen.samples)
    assert next_round(part, inside).usual == usual
    part.new_numbers(5)
    assert search.counts is part.counts


def test_a_stretch_goes_on_to_the_end_of_a_line(search: CreaseSearch) -> None:
    samples = start_with_pairs(search, np.random.default_rng(0))
    seen = next_round(search, samples)
    line = samples.line[seen.pieces.first]
    last = np.flatnonzero(line == 1)[-1]
    few = WantedSamples()
    few.add(np.array([1]), samples.t[seen.pieces.last[[last]]])
    stretches = Stretches.around(replace(seen, wanted=few))
    assert stretches.line.tolist() == [1]
    assert stretches.high[0] == np.inf


def test_a_stretch_has_three_pieces_on_either_side(search: CreaseSearch) -> None:
    scan = scan_lines(None, search.lines, NOISE, np.random.default_rng(0), ask_at=search.ask_at)
    seen = next_round(search, scan.samples)
    first = seen.pieces.first[np.flatnonzero(scan.samples.line[seen.pieces.first] == 1)]
    few = WantedSamples()
    few.add(np.array([1]), scan.samples.t[first[[6]]])
    stretches = Stretches.around(replace(seen, wanted=few))
    assert (stretches.low, stretches.high) == (scan.samples.t[first[3]], scan.samples.t[first[10] - 1])


def test_runs_are_tested_when_the_whole_is_looked_at(search: CreaseSearch) -> None:
    scan = scan_lines(None, search.lines, NOISE, np.random.default_rng(0), ask_at=search.ask_at)
    whole, every = replace(search, crowded=True), Stretches(np.arange(3), np.full(3, -np.inf), np.full(3, np.inf))
    part = every.search(whole, next_round(whole, scan.samples))
    inside = every.apart(scan.samples)[0]
    while (seen := next_round(part, inside)).wanted:
        inside = seen.samples + part.ask_all(seen.wanted)
    assert next_round(whole, inside).wanted


def test_a_line_without_pieces_is_not_searched_in_parts() -> None:
    knots = np.concatenate([np.linspace(-6, 6, 41), [-1e4, 1e4, -300, 300, -1e6, 1e6]])
    lines = Lines.random(np.random.default_rng(0), 1500, 3)

    def ask_at(line, t):
        return np.where(line == 7, np.maximum(0, t[:, None] - knots).sum(axis=1), 0.0)[:, None]

    scan = scan_lines(None, lines, NOISE, np.random.default_rng(1), few=True, close=True, ask_at=ask_at)
    assert set(scan.creases.line) == {7}
    assert len(scan.creases) == len(knots)


def test_what_is_put_together_again_is_the_whole(search: CreaseSearch) -> None:
    samples = start_with_pairs(search, np.random.default_rng(0))
    for _ in range(6):
        seen = next_round(search, samples)
        samples = seen.samples + search.ask_all(seen.wanted)
    seen = next_round(search, samples)
    few = WantedSamples()
    few.add(np.array([0, 2]), np.array([seen.samples.t[0], seen.samples.t[-1]]))  # the two ends of all
    stretches = Stretches.around(replace(seen, wanted=few))
    inside, others = stretches.apart(seen.samples)
    assert stretches.line.tolist() == [0, 2]
    assert set(inside.line) == {0, 1}
    assert 0 < len(inside) < len(seen.samples)
    assert (inside.t.min(), inside.t.max()) == (seen.samples.t[0], seen.samples.t[-1])
    again = stretches.together(inside, others)
    for name in ("line", "t", "f", "pair", "check", "round"):
        np.testing.assert_array_equal(getattr(again, name), getattr(seen.samples, name))


def test_noise_by_what_is_answered_is_asked_for_the_same_rows() -> None:
    rng, network = np.random.default_rng(1), planted(CROWD, 1, bias=0.5)
    seen = []

    def lost(rows: np.ndarray, answers: np.ndarray) -> np.ndarray:
        seen.append(len(rows))
        np.testing.assert_array_equal(network(rows), answers)
        return np.zeros(len(rows))

    found = scan_lines(network, Lines.random(rng, 2, network.dim), NOISE, rng, lost=lost)
    assert sum(seen) >= len(found.samples)
    assert len(found.creases) == 2 * CROWD[1]
