"""Least squares: designs of neurons and linear solvers, and the loop of every nonlinear fit with its damping rules.

A nonlinear fit brings its own equations, and the loop owns steps, damping and the end. From each state the fit gives
a `Linearisation`: the size of the residual, a `solve` from damping to step, and a `move` from step to state. So an
arrow, a band or eliminated outputs keep their structure. A state is any value of the fit; one that may get worse on
its way carries the best so far with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from operator import gt
from typing import Generic, Protocol, TypeVar

import numpy as np

from reluctant.numerics import HOST, MANY_NEURONS, Array, Arrays, FloatArray
from reluctant.oracles.ledger import check_time


def design_matrix(active: Array, outputs: FloatArray, arrays: Arrays = HOST) -> Array:
    """Rows (n·m) by unknowns (h + m): neurons, then the skip rows. `active` (n, h) is one of `arrays`."""
    n, h = active.shape
    m = len(outputs)
    of_neurons = active[:, None, :] * arrays.put(outputs)[None]
    of_skip = arrays.xp.broadcast_to(arrays.put(np.eye(m)), (n, m, m))
    return arrays.xp.concatenate([of_neurons, of_skip], axis=2).reshape(n * m, h + m)


class Design:
    """A design matrix and its solutions: with as many rows as unknowns there is one for all weights."""

    def __init__(self, rows: Array, arrays: Arrays = HOST) -> None:
        self.rows, self.arrays = rows, arrays
        self._inverse: Array | None = None

    @classmethod
    def of(cls, active: Array, outputs: FloatArray, arrays: Arrays = HOST) -> Design:
        """The design of points with these patterns (n, h)."""
        return cls(design_matrix(active, outputs, arrays), arrays)

    @property
    def inverse(self) -> Array:
        """The inverse of a square design, computed once."""
        if self._inverse is None:
            self._inverse = self.arrays.inverse(self.rows)
        return self._inverse

    def solution(self, weights: FloatArray) -> Array:
        """The matrix P for which P @ rows is the weighted least-squares solution."""
        rows, unknowns = self.rows.shape
        if rows == unknowns >= MANY_NEURONS:
            return self.inverse
        return solve_weighted(self.rows, weights, self.arrays)


def solve_weighted(design: Array, weights: FloatArray, arrays: Arrays = HOST) -> Array:
    """The matrix P for which P @ rows is the weighted least-squares solution."""
    return arrays.least_squares(design, arrays.put(weights / np.median(weights)))


def normal_solver(design: Array, arrays: Arrays = HOST) -> Callable[[Array], Array]:
    """Least squares by the normal equations: quick, and half the digits, so for steps that are repeated."""
    ridge = 1e-12  # of squares of columns of norm one: a column of zeros, a neuron never on, is left alone
    normal = design.T @ design
    scale = arrays.xp.sqrt(normal.diagonal())
    scale = arrays.xp.where(scale > 0, scale, 1.0)
    normal /= scale[:, None] * scale
    each = arrays.put(np.arange(len(normal)))
    normal[each, each] += ridge
    solve = arrays.cholesky_solver(normal)
    return lambda right: solve((design.T @ right) / scale) / scale


State = TypeVar("State")
Step = TypeVar("Step")


@dataclass(frozen=True)
class Linearisation(Generic[State, Step]):
    """The problem as it looks from one state.

    state: where it was linearised; a fit may re-centre the state it was handed. size: what this state leaves, for
    example the sum of squares. solve: the step for an amount of damping, or for a part of the whole step; it may raise
    LinAlgError. move: the state after a step and what that leaves, None where the step leads outside.
    """

    state: State
    size: float
    solve: Callable[[float], Step]
    move: Callable[[Step], tuple[State, float] | None]


class StepPolicy(Protocol):
    """How much damping the first try of a step has, and how that changes with success and failure."""

    @property
    def first(self) -> float:
        """The amount of the first try of the first step."""

    @property
    def tries(self) -> int:
        """How often one step is tried."""

    def after_success(self, amount: float) -> float:
        """The amount for the next step."""

    def after_refusal(self, amount: float, tried: int, *, singular: bool) -> float:
        """The amount for the next try, after so many; singular: the equations had no solution."""


@dataclass(frozen=True)
class Damping:
    """Levenberg–Marquardt: ten times the damping after a refused step, a tenth after a step that helps.

    least: where it ends on its way down. refused, singular: where it starts again on its way up, after a step that
    did not help and after equations without a solution.
    """

    first: float
    least: float
    refused: float
    singular: float
    tries: int = 6
    factor: float = 10.0

    def after_success(self, amount: float) -> float:
        """A tenth."""
        return max(amount / self.factor, self.least)

    def after_refusal(self, amount: float, tried: int, *, singular: bool) -> float:
        """Ten times as much."""
        return max(self.factor * amount, self.singular if singular else self.refused)


@dataclass(frozen=True)
class Parts:
    """Gauss–Newton: the whole step first, then these parts of it."""

    sizes: tuple[float, ...] = (1.0,)

    @property
    def first(self) -> float:
        """The first part."""
        return self.sizes[0]

    @property
    def tries(self) -> int:
        """One try for each part."""
        return len(self.sizes)

    def after_success(self, amount: float) -> float:
        """The first part again."""
        return self.sizes[0]

    def after_refusal(self, amount: float, tried: int, *, singular: bool) -> float:
        """The next part."""
        return self.sizes[min(tried, len(self.sizes) - 1)]


WHOLE_STEPS = Parts()


def _never(before: float, after: float) -> bool:
    return False


@dataclass(frozen=True)
class StepRules:
    """Settings of a fit. Both rules compare the residual before a step with the residual after it.

    steps: at most so many. accept: whether to accept a step. enough: whether an accepted step is the last.
    """

    steps: int
    policy: StepPolicy = WHOLE_STEPS
    accept: Callable[[float, float], bool] = gt
    enough: Callable[[float, float], bool] = _never


class End(Enum):
    """Why a fit ended."""

    ENOUGH = "the last step gained too little for another"
    NOTHING_TO_GAIN = "the equations promise no gain"
    REFUSED = "no try of a step was accepted"
    STEPS = "all steps were made"


@dataclass(frozen=True)
class Solution(Generic[State]):
    """The last state, the steps that led there, and why there was no other."""

    state: State
    steps: int
    end: End


def least_squares(
    start: State,
    linearise: Callable[[State], Linearisation[State, Step] | None],
    rules: StepRules,
) -> Solution[State]:
    """Step from `start` until the rules say that it is enough.

    linearise: None where another step would gain nothing. Its own errors pass through; a LinAlgError of `solve`
    counts as a refused try. A limit around the call is checked before every step.
    """
    state, amount = start, rules.policy.first
    for taken in range(rules.steps):
        check_time()
        local = linearise(state)
        if local is None:
            return Solution(state, taken, End.NOTHING_TO_GAIN)
        found, amount = _accepted(local, rules, amount)
        if found is None:
            return Solution(local.state, taken, End.REFUSED)
        state, size = found
        if rules.enough(local.size, size):
            return Solution(state, taken + 1, End.ENOUGH)
    return Solution(state, rules.steps, End.STEPS)


def _accepted(
    local: Linearisation[State, Step], rules: StepRules, amount: float
) -> tuple[tuple[State, float] | None, float]:
    """The first try that the rules accept, None if there is none; and the amount to go on with."""
    for tried in range(1, rules.policy.tries + 1):
        try:
            step = local.solve(amount)
        except np.linalg.LinAlgError:
            amount = rules.policy.after_refusal(amount, tried, singular=True)
            continue
        moved = local.move(step)
        if moved is not None and rules.accept(local.size, moved[1]):
            return moved, rules.policy.after_success(amount)
        amount = rules.policy.after_refusal(amount, tried, singular=False)
    return None, amount
