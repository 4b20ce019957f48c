"""One run of a method on a planted network beside the truth, for experiments and benchmarks.

`exact_run` runs `extract` on a known network, `learn_run` runs `learn` on families where general position fails,
with the exact method alone beside it (`extract_run`). `paper_run` runs the learning paper's own algorithms on its
bump, in three dimensions, with a grid that a computer can hold. `span_run` recovers spans that are known, from
values and from labels. A `TimedTarget` keeps account of its own CPU time, to be compared with that of the whole
run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from reluctant.domains import Domain
from reluctant.estimation.formulas import answers_per_parameter
from reluctant.evidence import Measured
from reluctant.extraction import DepthTwo, extract
from reluctant.extraction.method import Method
from reluctant.learning import learn
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng
from reluctant.oracles import Oracle, open_oracle
from reluctant.papers import learning_algorithms
from reluctant.papers import learning_theory as theory
from reluctant.results import Outcome, Result
from reluctant.span import Subspace, recover_span
from reluctant.testing import WORST_CASE, in_float32, labelled, largest_true_error, planted, relative_square_error
from reluctant.verification.alignment import compare


@dataclass
class TimedTarget:
    """Answers as `answer` does; `seconds` is the CPU time it has used so far."""

    answer: Callable[[FloatArray], FloatArray]
    seconds: float = field(default=0.0)

    def __call__(self, x: FloatArray) -> FloatArray:
        """Answers to rows (n, d)."""
        start = time.process_time()
        answers = self.answer(x)
        self.seconds += time.process_time() - start
        return answers


WRONG_ERROR = 1e-6  # of the output's deviation: a verified network that is off by more is wrong
DOMAIN_POINTS = 20_000  # of a domain


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
        return self.ok and self.worst > WRONG_ERROR

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
            return np.full(DOMAIN_POINTS, np.inf)
        rows = domain.sample(np.random.default_rng(self.seed), DOMAIN_POINTS, self.true.dim)
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
    timed = TimedTarget(target or true)
    start = time.process_time()
    result = extract(open_oracle(timed, dim=true.dim, domain=domain), method, rng=seed)
    seconds = time.process_time() - start
    return ExactRun(
        true,
        result.network if result.ok else None,
        result.queries,
        Measured.of(result).failures,
        seconds,
        seconds / timed.seconds,
        seed,
        {stage: rows.queries for stage, rows in result.rows.items()},
    )


MOST_QUERIES = 100_000  # of the exact method alone, which does not know when to stop on a bump
EXACT, CLOSE = 1e-12, 1e-8  # the goal, where digits are left and where neurons cancel
NARROWEST_WIDTH, NARROWEST_BUMP = 0.01, 1e-3  # widths that must not be missed, as a rule and with the narrowest family


@dataclass(frozen=True)
class LearnCase:
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
    narrowest: float = NARROWEST_WIDTH
    target: Callable[[ReLUNetwork], Any] = lambda network: network


@dataclass(frozen=True)
class LearnRun:
    """How one run ended: its square error is relative to the target's variance, measured near the true creases."""

    ok: bool
    error: float
    queries: int
    seconds: float = 0.0


def family_case(name: str) -> LearnCase:
    """One of the worst-case families by name, with its limit."""
    eps = CLOSE if name.startswith("clusters") else EXACT
    return LearnCase(name, WORST_CASE[name], eps, NARROWEST_BUMP if name == "bump 0.001" else NARROWEST_WIDTH)


def worst(runs: Sequence[LearnRun]) -> float:
    """The largest error of several runs."""
    return max(run.error for run in runs)


def learn_run(case: LearnCase, seed: int) -> LearnRun:
    """`learn` on one network of a family."""
    true = case.planted(seed)
    start = time.process_time()
    found = learn(_case_oracle(case, true), eps=case.eps, rng=seed, narrowest=case.narrowest)
    return LearnRun(found.ok, _square_error(found, true), found.queries, time.process_time() - start)


def extract_run(case: LearnCase, seed: int) -> LearnRun:
    """The exact method alone; where it gives nothing the error is that of a constant."""
    true = case.planted(seed)
    found = extract(_case_oracle(case, true, budget=MOST_QUERIES), DepthTwo(), rng=seed)
    return LearnRun(found.ok, _square_error(found, true), found.queries)


def _case_oracle(case: LearnCase, true: ReLUNetwork, budget: int | None = None) -> Oracle:
    return open_oracle(case.target(true), dim=true.dim, budget=budget)


def _square_error(found: Result, true: ReLUNetwork) -> float:
    return 1.0 if found.network is None else relative_square_error(found.network, true)


