"""`extract` on a known network: did it end well, at which cost, how far off."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from reluctant.domains import Domain
from reluctant.estimation.shapes import answers_per_parameter
from reluctant.experiments.sweeps.timed import Timed
from reluctant.extraction import extract
from reluctant.extraction.candidate import Method
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import open_oracle
from reluctant.testing import largest_true_error
from reluctant.verification.alignment import compare

__all__ = ["WRONG", "ExactRun", "exact_run"]

WRONG = 1e-6  # of the output's deviation: a verified network that is off by more is wrong
POINTS = 20_000  # of a domain


@dataclass(frozen=True)
class ExactRun:
    """One run; errors are worked out when they are asked for, and infinite where nothing was verified.

    Arguments:
        true: the network behind the answers.
        found: the network recovered, None unless it was verified.
        queries: rows spent, verification included.
        failures: why attempts ended, one line each.
        seconds: CPU time of the whole run.
        cpu: the same over the target's share of it.
        seed: of the run.
        stages: rows by stage.
    """

    true: ReLUNetwork
    found: ReLUNetwork | None
    queries: int
    failures: tuple[str, ...]
    seconds: float
    cpu: float
    seed: int
    stages: Mapping[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Recovered and verified."""
        return self.found is not None

    @property
    def wrong(self) -> bool:
        """Verified, and not the network that was asked."""
        return self.ok and self.worst > WRONG

    @property
    def per_parameter(self) -> float:
        """Answers for each parameter."""
        return answers_per_parameter(self.queries, self.true.widths)

    @property
    def restarts(self) -> int:
        """Attempts that came to nothing."""
        return len(self.failures)

    @property
    def why(self) -> str:
        """Why it was refused; nothing if it was not."""
        return "" if self.ok else ("refused", *self.failures)[-1]

    @cached_property
    def out(self) -> float:
        """Largest error over Gaussian inputs, of the output's deviation."""
        return np.inf if self.found is None else compare(self.found, self.true).output_error

    @cached_property
    def worst(self) -> float:
        """Largest error where errors hide: at three scales, beside every true crease of the first layer."""
        return np.inf if self.found is None else largest_true_error(self.found, self.true)

    def errors_in(self, domain: Domain) -> FloatArray:
        """Errors over points of a domain, of the output's deviation there."""
        if self.found is None:
            return np.full(POINTS, np.inf)
        rows = domain.sample(np.random.default_rng(self.seed), POINTS, self.true.dim)
        truth = self.true(rows)
        return np.asarray(np.abs(self.found(rows) - truth).max(axis=1) / truth.std())


def exact_run(
    true: ReLUNetwork,
    seed: int,
    method: Method | None = None,
    domain: tuple[float, float] | None = None,
    target: Callable[[FloatArray], FloatArray] | None = None,
) -> ExactRun:
    """Extract a network from its answers alone, by the method or the ladder of them, inside the domain if given.

    With a `target` that answers in its place, with fewer digits.
    """
    timed = Timed(target or true)
    start = time.process_time()
    result = extract(open_oracle(timed, dim=true.dim, domain=domain), method, rng=seed)
    seconds = time.process_time() - start
    return ExactRun(
        true,
        result.network if result.ok else None,
        result.queries,
        tuple(result.evidence.get("failures", ())),
        seconds,
        seconds / timed.seconds,
        seed,
        {stage: rows.queries for stage, rows in result.rows.items()},
    )
