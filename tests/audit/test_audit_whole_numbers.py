"""Whole numbers that are no labels, and bounds of clipped inputs that are no neurons."""

import numpy as np
import pytest

import reluctant as rl
from reluctant.audit import audit
from reluctant.audit.sweeping import StandIn
from reluctant.health import check_health
from reluctant.oracles import Kind, NetworkOracle, open_oracle
from reluctant.testing import planted

NETWORK = planted((8, 12, 1), 1)
REBUILDING = ["health", "extraction", "part", "learning", "training"]


def rating(x: np.ndarray) -> np.ndarray:
    return np.rint(50 + 15 * NETWORK(x))


def score(x: np.ndarray) -> np.ndarray:
    return np.rint(1000 / (1 + np.exp(-np.clip(NETWORK(x), -500, 500))))


def clipped(x: np.ndarray) -> np.ndarray:
    return NETWORK(np.clip(x, 0, 1))


def test_whole_numbers_that_grow_are_no_labels(seed: int) -> None:
    assert check_health(open_oracle(rating, dim=8), rng=seed).answers is Kind.VALUES
    classes = planted((8, 12, 5), 1)
    labels = check_health(open_oracle(lambda x: classes(x).argmax(axis=1), dim=8), rng=seed)
    assert labels.answers is Kind.LABELS


@pytest.mark.parametrize("target", [rating, score])
def test_scores_do_not_pass_as_labels(target) -> None:
    found = audit(rl.open_oracle(target, dim=8), budget=4_000, seconds=2.0, steps=REBUILDING)
    assert {"extractable", "approximable"} <= {*found.verdict.leaks, *found.verdict.unsettled}
    assert "audit them divided by ten" in found.verdict.sentence


def test_what_bends_at_bounds_is_no_part_also_when_rows_run_out() -> None:
    found = audit(rl.open_oracle(clipped, dim=8), budget=30_000, steps=["health", "extraction", "part"])
    assert found.known.extraction.outcome is rl.Outcome.OUT_OF_BUDGET
    assert found.known.part is None
    assert not found.known.needed
    assert "as if inputs were clipped" in found.verdict.sentence


def test_a_label_that_is_always_the_same_is_no_defense() -> None:
    inputs = np.random.default_rng(0).standard_normal((30, 8))
    (w, a), (b, c) = NETWORK.weights, NETWORK.biases
    positive = NetworkOracle(rl.ReLUNetwork([w, a], [b, c + 100]))
    assert not StandIn(positive, "a network", inputs).has_labels
    assert StandIn(NetworkOracle(NETWORK), "a network", inputs).has_labels


def test_a_rare_label_is_looked_for_inside_the_range_that_is_answered() -> None:
    def strict(x: np.ndarray) -> np.ndarray:
        if np.abs(x).max() > 2:
            raise ValueError("inputs must be in [-2, 2]")
        return (x[:, 0] > 1.9).astype(float)

    found = audit(rl.open_oracle(strict, dim=4), budget=3_000, steps=["health"])
    assert found.steps[0].state.value == "done"
    assert found.known.reach is not None
