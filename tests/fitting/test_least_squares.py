from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from reluctant.errors import TimeExhausted
from reluctant.fitting.least_squares import Damping, End, Linearisation, Parts, StepRules, least_squares
from reluctant.numerics import FloatArray
from reluctant.oracles.ledger import Limit

T = np.linspace(0, 1, 30)
TRUE = np.array([1.5, -2.0])
LEVENBERG = Damping(first=1e-3, least=1e-12, refused=1e-6, singular=0.0)


def decay(p: FloatArray) -> FloatArray:
    return np.asarray(p[0] * np.exp(p[1] * T))


def problem(p: FloatArray) -> Linearisation[FloatArray, FloatArray]:
    """Amplitude and rate of a decay."""
    residual = decay(TRUE) - decay(p)
    jacobian = np.column_stack([np.exp(p[1] * T), p[0] * T * np.exp(p[1] * T)])

    def solve(damping: float) -> FloatArray:
        return np.linalg.solve(jacobian.T @ jacobian + damping * np.eye(2), jacobian.T @ residual)

    def move(step: FloatArray) -> tuple[FloatArray, float]:
        return p + step, float(((decay(TRUE) - decay(p + step)) ** 2).sum())

    return Linearisation(p, float(residual @ residual), solve, move)


def ladder(sizes: list[float], tried: list[float]) -> Callable[[int], Linearisation[int, float]]:
    """States 0, 1, … that leave these sizes; every amount that is tried is noted."""

    def linearise(at: int) -> Linearisation[int, float]:
        def solve(amount: float) -> float:
            tried.append(amount)
            return amount

        return Linearisation(at, sizes[at], solve, lambda _: (at + 1, sizes[at + 1]))

    return linearise


@pytest.mark.parametrize("start", [(1.0, 0.0), (0.1, 3.0), (4.0, -6.0)])
def test_damped_steps_find_the_curve(start: tuple[float, float]) -> None:
    found = least_squares(np.array(start), problem, StepRules(100, LEVENBERG, enough=lambda b, a: b - a < 1e-28))
    assert np.allclose(found.state, TRUE, atol=1e-9)
    assert found.end in (End.ENOUGH, End.REFUSED)


def test_damping_falls_with_success_and_rises_with_refusal() -> None:
    tried: list[float] = []
    policy = Damping(first=1e-2, least=1e-3, refused=0.5, singular=0.0, tries=3)
    found = least_squares(0, ladder([3.0, 2.0, 1.0, 5.0], tried), StepRules(9, policy))
    assert tried == [1e-2, 1e-3, 1e-3, 0.5, 5.0]
    assert (found.state, found.steps, found.end) == (2, 2, End.REFUSED)


def test_shorter_parts_of_a_step_are_tried_in_turn_and_the_next_step_is_whole_again() -> None:
    tried: list[float] = []
    rules = StepRules(2, Parts((1.0, 0.3, 0.1)), accept=lambda before, after: len(tried) != 1)
    assert least_squares(0, ladder([3.0, 2.0, 1.0], tried), rules).end is End.STEPS
    assert tried == [1.0, 0.3, 1.0]


def test_equations_without_a_solution_count_as_a_refused_try() -> None:
    tried: list[float] = []

    def solve(amount: float) -> float:
        tried.append(amount)
        if amount < 1:
            raise np.linalg.LinAlgError
        return amount

    policy = Damping(first=1e-2, least=0.0, refused=50.0, singular=0.3, tries=3)
    local = Linearisation(0, 2.0, solve, lambda _: (1, 1.0))
    found = least_squares(0, lambda at: local if at == 0 else None, StepRules(5, policy))
    assert tried == [1e-2, 0.3, 3.0]
    assert (found.state, found.end) == (1, End.NOTHING_TO_GAIN)


def test_a_step_that_leads_outside_is_refused_and_the_centre_is_kept() -> None:
    found = least_squares(7, lambda at: Linearisation(at + 1, 2.0, lambda _: 0.0, lambda _: None), StepRules(5))
    assert (found.state, found.steps, found.end) == (8, 0, End.REFUSED)


def test_errors_of_the_equations_themselves_pass_through() -> None:
    def linearise(at: int) -> Linearisation[int, float]:
        raise np.linalg.LinAlgError("singular")

    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        least_squares(0, linearise, StepRules(5))


def test_not_a_number_is_never_accepted() -> None:
    found = least_squares(0, ladder([1.0, np.nan], []), StepRules(5, LEVENBERG))
    assert (found.state, found.end) == (0, End.REFUSED)


def test_a_limit_is_looked_at_before_every_step() -> None:
    tried: list[float] = []
    with Limit(seconds=0.0).running(), pytest.raises(TimeExhausted):
        least_squares(0, ladder([2.0, 1.0], tried), StepRules(5))
    assert not tried


def test_without_steps_the_start_is_the_answer() -> None:
    assert least_squares(0, ladder([1.0, 0.0], []), StepRules(0)).state == 0
