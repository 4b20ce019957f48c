"""Gradients at the price of the span: a target that looks at k directions has its gradients among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.geometry import DistanceNoise, Gradients, gradients
from reluctant.health.check import examine
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Counting, Oracle
from reluctant.oracles.opening import as_opened
from reluctant.span.result import Span
from reluctant.span.subspace import Subspace

__all__ = ["SpanGradients"]

LINES = 4
STEP = 2.0**-8  # of a typical coordinate; shortened where it meets a crease


@dataclass(frozen=True)
class SpanGradients:
    """Gradients of a target whose span is known: k + 2 rows a point instead of d + 2.

    Made by `SpanGradients.of(oracle, span)`, which costs a health check (68 rows).
    """

    oracle: Counting
    subspace: Subspace
    noise: DistanceNoise
    step: float
    rng: np.random.Generator

    @classmethod
    def of(cls, oracle: Oracle, span: Span | Subspace, *, rng: Rng = 0, step: float = STEP) -> SpanGradients:
        """Prepare for a target."""
        opened, generator = as_opened(oracle), as_generator(rng)
        subspace = span.subspace if isinstance(span, Span) else span
        noise = DistanceNoise.of(examine(opened, generator, LINES), opened.dim)
        return cls(opened, subspace, noise, step, generator)

    def inside(self, points: FloatArray) -> Gradients:
        """Slopes along the basis, with their noise and whether the check at each point passed."""
        steps = np.full(len(points), self.step)
        with self.oracle.stage("gradients"):
            return gradients(
                self.oracle.query, points, self.subspace.basis, steps, self.noise, self.rng,
                domain=self.oracle.facts.domain,
            )  # fmt: skip

    def __call__(self, points: FloatArray) -> FloatArray:
        """Gradients (n, m, d) at points (n, d); NaN where a crease is too close. Cost: k + 2 rows a point."""
        found = self.inside(np.asarray(points, dtype=np.float64))
        full = found.slope @ self.subspace.basis
        full[~found.good] = np.nan
        return np.asarray(full)
