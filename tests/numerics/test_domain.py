"""Domains: what they hold, what they draw, how far one may go, and that bad bounds are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluctant.domains import Domain
from reluctant.errors import InvalidInput

DOMAINS = {
    "space": Domain(),
    "box": Domain(-1, 3),
    "orthant": Domain(0, np.inf),
    "below": Domain(-np.inf, 2.0),
    "mixed": Domain(np.array([-np.inf, 0.0, -1.0, -np.inf]), np.array([np.inf, np.inf, 1.0, 2.0])),
}


@pytest.fixture(params=DOMAINS)
def domain(request: pytest.FixtureRequest) -> Domain:
    return DOMAINS[request.param]


@pytest.mark.parametrize("bounds", [(1, 1), (2, 1), (np.nan, 1), ([0, 3], [1, 2])])
def test_bounds_that_hold_nothing_are_refused(bounds: tuple) -> None:
    with pytest.raises(InvalidInput, match=r"^domain: got"):
        Domain.of(bounds)


@pytest.mark.parametrize("bounds", [3, (1, 2, 3), ("a", "b"), "01234"])
def test_what_is_no_pair_of_bounds_is_refused(bounds: object) -> None:
    with pytest.raises(InvalidInput, match=r"^domain: got .*, expected None or a pair"):
        Domain.of(bounds)  # type: ignore[arg-type]


def test_the_keyword_takes_nothing_a_pair_or_a_domain() -> None:
    assert Domain.of(None).is_space
    assert Domain.of((0, 1)) == Domain(0.0, 1.0)
    assert Domain.of(DOMAINS["mixed"]) is DOMAINS["mixed"]


def test_bounds_fit_their_inputs() -> None:
    assert all(Domain(0, 1).fits(dim) for dim in (1, 7))
    assert [DOMAINS["mixed"].fits(dim) for dim in (3, 4)] == [False, True]


def test_both_of_two() -> None:
    assert Domain(0, 2).intersected(Domain(1, 5)) == Domain(1.0, 2.0)
    assert Domain(0, 2).intersected(Domain()) == Domain(0, 2)
    with pytest.raises(InvalidInput, match="low < high"):
        Domain(0, 1).intersected(Domain(2, 3))


@pytest.mark.parametrize("draw", ["sample", "interior"])
@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
def test_what_is_drawn_lies_inside(domain: Domain, draw: str, scale: float, seed: int) -> None:
    points = getattr(domain, draw)(np.random.default_rng(seed), 200, 4, scale)
    assert points.shape == (200, 4)
    assert domain.contains(points)
    assert domain.contains(domain.in_single(points))


def test_points_are_kept_away_from_the_bounds(domain: Domain, seed: int) -> None:
    rows = domain.away(domain.sample(np.random.default_rng(seed), 50, 4), 0.5)
    steps = np.concatenate([rows + 0.5 * move for move in (*np.eye(4), *-np.eye(4))])
    assert domain.contains(steps)


@given(st.integers(0, 2**32 - 1))
def test_room_is_how_often_a_move_stays_inside(number: int) -> None:
    rng = np.random.default_rng(number)
    for domain in DOMAINS.values():
        points, moves = domain.sample(rng, 5, 4), rng.standard_normal((5, 4))
        times = domain.room(points, moves)
        assert (times >= 0).all()
        bounded = np.isfinite(times)
        at_the_end = points + (1 - 1e-9) * np.where(bounded, times, 1e6)[:, None] * moves
        assert domain.contains(at_the_end)
        beyond = points + (1.001 * np.where(bounded, times, 0.0) + 1e-9)[:, None] * moves
        assert not any(domain.contains(row[None]) for row in beyond[bounded])


def test_points_out_of_a_domain_are_folded_into_it(domain: Domain) -> None:
    rows = np.linspace(-9, 9, 40).reshape(10, 4)
    folded = domain.fold(rows)
    assert domain.contains(folded)
    inside = (rows >= domain.low) & (rows <= domain.high)
    np.testing.assert_array_equal(folded[inside], rows[inside])


def test_rows_are_put_back_onto_the_bounds_and_others_stay(domain: Domain) -> None:
    inside = domain.sample(np.random.default_rng(0), 20, 4)
    np.testing.assert_array_equal(domain.nearest(inside), inside)
    far = inside + 1e3 * np.random.default_rng(1).standard_normal(inside.shape)
    assert domain.contains(domain.nearest(far))
    kept = domain.inside(far)
    np.testing.assert_array_equal(domain.nearest(far)[kept], far[kept])
    assert bool((domain.nearest(far) != far).any()) is not domain.is_space
