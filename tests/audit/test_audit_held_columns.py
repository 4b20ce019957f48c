"""Columns that take whole numbers alone: the audit leaves them where they are, and finds what the others give away."""

import numpy as np
import pytest

import reluctant as rl
from reluctant.audit import audit
from reluctant.errors import InvalidInput
from reluctant.testing import planted

NETWORK, STEPS = planted((6, 5, 1), 1), ["health", "extraction"]
ROWS = np.column_stack([np.random.default_rng(0).standard_normal((80, 5)), np.random.default_rng(1).integers(2, 9, 80)])


def whole_last(x: np.ndarray) -> np.ndarray:
    if (x[:, 5] != np.rint(x[:, 5])).any():
        raise ValueError("the last column is a count")
    return NETWORK(x)


def test_the_other_columns_are_copied() -> None:
    found = audit(rl.open_oracle(whole_last, dim=6, inputs=ROWS), integers=[5], steps=STEPS, budget=5_000)
    assert "extractable" in found.verdict.leaks
    assert found.copy is not None
    middle = np.rint(np.median(ROWS[:, 5]))
    rows = np.column_stack([ROWS[:, :5], np.full(80, middle)])
    assert np.abs(found.copy(ROWS[:, :5]) - NETWORK(rows)).max() < 1e-9
    held = next(limit for limit in found.record.limits if limit.slug == "columns-held")
    assert (held.fields["columns"], held.fields["values"], held.fields["others"]) == ((5,), (middle,), 5)


def test_columns_of_whole_numbers_are_named_where_real_ones_were_asked() -> None:
    found = audit(rl.open_oracle(NETWORK), inputs=ROWS, steps=STEPS, budget=5_000)
    asked = next(limit for limit in found.record.limits if limit.slug == "real-numbers-asked")
    assert asked.fields["columns"] == (5,)


def test_bounds_of_the_other_columns_stay() -> None:
    box = (np.array([-1.0, -2, -3, -4, -5, 0]), np.array([1.0, 2, 3, 4, 5, 10]))
    target = rl.open_oracle(NETWORK, domain=box)
    found = audit(target, integers=[5], steps=["health"], budget=2_000)
    assert found.facts is not None
    assert np.array_equal(np.broadcast_to(found.facts.domain.high, 5), box[1][:5])


@pytest.mark.parametrize("columns", [[6], [-1], [1, 1], range(6)])
def test_columns_that_are_none_are_refused(columns) -> None:
    with pytest.raises(InvalidInput, match="integers"):
        audit(rl.open_oracle(NETWORK), integers=columns, budget=100)