BUMP_DIM = 3
BUMP_START = 0.5  # of the bump, from the origin
BUMP_EPS, BUMP_DELTA = 1e-6, 0.01
GRID_REACH = 20.0
INTERVALS_PER_BUMP = 8  # its two halves are longer than two intervals each, as the theorem wants
BUMP_SAMPLES = 4000
BUMP_TOL = 1e-13  # answers are of order one, in float64
TEST_ROWS, TEST_SEED = 200_000, 7
FOUND = 1e-6  # the relative square error up to which a bump counts as found


@dataclass(frozen=True)
class PaperRun:
    """One bump: its parameters, the grid, what it took; the square error is over the bump's own."""

    constants: theory.Constants
    grid: learning_algorithms.Grid
    neurons: int
    queries: int
    error: float

    @property
    def asked(self) -> theory.TheoremParameters:
        """What the theorem asks for such a bump."""
        return theory.theorem(self.constants)

    def beside(self) -> list[theory.ParameterRow]:
        """The theorem's numbers beside those used."""
        return theory.beside(
            self.asked, learning_algorithms.spent(self.constants, self.grid, BUMP_SAMPLES, self.neurons)
        )


def flat_bump(seed: int, width: float) -> ReLUNetwork:
    """Example 1.2 of the paper, across a random direction."""
    u = np.random.default_rng(seed).standard_normal(BUMP_DIM)
    u /= np.linalg.norm(u)
    return ReLUNetwork(
        [np.array([u, u, 2 * u]), [[1, 1, -1]]], [[-BUMP_START, -BUMP_START - width, -2 * BUMP_START - width], [0]]
    )


def paper_run(seed: int, width: float) -> PaperRun:
    """LEARNFROMQUERIES on one bump, eight intervals wide."""
    true = flat_bump(seed, width)
    constants = theory.Constants.of(true, BUMP_EPS, BUMP_DELTA)
    grid = learning_algorithms.Grid.of(constants, width / INTERVALS_PER_BUMP, GRID_REACH)
    oracle = open_oracle(true)
    found = learning_algorithms.learn_from_queries(
        oracle.query, constants, grid, BUMP_SAMPLES, BUMP_TOL, np.random.default_rng(seed)
    )
    x = np.random.default_rng(TEST_SEED).standard_normal((TEST_ROWS, true.dim))
    y = true(x)
    error = float(np.mean((found(x) - y) ** 2) / np.mean(y**2))
    return PaperRun(constants, grid, found.widths[1], oracle.queries, error)


SPAN_DIM, SPAN_RANK = 784, 80  # of the paper's networks
DEAD_BLOCKS, DEAD_ROWS = 100, 1000  # inputs tried before a network counts as dead


@dataclass(frozen=True)
class SpanRun:
    """How one run ended: `angle` is the largest sine to the true span, `cost` is rows over rank × inputs."""

    right: bool
    ok: bool
    dead: bool
    angle: float
    cost: float
    seconds: float
    cpu: float
    outcome: str


def paper_network(
    hidden: tuple[int, ...], network: Rng, seed: int, *, fine: bool = True, single: bool = False
) -> SpanRun:
    """A network of the paper, Gaussian weights and no biases, from its values."""
    true = planted((SPAN_DIM, SPAN_RANK, *hidden, 1), network, bias=0.0, zero_output_bias=True)
    first = true.weights[0].astype(np.float32) if single else true.weights[0]
    return span_run(in_float32(true) if single else true, first.astype(float), seed, fine=fine)


def label_network(
    widths: tuple[int, ...], activation: str, network: Rng, seed: int, dtype: Any = np.float64
) -> SpanRun:
    """A network with any activation, from 0/1 answers alone."""
    true = labelled(widths, activation, network, dtype=dtype)
    return span_run(true, true.weights[0].astype(float), seed, labels=True)


def span_run(
    target: Callable[[FloatArray], FloatArray], first: FloatArray, seed: int, *, labels: bool = False, fine: bool = True
) -> SpanRun:
    """Recover the span of a target whose first layer is known. A dead one is right if it is said to be constant."""
    timed, true = TimedTarget(target), Subspace.spanned_by(first)
    start = time.process_time()
    span = recover_span(open_oracle(timed, dim=true.dim), rng=seed, labels=labels, fine=fine)
    seconds = time.process_time() - start
    dead = span.outcome is Outcome.CONSTANT and _is_dead(target, true.dim)
    angle = 0.0 if dead else span.subspace.distance(true)
    cost = span.queries / (true.rank * true.dim)
    right = dead or (span.ok and span.rank == true.rank)
    return SpanRun(right, span.ok, dead, angle, cost, seconds, seconds / timed.seconds, span.outcome.slug)


def _is_dead(target: Callable[[FloatArray], FloatArray], dim: int) -> bool:
    """Whether a network is constant on a hundred thousand inputs."""
    rng = np.random.default_rng(0)
    return len(np.unique([np.unique(target(rng.standard_normal((DEAD_ROWS, dim)))) for _ in range(DEAD_BLOCKS)])) == 1
