"""Steep sigmoids: inside the box that they leave, log-odds next to 1 have few digits, and a search has to know it."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.extraction.bounded.anchor import AnchorModel, BoundedTarget
from reluctant.extraction.bounded.method import _PointBatch
from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.oracles.links import LINK_FUNCTIONS
from reluctant.results import Outcome
from reluctant.testing import planted

FEW_ROWS = 4_000  # of a search that does not take lost digits for creases; others went on for hundreds of thousands


def steep(seed: int, times: float) -> ReLUNetwork:
    network = planted([5, 8, 1], rng=seed, bias=1.5)
    (w, a), (b, c) = network.weights, network.biases
    return ReLUNetwork([w, times * a], [b, times * c])


def extracted(true: ReLUNetwork, seed: int, budget: int = 20_000) -> rl.Result:
    opened = rl.open_oracle(lambda x: LINK_FUNCTIONS["sigmoid"](true(x)), dim=true.dim, link="sigmoid", budget=budget)
    return rl.extract(opened, rng=seed)


@pytest.mark.parametrize(("seed", "times"), [(5, 2), (17, 2), (6, 5), (13, 5), (17, 5), (20, 5), (11, 10), (4, 20)])
def test_digits_that_are_lost_next_to_1_are_no_creases(seed: int, times: float) -> None:
    true = steep(seed, times)
    found = extracted(true, seed)
    assert found.outcome is Outcome.RECOVERED
    assert found.queries - found.rows["verify"].asked < FEW_ROWS
    rows = np.random.default_rng(9).standard_normal((2000, 5))
    assert np.abs(found.network(rows) - true(rows)).max() < 1e-5 * true(rows).std()


@pytest.mark.parametrize(("seed", "times"), [(19, 5), (3, 20)])
def test_what_too_few_digits_hide_is_no_other_layer(seed: int, times: float) -> None:
    found = extracted(steep(seed, times), seed)
    assert found.outcome is Outcome.PARTIAL
    assert found.queries < FEW_ROWS
    failures = " ".join(found.evidence["failures"])
    assert "another hidden layer" not in failures
    assert "differences no crease explains" in failures


def test_a_neuron_that_changes_what_was_explained_is_refused() -> None:
    oracle = rl.open_oracle(lambda x: x[:, :1], dim=3, domain=(-1, 1))
    inside = BoundedTarget.of(oracle, DistanceNoise(1e-15, 0.0), np.random.default_rng(0))
    rows = np.random.default_rng(1).uniform(-1, 1, (20, 3))
    batch, right = _PointBatch(inside, rows), AnchorModel.affine(np.zeros(3), np.zeros(1), np.eye(3)[:1], 1e-15)
    wrong = AnchorModel.affine(np.zeros(3), np.zeros(1), np.ones((1, 3)), 1e-15)
    assert not len(batch.unexplained(right, inside.settings.neuron_error))
    none = np.empty(0, dtype=int)
    batch.check_still_explained(right, right, none)
    batch.check_still_explained(wrong, wrong, none)  # nothing was explained before
    with pytest.raises(StageFailed, match=r"^exploration: "):
        batch.check_still_explained(right, wrong, none)


def flat_near_the_origin(times: float) -> ReLUNetwork:
    """Two neurons, active beyond a distance: within it nothing changes."""
    w = np.array([[1.0, 0.3, -0.2], [-0.4, 1.0, 0.5]])
    return ReLUNetwork([w, times * np.array([[1.0, -0.8]])], [np.array([-0.2, -0.25]), np.array([0.4])])


def test_a_box_in_which_nothing_changes_is_made_larger() -> None:
    true = flat_near_the_origin(60.0)
    found = extracted(true, 0)
    assert found.outcome is Outcome.RECOVERED
    assert found.network.widths == (3, 2, 1)


def test_what_is_flat_in_every_box_is_not_called_constant() -> None:
    """Farther out it changes: that it gave the same answer everywhere would not be true."""
    found = extracted(flat_near_the_origin(3000.0), 0)
    assert found.outcome is Outcome.OUT_OF_REACH


@pytest.mark.parametrize(("seed", "times"), [(8, 10), (30, 10)])
def test_a_place_with_few_digits_does_not_say_that_the_target_has_few(seed: int, times: float) -> None:
    """Probabilities have all their digits; the first box lies where they are next to 1."""
    found = extracted(steep(seed, times), seed)
    assert found.outcome in (Outcome.OUT_OF_REACH, Outcome.UNVERIFIED)
    assert not found.outcome.settles
    assert found.diagnosis.slug in ("out-of-reach", "unverified")
