"""`learn` on families where general position fails, the exact method alone beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reluctant.extraction import DepthTwo, extract
from reluctant.learning import learn
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Oracle, open_oracle
from reluctant.results import Result
from reluctant.testing import WORST_CASE, relative_square_error

__all__ = ["CLOSE", "EXACT", "Case", "LearnRun", "extracted", "family", "learned", "worst"]

MOST_QUERIES = 100_000  # of the exact method alone, which does not know when to stop on a bump
EXACT, CLOSE = 1e-12, 1e-8  # what is asked for, where digits are left and where neurons cancel
NARROWEST, NARROWEST_BUMP = 0.01, 1e-3  # widths that must not be missed, as a rule and with the narrowest family


@dataclass(frozen=True)
class Case:
    """A family of targets, and what `learn` is asked for.

    Arguments:
        name: of the family.
        planted: a network of it, by seed.
        eps: square error asked for, of the target's variance.
        narrowest: width of a bump that must not be missed.
        target: what answers in the place of the network, such as the same in float32.
    """

    name: str
    planted: Callable[[int], ReLUNetwork]
    eps: float = EXACT
    narrowest: float = NARROWEST
    target: Callable[[ReLUNetwork], Any] = lambda network: network


@dataclass(frozen=True)
class LearnRun:
    """How one run ended: its square error is relative to the target's variance, measured near the true creases."""

    ok: bool
    error: float
    queries: int
    seconds: float = 0.0


def family(name: str) -> Case:
    """One of the worst-case families by name, with what is asked of it."""
    eps = CLOSE if name.startswith("clusters") else EXACT
    return Case(name, WORST_CASE[name], eps, NARROWEST_BUMP if name == "bump 0.001" else NARROWEST)


def worst(runs: Sequence[LearnRun]) -> float:
    """The largest error of several runs."""
    return max(run.error for run in runs)


def learned(case: Case, seed: int) -> LearnRun:
    """`learn` on one network of a family."""
    true = case.planted(seed)
    start = time.process_time()
    found = learn(_oracle(case, true), eps=case.eps, rng=seed, narrowest=case.narrowest)
    return LearnRun(found.ok, _error(found, true), found.queries, time.process_time() - start)


def extracted(case: Case, seed: int) -> LearnRun:
    """The exact method alone; where it gives nothing the error is that of a constant."""
    true = case.planted(seed)
    found = extract(_oracle(case, true, budget=MOST_QUERIES), DepthTwo(), rng=seed)
    return LearnRun(found.ok, _error(found, true), found.queries)


def _oracle(case: Case, true: ReLUNetwork, budget: int | None = None) -> Oracle:
    return open_oracle(case.target(true), dim=true.dim, budget=budget)


def _error(found: Result, true: ReLUNetwork) -> float:
    return 1.0 if found.network is None else relative_square_error(found.network, true)
