"""What an audit must not call absent: curves with something behind them, scores without a boundary, parts of trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from audit_kit import reasons

import reluctant as rl
from reluctant.audit import audit
from reluctant.audit.findings import settles
from reluctant.domains import Domain
from reluctant.numerics import Noise
from reluctant.oracles.input_units import Box
from reluctant.testing import planted

NETWORK = planted((6, 5, 1), 1)
REBUILDING = ("health", "span", "extraction", "learning")


def found(target, steps, **settings):
    domain = settings.pop("domain", None)
    with rl.open_oracle(target, dim=6, **({} if domain is None else {"domain": domain})) as oracle:
        return audit(oracle, steps=steps, seconds=10.0, **settings)


@pytest.mark.parametrize(
    "curve",
    [np.exp, lambda z: 500 * (1 + np.tanh(z / 2)), lambda z: z / (1 + np.abs(z))],
    ids=["exp", "mille", "softsign"],
)
def test_a_curve_in_a_domain_may_have_values_behind_it(curve):
    ended = found(lambda x: curve(NETWORK(x)), REBUILDING, domain=(-1.0, 1.0), budget=20_000).verdict
    assert "extractable" not in ended.leaks
    assert "extractable" in ended.unsettled
    assert "curved-inside" in reasons(ended)


def test_a_score_of_one_sign_has_no_boundary_that_is_known():
    far = found(lambda x: 500 + np.clip(NETWORK(x), -100, 100), ("health", "flip")).verdict
    assert "flippable" in far.unsettled
    both = found(lambda x: np.where(x[:, :1] > 0, 500.0, -500.0) + np.clip(NETWORK(x), -9, 9), ("health", "flip"))
    assert "flippable" not in (*both.verdict.leaks, *both.verdict.unsettled)  # no step came to where it jumps


def test_one_number_between_0_and_1_has_a_boundary_of_its_own():
    plane = np.random.default_rng(0).standard_normal(6)
    ended = found(lambda x: ((1 + np.tanh(x @ plane / 2)) / 2).round(2), ("health", "flip")).verdict
    assert "flippable" in ended.unsettled


def test_directions_of_labels_are_told_as_such():
    """Steps in the first input change the answer, and seldom its label."""

    def steps(x):
        first, second = np.floor(3 * x[:, :2].clip(-2, 2)).T
        return np.sin(first) + 0.37 * np.sqrt(2) + 1e-3 * np.cos(second)

    ended = found(steps, ("health", "span"))
    record = ended.record
    assert record.span.ok
    assert record.span.from_labels
    assert record.verdict.confidence == "label-directions"


@pytest.mark.parametrize("offset", [0.0, 2000.0])
def test_real_numbers_in_columns_of_whole_numbers_are_said(offset):
    network, rng = planted((4, 5, 1), 0), np.random.default_rng(0)
    rows = np.column_stack(
        [rng.integers(0, 2, 60), rng.normal(size=60), offset + rng.integers(0, 40, 60), rng.normal(size=60)]
    )
    found = rl.audit(lambda x: network(x - [0, 0, offset, 0]), dim=4, inputs=rows, budget=3_000, steps=["health"])
    said = {each.slug: each for each in found.record.limits}
    assert said["real-numbers-asked"].fields["columns"] == (0, 2)
    drawn = rl.audit(network, budget=3_000, steps=["health"])
    assert "real-numbers-asked" not in {each.slug for each in drawn.record.limits}


@pytest.mark.parametrize(("noise", "settled"), [(2e-6, False), (1e-4, True)])
def test_a_box_with_little_too_much_noise_settles_nothing(noise, settled):
    """Another box, or seed, may have less; with a hundred times as much none has."""
    interface = rl.check_health(NETWORK)
    health = replace(interface, noise=Noise(noise * interface.spread, 0.0))
    evidence = {"health": health, "inside": Box(Domain(-1.0, 1.0))}
    assert settles(rl.Result(rl.Outcome.LOW_PRECISION, None, {}, evidence=evidence)) is settled
