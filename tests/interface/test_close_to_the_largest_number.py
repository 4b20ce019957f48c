"""Answers close to the largest number are looked at without a warning."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

import reluctant as rl
from reluctant.adversarial.gradient_source import RayLooks
from reluctant.geometry.creases import intersect
from reluctant.geometry.lines import Samples, find_pieces
from reluctant.interface.noise import find_decimals

HUGE = 1e200


def test_squares_that_are_no_numbers_make_no_noise() -> None:
    rows = np.array([[1.0], [2.0], [4.0]])
    assert RayLooks(HUGE * np.ones(1), np.ones(3), HUGE * rows, HUGE * rows**2).bend == np.inf
    assert find_decimals(HUGE * 1e108 * (1 + np.arange(64) / 128)) is None


def test_pieces_and_creases_of_huge_answers() -> None:
    none, t = np.full(8, -1), np.arange(8.0)
    samples = Samples(np.zeros(8, int), t, HUGE * t[:, None], np.full(8, HUGE), none, none, np.zeros(8, int))
    find_pieces(samples)
    pieces: Any = SimpleNamespace(slope=HUGE * np.array([[1.0], [2.0]]), last=np.array([3]), first=np.array([0, 4]))
    _, size = intersect(samples, pieces, np.array([0]))
    assert size == np.inf


def test_health_of_a_target_that_overflows() -> None:
    found = rl.check_health(rl.open_oracle(lambda x: 1e300 * x[:, :1] ** 3, dim=3), rng=0)
    assert found.spread == np.inf
