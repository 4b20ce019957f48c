"""A target inside its domain: where it may be asked, how noisy it is, and what a small error is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.domains import Domain
from reluctant.extraction.bounded.walls import domain_scale
from reluctant.geometry import DistanceNoise, Gradients, gradients
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.lost_digits import lost_digits

__all__ = ["Inside"]


@dataclass(frozen=True)
class Inside:
    """What all stages share. `spread` is the deviation of the answers, the unit of errors."""

    oracle: Counting
    noise: DistanceNoise
    rng: np.random.Generator
    scale: float
    spread: float = 1.0

    @classmethod
    def of(cls, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator) -> Inside:
        """Before anything was asked."""
        return cls(oracle, noise, rng, domain_scale(oracle.facts.domain, oracle.dim))

    @property
    def domain(self) -> Domain:
        """Where the target may be asked."""
        return self.oracle.facts.domain

    def ask(self, rows: FloatArray) -> FloatArray:
        """Answers; rows that rounding has put a hair outside are put back."""
        return self.oracle.query(np.clip(rows, self.domain.low, self.domain.high))

    def gradients(self, points: FloatArray, axes: FloatArray | None, steps: FloatArray) -> Gradients:
        """Slopes at points along these axes, None for the coordinates."""
        return gradients(self.ask, points, axes, steps, self.noise, self.rng, domain=self.domain, lost=self.lost)

    def noise_of(self, rows: FloatArray, answers: FloatArray) -> FloatArray:
        """Noise (n,) of these answers: by where they were asked, and by the digits that probabilities lose."""
        return np.hypot(self.noise.at(np.linalg.norm(rows, axis=1)), self.lost(rows, answers))

    def lost(self, _: FloatArray, answers: FloatArray) -> FloatArray:
        """Noise (n,) of answers that come from probabilities next to 1, wherever they were asked; 0 of others."""
        return np.asarray(lost_digits(answers, self.oracle).max(axis=1))
