"""Creases that are nowhere: numbers that are none end an attempt, and not the run."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import OutsideDomain
from reluctant.extraction.any_depth.kinks import KinkStore
from reluctant.extraction.attempts import Search
from reluctant.extraction.depth_two.scaffold import _unresolved, neurons_on_a_line
from reluctant.extraction.few_digits.method import exactly_from_afar
from reluctant.extraction.few_digits.scaled_view import look_from
from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise
from reluctant.numerics import quotient
from reluctant.testing import planted
from reluctant.testing.assortment import specimen

DIM = 8
FINE = DistanceNoise(1e-9, 1e-9)


def test_creases_that_are_nowhere_are_counted_without_a_warning():
    places = np.array([0.5, 1.0, 0.7, np.inf, np.inf, np.nan])
    creases = SimpleNamespace(t=places, jump=np.ones((len(places), 1)), nowhere=~np.isfinite(places))
    assert _unresolved(SimpleNamespace(creases=creases, open=np.zeros(3, bool))) == 3 + 1  # and one not in order


@pytest.mark.parametrize("drawn", [7_600_657, 7_600_903])
def test_lines_whose_creases_are_nowhere_are_followed_without_a_warning(drawn: int):
    """One neuron, and answers of 6 decimals: far out pieces of one slope meet at infinity."""
    target = specimen(drawn)
    result = rl.extract(target.target(), dim=target.network.dim, rng=drawn % 1000)
    assert result.outcome is rl.Outcome.PARTIAL


def layers(seed: int, *widths: int):
    rng = np.random.default_rng(seed)
    shapes = pairwise(widths)
    return [(rng.normal(size=(a, b)) * np.sqrt(2 / a), rng.normal(size=b) * 0.3) for a, b in shapes]


def one(x):
    (w, b), (a, c) = layers(2, 8, 10, 1)
    return np.maximum(x @ w + b, 0) @ a + c


def clipped_and_rounded(x):
    return np.round(one(np.clip(x, 0, 1)), 4)


def test_a_crease_that_is_nothing_is_a_failed_attempt() -> None:
    """Clipped and rounded: what is left of two creases that bend against each other bends nothing."""
    oracle = rl.open_oracle(clipped_and_rounded, dim=8)
    for seed in range(3):
        with pytest.raises(StageFailed):
            exactly_from_afar(oracle, 2.0**16, np.random.default_rng(seed), lambda _: None)


def test_clipped_and_rounded_inputs_are_asked_nearby() -> None:
    found = rl.extract(rl.open_oracle(clipped_and_rounded, dim=8))
    assert not found.ok
    assert found.evidence["failures"][0].startswith("layers: creases bend")
    assert found.queries < 20_000


def stairs(x):
    return np.floor(20 * x[:, :1])


def test_steps_of_stairs_do_not_meet() -> None:
    """Level pieces, one above the other: both methods say so, and reckon with no crease at infinity."""
    rng = np.random.default_rng(0)
    with pytest.raises(StageFailed, match=r"^lines: "):
        KinkStore(stairs, DIM, FINE, rng).scan_random(1)
    with pytest.raises(StageFailed, match=r"^line: "):
        neurons_on_a_line(rl.open_oracle(stairs, dim=DIM), FINE, rng, lines=5)


def test_weights_of_answers_without_noise_can_be_squared() -> None:
    """A network that is 0 where it was asked: its noise is the least there is."""
    noise = look_from(rl.open_oracle(lambda x: 0 * x[:, 0], dim=DIM), 1.0, np.random.default_rng(0)).noise
    assert np.isfinite(np.full(1000, 1 / noise.near) ** 4).all()


def test_nothing_to_compare_with_gives_infinity() -> None:
    found = quotient(np.array([1.0, 0.0, 1e20, 6.0]), np.array([0.0, 0.0, 1e-300, 3.0]))
    assert found.tolist() == [np.inf, np.inf, np.inf, 2.0]


def test_rows_of_nan_are_a_failed_attempt(monkeypatch) -> None:
    def attempt(self, place, *args):
        place.oracle.query(np.full((1, 6), np.nan))

    monkeypatch.setattr(Search, "attempt", attempt)
    found = rl.extract(rl.open_oracle(planted((6, 5, 1), 0)), attempts=2)
    assert not found.ok
    assert all("NaN" in failure for failure in found.evidence["failures"])


def test_rows_outside_a_domain_are_told(monkeypatch) -> None:
    monkeypatch.setattr(Search, "attempt", lambda self, place, *args: place.oracle.query(np.full((1, 6), 9.0)))
    with pytest.raises(OutsideDomain):
        rl.extract(rl.open_oracle(planted((6, 5, 1), 0), domain=(-1, 1)))


def test_a_target_that_changes_at_few_inputs_is_not_called_constant() -> None:
    """Three layers that the first look finds constant: another scale shows changes, and is not enough for a network."""
    drawn = specimen(8300143)
    with rl.open_oracle(drawn.target(), dim=drawn.network.dim, budget=60_000) as oracle:
        result = rl.extract(oracle, rng=143)
    assert result.outcome in (rl.Outcome.UNVERIFIED, rl.Outcome.PARTIAL)
    assert result.network is not None
    assert "found units" not in result.evidence  # its columns are all of one size
