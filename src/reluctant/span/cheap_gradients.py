"""Gradients within a known span of k directions: k + 2 rows a point, whatever the number of inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.errors import InvalidInput, InvalidRows
from reluctant.geometry import DistanceNoise, Gradients, gradients
from reluctant.geometry.gradients import MOST_GRADIENT_ROUNDS
from reluctant.interface.health import examine
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Counting, Oracle
from reluctant.oracles.open import as_opened
from reluctant.span.recover import Span
from reluctant.span.subspace import Subspace

STEP = 2.0**-8  # of a typical coordinate; shortened where it meets a crease
INSIDE = 2.0  # steps away from the bounds, where directions of a span are followed


@dataclass(frozen=True)
class SpanGradients:
    """Gradients of a target whose span is known: k + 2 rows a point instead of d + 2, more where a step meets a crease.

    Made by `SpanGradients.of(oracle, span)`, which costs a health check (68 rows). Beside the bounds of a domain they
    are measured two steps inside.
    """

    oracle: Counting
    subspace: Subspace
    noise: DistanceNoise
    step: float
    rng: np.random.Generator
    rounds: int = MOST_GRADIENT_ROUNDS

    @classmethod
    def of(cls, oracle: Oracle, span: Span | Subspace, *, rng: Rng = 0, step: float = STEP) -> SpanGradients:
        """Prepare for a target; a span must be ok, a subspace is trusted."""
        lines = 4
        if not isinstance(span, Span | Subspace):
            raise InvalidInput.about("span", got=type(span).__name__, expected="what recover_span gave, or a Subspace")
        subspace = span.raise_for_status().subspace if isinstance(span, Span) else span
        opened, generator = as_opened(oracle), as_generator(rng)
        if subspace.dim != opened.dim:
            raise InvalidInput.about("span", got=f"{subspace.dim} inputs", expected=f"{opened.dim}, as the target has")
        noise = DistanceNoise.of(examine(opened, generator, lines), opened.dim)
        return cls(opened, subspace, noise, step, generator)

    def inside(self, points: FloatArray) -> Gradients:
        """Slopes along the basis, with their noise and whether the check at each point passed."""
        domain = self.oracle.facts.domain
        return gradients(
            self.oracle.query, domain.away(points, INSIDE * self.step), self.subspace.basis,
            np.full(len(points), self.step), self.noise, self.rng, domain=domain, rounds=self.rounds,
        )  # fmt: skip

    def __call__(self, points: FloatArray) -> FloatArray:
        """Gradients (n, m, d) at points (n, d); NaN where a crease is too close. Cost: k + 2 rows a point or more."""
        rows = np.asarray(points, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.subspace.dim:
            raise InvalidRows.about("points", got=f"shape {rows.shape}", expected=f"(n, {self.subspace.dim})")
        if not self.subspace.rank or not len(rows):
            return np.zeros((len(rows), self.oracle.outputs, self.subspace.dim))
        with self.oracle.stage("gradients"):
            found = self.inside(rows)
        full = found.slope @ self.subspace.basis
        full[~found.good] = np.nan
        return np.asarray(full)
