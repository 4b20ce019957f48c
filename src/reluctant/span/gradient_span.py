"""The span from gradients that a target answers: k gradients for k directions, a few more, and long steps outside.

Every gradient lies in the span, and at random inputs each brings a new direction until there are no more. Rows that
bring nothing, and long steps along the directions left out, end the search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.geometry import DistanceNoise
from reluctant.geometry.lines import Batch
from reluctant.interface.noise import narrowest_format
from reluctant.numerics import DOUBLE, FloatArray, unit_roundoff
from reluctant.oracles import Counting
from reluctant.results import Outcome
from reluctant.span.first_look import UNCLEAR_ANGLE, UNCLEAR_MARGIN, Ground, Inputs
from reluctant.span.subspace import FoundSpan, leak_slopes

ROWS_AT_ONCE, ROWS_IN_BOUNDS = 8, 64  # gradients asked together; as many that bring nothing end a search
STEPS_OUTSIDE, STEPS_IN_BOUNDS = 12, 64  # from inputs whose answers are known; bounds make them short
MOST_LOUD = 4  # ends of steps, whose gradients are asked
MOST_DEAD = 64  # rows without any gradient, after which values are asked
ATTEMPTS = 3
SPAN_ROUNDINGS = 2.0**9  # of the largest gradient: a direction that is weaker is rounding


@dataclass(frozen=True)
class _AskedGradients(Batch):
    """Rows, their answers, and their gradients one below the other."""

    rows: FloatArray  # (n, d)
    values: FloatArray  # (n, m)
    slopes: FloatArray  # (n·m, d)


def from_gradients(
    oracle: Counting, inputs: Inputs, rng: np.random.Generator, keep: Callable[[FloatArray], None], reach: float
) -> tuple[Outcome, FoundSpan] | None:
    """The span, or None where gradients show none. Cost: about k + 28 rows, for m outputs k / m + 28."""
    search = _GradientSpan(oracle, inputs, rng, reach)
    with oracle.stage("gradients"):
        if not search.begin():
            return None
        for _ in range(ATTEMPTS):
            search.until_nothing_is_new()
            keep(search.basis)
            with oracle.stage("verification"):
                loud = search.loud_rows()
            if not len(loud):
                return search.outcome(Outcome.SPAN_RECOVERED)
            search.ask(loud)
    return search.outcome(Outcome.SPAN_PARTIAL)


class _GradientSpan:
    """The gradients so far."""

    def __init__(self, oracle: Counting, inputs: Inputs, rng: np.random.Generator, reach: float) -> None:
        self.oracle, self.inputs, self.rng, self.reach = oracle, inputs, rng, reach
        self.asked: _AskedGradients | None = None
        self.leak = 0.0

    def begin(self) -> bool:
        """Ask until some gradient is not 0; False where none is."""
        while self.asked is None or len(self.asked.rows) < MOST_DEAD:
            self.ask(self.drawn())
            if self.size > 0:
                return True
        return False

    def drawn(self) -> FloatArray:
        """Random inputs."""
        count = ROWS_AT_ONCE if self.inputs.domain.is_space else ROWS_IN_BOUNDS  # a bound hides rarely active neurons
        return self.inputs.draw(count, self.inputs.unit, self.rng)

    def ask(self, rows: FloatArray) -> None:
        """Take in the gradients at these rows."""
        found = self.oracle.query_gradients(rows)
        fresh = _AskedGradients(rows, found.values, found.gradients.reshape(-1, self.oracle.dim))
        self.asked = fresh if self.asked is None else self.asked + fresh

    @property
    def known(self) -> _AskedGradients:
        """The queries so far."""
        assert self.asked is not None  # `begin` comes first
        return self.asked

    @property
    def size(self) -> float:
        """The largest norm of a gradient."""
        return float(np.linalg.norm(self.known.slopes, axis=1).max())

    @property
    def rounding(self) -> float:
        """Unit roundoff of gradients; those of weights on a grid have the digits of the answers."""
        number_format = narrowest_format(self.known.slopes)
        return unit_roundoff(narrowest_format(self.known.values) if number_format == "float16" else number_format)

    @property
    def limit(self) -> float:
        """Norm of what counts as nothing."""
        return SPAN_ROUNDINGS * self.rounding * self.size

    def decomposed(self) -> tuple[FloatArray, FloatArray]:
        """Singular values and right vectors of all gradients."""
        _, sizes, right = np.linalg.svd(self.known.slopes, full_matrices=False)
        return sizes, right

    @property
    def basis(self) -> FloatArray:
        """The directions so far."""
        sizes, right = self.decomposed()
        return right[sizes > self.limit]

    def until_nothing_is_new(self) -> None:
        """Ask as long as a batch of rows brings directions."""
        rank = -1
        while (now := len(self.basis)) > rank and now < self.oracle.dim:
            rank = now
            self.ask(self.drawn())

    def loud_rows(self) -> FloatArray:
        """Ends of long steps outside the span that change the answers. Cost: 12 rows, 64 in bounds."""
        basis = self.basis
        if len(basis) == self.oracle.dim:
            return np.empty((0, self.oracle.dim))
        count = STEPS_OUTSIDE if self.inputs.domain.is_space else STEPS_IN_BOUNDS
        which = -1 - np.arange(count) % len(self.known.rows)  # the last rows first
        starts, values = self.known.rows[which], self.known.values[which]
        ends: list[FloatArray] = []

        def ask(rows: FloatArray) -> FloatArray:
            ends.append(rows)
            return self.oracle.query(rows)

        slope, _, _ = leak_slopes(self.ground(ask), basis, starts, values, self.rng)
        inside = np.abs(values).max(axis=1) + self.size * np.linalg.norm(ends[0], axis=1)
        met = self.reach * self.ground(ask).typical / np.sqrt(max(1, self.oracle.dim - len(basis)))
        self.leak = float(slope.max()) / self.size
        excess = slope / np.maximum(self.limit, DOUBLE.in_line * self.rounding * inside / met)
        loudest = np.argsort(-excess)[:MOST_LOUD]
        return ends[0][loudest[excess[loudest] > 1]]

    def ground(self, ask: Callable[[FloatArray], FloatArray]) -> Ground:
        """Where long steps start."""
        scale = self.inputs.scale_of(self.known.rows, self.inputs.unit)
        return Ground(ask, self.inputs, DistanceNoise(0.0, 0.0), scale, self.inputs.unit, self.reach)

    def outcome(self, outcome: Outcome) -> tuple[Outcome, FoundSpan]:
        """How it ended: the margin is what counted as nothing over the weakest direction."""
        sizes, right = self.decomposed()
        kept = sizes > self.limit
        rank, typical = int(kept.sum()), self.size
        dropped = max(float(sizes[rank]) if rank < len(sizes) else 0.0, self.limit / SPAN_ROUNDINGS)
        weakest = float(sizes[rank - 1])
        found = FoundSpan(
            right[kept], self.known.rows, self.known.values, np.full(len(self.known.rows), np.nan), typical,
            margin=dropped / weakest, leak=max(self.leak, dropped / typical), limit=self.limit / typical,
            gradients=len(self.known.rows), kept=weakest / typical,
        )  # fmt: skip
        if outcome is Outcome.SPAN_RECOVERED and (found.margin > UNCLEAR_MARGIN or found.angle > UNCLEAR_ANGLE):
            outcome = Outcome.RANK_UNCLEAR
        full = outcome is Outcome.SPAN_RECOVERED and rank == self.oracle.dim
        return (Outcome.FULL_RANK if full else outcome), found
