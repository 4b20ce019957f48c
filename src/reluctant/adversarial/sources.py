"""Where margins and gradients come from: questions to a target, a known span that saves most of them, or a network.

A source answers rows and gives gradients at one point; what it costs is counted where the target is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from reluctant.adversarial.probe import probe
from reluctant.domains import Domain
from reluctant.geometry import DistanceNoise
from reluctant.geometry.gradients import gradients
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Counting

__all__ = ["Known", "Queried", "Source"]

OWN_ROUNDINGS = 8.0  # of a network's answer, in units of its size
INSIDE = 2.0  # steps away from the bounds, where directions of a span are followed


class Source(Protocol):
    """Answers and gradients around one input."""

    domain: Domain
    sd: float  # noise of an answer

    @property
    def slope_noise(self) -> float:
        """Noise of a gradient, as a norm."""

    def ask(self, rows: FloatArray) -> FloatArray:
        """Answers (n, m)."""

    def gradient(self, x: FloatArray) -> FloatArray:
        """Gradients (m, d) of all outputs."""


@dataclass
class Known:
    """A network whose weights are known: nothing is asked."""

    network: ReLUNetwork
    domain: Domain
    sd: float

    @classmethod
    def at(cls, network: ReLUNetwork, x: FloatArray, domain: Domain) -> Known:
        """Around x."""
        size = float(np.abs(network(x[None])).max())
        return cls(network, domain, OWN_ROUNDINGS * unit_roundoff(np.float64) * size)

    @property
    def slope_noise(self) -> float:
        """There is none to speak of."""
        return 0.0

    def ask(self, rows: FloatArray) -> FloatArray:
        """Evaluate the network."""
        return self.network(rows)

    def gradient(self, x: FloatArray) -> FloatArray:
        """By one pass back through the network."""
        return np.asarray(self.network.gradients(x[None])[0])


@dataclass
class Queried:
    """A target that is asked; with the basis (k, d) of a span a gradient takes k + 2 rows instead of d + 2."""

    oracle: Counting
    domain: Domain
    sd: float
    step: float
    values: FloatArray
    flat: bool
    basis: FloatArray | None
    rng: np.random.Generator

    @classmethod
    def at(cls, oracle: Counting, x: FloatArray, basis: FloatArray | None, rng: np.random.Generator) -> Queried:
        """Probe the target around x. Cost: 13 rows."""
        domain = oracle.facts.domain
        with oracle.stage("probe"):
            found = probe(oracle.query, x, domain, rng)
        return cls(oracle, domain, found.sd, found.step, found.values, found.flat, basis, rng)

    @property
    def slope_noise(self) -> float:
        """Of a difference of two answers over a step, in every direction."""
        directions = self.oracle.dim if self.basis is None else len(self.basis)
        return float(np.sqrt(2 * directions) * self.sd / self.step)

    def ask(self, rows: FloatArray) -> FloatArray:
        """Ask along the ray."""
        with self.oracle.stage("line"):
            return self.oracle.query(rows)

    def gradient(self, x: FloatArray) -> FloatArray:
        """By forward differences, once: a few steps across a crease turn a gradient only a little."""
        noise, steps = DistanceNoise(self.sd, 0.0), np.array([self.step])
        at = x if self.basis is None else self.inside(x)
        with self.oracle.stage("gradient"):
            found = gradients(
                self.oracle.query, at[None], self.basis, steps, noise, self.rng, domain=self.domain, rounds=1
            )
        return np.asarray(found.slope[0] if self.basis is None else found.slope[0] @ self.basis)

    def inside(self, x: FloatArray) -> FloatArray:
        """Moved so far from the bounds that a step along any unit direction stays between them."""
        if self.domain.is_space:
            return x
        margin = np.minimum(INSIDE * self.step, (np.asarray(self.domain.high) - self.domain.low) / 2)
        return np.clip(x, self.domain.low + margin, self.domain.high - margin)
