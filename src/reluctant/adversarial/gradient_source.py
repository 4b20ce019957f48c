"""Sources of margins and gradients: queries to a target, a known span that saves most of them, or a network.

A source answers rows and gives gradients at one point; what it costs is counted where the target is asked. What a
user gives, the input, the span and the number of steps, is checked here before anything is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from reluctant.adversarial.decision import DECIDED, OWN_ROUNDINGS, SideLimit
from reluctant.adversarial.ray import Probe, probe_input
from reluctant.domains import Domain
from reluctant.errors import InvalidInput, InvalidRows, NonFiniteAnswer, OutsideDomain
from reluctant.geometry import DistanceNoise
from reluctant.geometry.gradients import gradients
from reluctant.interface.noise import UNIFORM_SD, RawDigits, narrowest_format, rounding_noise
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Counting
from reluctant.oracles.links import link_of, raw_answers
from reluctant.span.cheap_gradients import INSIDE, SpanGradients
from reluctant.span.subspace import Subspace


class HasBasis(Protocol):
    """A subspace: anything with an orthonormal `basis` (k, d)."""

    @property
    def basis(self) -> FloatArray:
        """Orthonormal rows."""


def checked_input(x: ArrayLike, dim: int, domain: Domain) -> FloatArray:
    """One input (d,) inside the domain, or an error."""
    start = np.asarray(x, dtype=np.float64)
    if start.shape == (1, dim):
        start = start[0]
    if start.shape != (dim,) or not np.isfinite(start).all():
        raise InvalidRows.about("x", got=f"shape {start.shape}", expected=f"({dim},), finite")
    if not domain.contains(start[None]):
        raise OutsideDomain.about("x", got="an input outside", expected=f"one in the domain, {domain.describe()}")
    return start


def checked_basis(span: HasBasis | None, dim: int) -> FloatArray | None:
    """The basis (k, d) of a span, None without one."""
    if span is None:
        return None
    basis = np.asarray(getattr(span, "basis", None), dtype=np.float64)
    if basis.ndim != 2 or basis.shape[1] != dim or not len(basis):
        raise InvalidInput.about(
            "span", got=f"{type(span).__name__} with a basis of shape {basis.shape}",
            expected=f"an object with a basis (rank, {dim}), rank above 0",
        )  # fmt: skip
    return basis


def checked_steps(steps: int) -> None:
    """A whole number of steps."""
    if not isinstance(steps, int | np.integer) or isinstance(steps, bool) or steps < 1:
        raise InvalidInput.about("steps", got=repr(steps), expected="a whole number, at least 1")


MOVED_INSIDE = 2.0  # half the width of a box over this: the farthest that a point is moved away from its bounds


class GradientSource(Protocol):
    """Answers and gradients around one input."""

    domain: Domain
    sd: float  # noise of an answer

    @property
    def least(self) -> float:
        """Margins at the input that are no larger say nothing about a side."""

    def limit(self, slopes: FloatArray) -> SideLimit:
        """The same of other inputs, where these are the gradients (m, d)."""

    @property
    def slope_noise(self) -> float:
        """Noise of a gradient, as a norm."""

    def ask(self, rows: FloatArray) -> FloatArray:
        """Answers (n, m), NaN where there is no number."""

    def gradient(self, x: FloatArray) -> FloatArray:
        """Gradients (m, d) of all outputs."""


@dataclass
class KnownNetwork:
    """A network whose weights are known: nothing is asked."""

    network: ReLUNetwork
    domain: Domain
    sd: float

    @classmethod
    def at(cls, network: ReLUNetwork, x: FloatArray, domain: Domain) -> KnownNetwork:
        """Around x."""
        size = float(np.abs(network(x[None])).max())
        return cls(network, domain, OWN_ROUNDINGS * unit_roundoff(np.float64) * size)

    @property
    def least(self) -> float:
        """A few times what arithmetic leaves unknown."""
        return DECIDED * self.sd

    def limit(self, slopes: FloatArray) -> SideLimit:
        """By the same arithmetic on the terms that are added up."""
        roundoff = OWN_ROUNDINGS * unit_roundoff(np.float64)
        return SideLimit.of_sums(roundoff, roundoff, slopes, self.least)

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
class QueriedTarget:
    """A target that is asked; with the basis (k, d) of a span a gradient takes k + 2 rows instead of d + 2.

    behind: the digits of the probabilities that answers were read from; None without a link.
    """

    oracle: Counting
    domain: Domain
    probe: Probe
    behind: RawDigits | None
    sd: float
    basis: FloatArray | None
    rng: np.random.Generator

    @classmethod
    def at(
        cls,
        oracle: Counting,
        x: FloatArray,
        basis: FloatArray | None,
        rng: np.random.Generator,
        *,
        far: bool = False,
    ) -> QueriedTarget:
        """Probe the target around x; far: where digits are few, by steps as long as x. Cost: 13 rows, or 31."""
        domain = oracle.facts.domain
        with oracle.stage("probe"), raw_answers(oracle) as told:
            found = probe_input(
                oracle.query, x, domain, rng, ask_far=lambda rows: _query_with_gaps(oracle, rows),
                told_noise=lambda: 0.0 if not told else _digits_behind(oracle, told).noise,
                longest=_longest_step(domain, basis) if far else 0.0,
            )  # fmt: skip
        return cls(oracle, domain, found, _digits_behind(oracle, told) if told else None, found.sd, basis, rng)

    @property
    def values(self) -> FloatArray:
        """Answers (m,) at the input."""
        return np.asarray(self.probe.answers[0])

    @property
    def least(self) -> float:
        """A few times the noise; of rounding half a unit of the last digit, which is the most that it changes."""
        noise = self.sd if self.sd > self.probe.sd else self.probe.fresh
        return max(DECIDED * noise, rounding_noise(self.probe.answers) / UNIFORM_SD / 2)

    def limit(self, slopes: FloatArray) -> SideLimit:
        """By the digits in which the target gave its answers."""
        number_format = narrowest_format(self.probe.answers) if self.behind is None else self.behind.number_format
        return SideLimit.of(number_format, slopes, self.least)

    @property
    def slope_noise(self) -> float:
        """Of a difference of two answers over a step, in every direction."""
        directions = self.oracle.dim if self.basis is None else len(self.basis)
        return self.slope_noise_of(directions)

    def slope_noise_of(self, directions: int) -> float:
        """Norm of the noise of slopes along so many directions."""
        return float(np.sqrt(2 * directions) * self.sd / self.probe.step)

    def ask(self, rows: FloatArray) -> FloatArray:
        """Ask along the ray; far out a target may have no number to give."""
        with self.oracle.stage("line"):
            return _query_with_gaps(self.oracle, rows)

    def gradient(self, x: FloatArray) -> FloatArray:
        """By forward differences, once: a few steps across a crease turn a gradient only a little.

        The row that checks them is another reading of the noise, where rounding or creases on long steps are not.
        """
        if self.basis is None:
            slope, off = self.slopes(x[None], None)
            gradient = slope[0]
        else:
            with self.oracle.stage("gradient"):
                found = self.in_span(self.basis).inside(x[None])
            gradient, off = found.slope[0] @ self.basis, found.off
        if self.probe.fresh == self.probe.sd and not self.probe.long:
            self.sd = max(self.sd, float(off[0]))
        return np.asarray(gradient)

    def in_span(self, basis: FloatArray) -> SpanGradients:
        """Gradients among the directions of a span, with the step and the noise of this input."""
        noise = DistanceNoise(self.sd, 0.0)
        return SpanGradients(self.oracle, Subspace(basis), noise, self.probe.step, self.rng, rounds=1)

    def slopes(self, points: FloatArray, basis: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Slopes (n, m, k) along a basis, None for the inputs, and what the check of each was off, as noise."""
        noise, steps = DistanceNoise(self.sd, 0.0), np.full(len(points), self.probe.step)
        with self.oracle.stage("gradient"):
            found = gradients(self.oracle.query, points, basis, steps, noise, self.rng, domain=self.domain, rounds=1)
        return found.slope, found.off

    def inside(self, x: FloatArray) -> FloatArray:
        """Moved so far from the bounds that a step along any unit direction stays between them."""
        return self.domain.away(x, INSIDE * self.probe.step)


def _query_with_gaps(oracle: Counting, rows: FloatArray) -> FloatArray:
    """Answers (n, m), NaN in rows that have no number."""
    try:
        return oracle.query(rows)
    except NonFiniteAnswer as error:
        return np.where(np.isfinite(error.answers).all(axis=1, keepdims=True), error.answers, np.nan)


def _longest_step(domain: Domain, basis: FloatArray | None) -> float:
    """Of the steps for a gradient: along a span in a box, points are moved away from its bounds by as much."""
    return (
        np.inf if basis is None else float(np.min(np.subtract(domain.high, domain.low)) / (2 * MOVED_INSIDE * INSIDE))
    )


def _digits_behind(oracle: Counting, told: list[FloatArray]) -> RawDigits:
    return RawDigits.of(np.concatenate(told), link_of(oracle), ratios=oracle.facts.reference)
