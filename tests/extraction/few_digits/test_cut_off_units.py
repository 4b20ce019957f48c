"""Units that are cut off, as those of ReLU6 and of a hard tanh: answers of few digits that end far out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import reluctant as rl
from reluctant.extraction.few_digits.method import choose_distance
from reluctant.extraction.few_digits.scaled_view import look_from
from reluctant.extraction.method import StageFailed
from reluctant.numerics import FloatArray
from reluctant.testing import planted, single_precision

WIDTHS, BOUNDS = (10, 8, 1), {"ReLU6": (0.0, 6.0), "hard tanh": (-1.0, 1.0)}


def cut_off(name: str, seed: int, dtype: type):
    """Answers of a network whose hidden units end at both bounds, computed in this format."""
    network, bounds = single_precision(planted(WIDTHS, seed, bias=1.0)), BOUNDS[name]
    (w, a), (b, c) = ([each.astype(dtype) for each in part] for part in (network.weights, network.biases))

    def answer(x: FloatArray) -> FloatArray:
        return np.asarray(np.clip(x.astype(dtype) @ w.T + b, *map(dtype, bounds)) @ a.T + c)

    return answer


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", BOUNDS)
def test_units_with_two_ends_are_recovered_in_float32(name: str, seed: int) -> None:
    target, exact = (cut_off(name, seed, dtype) for dtype in (np.float32, np.float64))
    result = rl.extract(target, dim=WIDTHS[0], rng=seed)
    assert result.ok, result.evidence
    assert result.network is not None
    assert result.network.widths == (10, 16, 1)
    assert result.queries < 80_000
    rows = np.random.default_rng(5).standard_normal((4000, WIDTHS[0])).astype(np.float32).astype(np.float64)
    off = np.abs(result.network(rows) - exact(rows)).max() / exact(rows).std()
    assert off <= 3 * np.abs(target(rows) - exact(rows)).max() / exact(rows).std()


def test_answers_that_end_are_asked_nearby(seed: int) -> None:
    oracle = rl.open_oracle(cut_off("ReLU6", seed, np.float32), dim=WIDTHS[0])
    rng = np.random.default_rng(seed)
    distance = choose_distance(look_from(oracle, 1.0, rng), rng)
    assert distance.bounded
    assert (distance.scale, distance.exact) == (1.0, False)


@pytest.mark.parametrize("low", [0.0, -1.0])
@pytest.mark.parametrize("seed", range(2))
def test_a_network_that_is_cut_off_at_0_and_1_is_no_link(low: float, seed: int) -> None:
    """It is 0 or 1 exactly at many inputs near the origin, as a sigmoid is not."""
    values, rng = planted(WIDTHS, seed, bias=1.0), np.random.default_rng(seed)
    oracle = rl.open_oracle(lambda x: np.clip(values(x), low, 1).astype(np.float32), dim=WIDTHS[0], link="identity")
    view = look_from(oracle, 1.0, rng)
    before = oracle.queries
    assert choose_distance(view, rng).bounded
    assert oracle.queries == before + 198 + 64


def test_answers_that_end_at_0_and_1_are_not_searched_for_creases() -> None:
    values = planted(WIDTHS, 0, bias=1.0)
    oracle = rl.open_oracle(lambda x: expit(values(x)).astype(np.float32), dim=WIDTHS[0], link="identity")
    rng = np.random.default_rng(0)
    with pytest.raises(StageFailed, match="end at 0 and 1: they may be those of a link"):
        choose_distance(look_from(oracle, 1.0, rng), rng)
