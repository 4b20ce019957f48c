"""Answers that a network is held against: Gaussian points drawn before it was known, and points near its creases."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.geometry import DistanceNoise
from reluctant.geometry.noise import SAFETY, roundings
from reluctant.geometry.samples import TOLERANCE, IntArray
from reluctant.learning.accuracy import (
    Accuracy,
    Sampled,
    even_chances,
    likely_chances,
    measure_accuracy,
    near_creases,
    output_units,
)
from reluctant.learning.hyperplanes import Hyperplanes
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["Checked", "Drawn", "check_closely", "check_network", "draw_points"]

IN_STRIPS, MORE_IN_STRIPS = 256, 768  # points near creases: to see where errors are, and to measure them
FEW, NEARLY = 0.2, 1e-3  # of the points; of the largest deviation
FAR_BELOW = 1e3  # times smaller than eps need not be known better
FIRST_CHECK = 20.0  # as many times larger the error may be than a first check says: it meets few cells
BLOCK = 65_536  # rows asked at a time


@dataclass(frozen=True)
class Drawn:
    """Gaussian rows and their answers."""

    rows: FloatArray
    answers: FloatArray


@dataclass(frozen=True)
class Checked:
    """A network beside answers: its accuracy, and the points it does not explain, the worst first."""

    accuracy: Accuracy
    samples: Sampled
    unexplained: IntArray
    largest: float  # deviation, over the standard deviation of the output
    typical: float  # deviation
    standing_out: int  # points that err nearly as much as the worst one
    narrow: int  # of the Gaussian points those that do, if they are few and unexplained

    @property
    def rows(self) -> FloatArray:
        """Everything that was asked."""
        return self.samples.rows

    @property
    def mostly_right(self) -> bool:
        """True if so few points stand out that what is missing is narrow."""
        return self.standing_out < FEW * len(self.rows)


def draw_points(oracle: Counting, n: int, rng: np.random.Generator) -> Drawn:
    """Ask n Gaussian points."""
    rows = rng.standard_normal((n, oracle.dim))
    with oracle.stage("search", expected=n):
        answers = [oracle.query(rows[k : k + BLOCK]) for k in range(0, n, BLOCK)]
    return Drawn(rows, np.concatenate(answers))


def check_network(
    oracle: Counting, network: ReLUNetwork, drawn: Drawn, noise: DistanceNoise, rng: np.random.Generator
) -> Checked:
    """Hold a network against what was drawn and against new points near its creases. Cost: 256 rows."""
    return _check(oracle, network, drawn, noise, rng, IN_STRIPS, even_chances(Hyperplanes.of(network)))


def check_closely(
    oracle: Counting, network: ReLUNetwork, known: Checked, drawn: Drawn, noise: DistanceNoise,
    rng: np.random.Generator, eps: float,
) -> Checked:  # fmt: skip
    """Measure the error anew, mostly where a first check has met it.

    Cost: 768 rows; none if all errors are noise, or far below eps: then the interval of the first check is widened.
    """
    if not len(known.unexplained):
        return _no_better_than_noise(known, noise)
    if FAR_BELOW * known.accuracy.high <= eps:
        return _with_high(known, FIRST_CHECK * known.accuracy.high)
    chances = likely_chances(network, known.samples, Hyperplanes.of(network))
    return _check(oracle, network, drawn, noise, rng, MORE_IN_STRIPS, chances)


def _check(
    oracle: Counting, network: ReLUNetwork, drawn: Drawn, noise: DistanceNoise, rng: np.random.Generator,
    strips: int, chances: FloatArray,
) -> Checked:  # fmt: skip
    planes = Hyperplanes.of(network)
    near = near_creases(planes, strips, chances, rng)
    with oracle.stage("accuracy", expected=len(near)):
        answers = np.concatenate([drawn.answers, oracle.query(near)]) if len(near) else drawn.answers
    samples = Sampled(np.concatenate([drawn.rows, near]), answers, len(near), chances)
    return _compared(network, samples, measure_accuracy(network, samples, planes), noise, len(drawn.rows))


def _compared(
    network: ReLUNetwork, samples: Sampled, accuracy: Accuracy, noise: DistanceNoise, gaussian: int
) -> Checked:
    """Where a network is off, of the samples the first of which are Gaussian."""
    each = np.abs(samples.answers - network(samples.rows))
    units = np.sqrt(output_units(samples.answers[:gaussian], np.ones(gaussian)))
    off = each.max(axis=1)
    sd = np.hypot(noise.at(np.linalg.norm(samples.rows, axis=1)), roundings(np.abs(samples.answers).max(axis=1)))
    worst = np.argsort(-off / sd)
    unexplained = worst[off[worst] > TOLERANCE * sd[worst]]
    standing_out = int((off > NEARLY * off.max()).sum())
    plain = off[:gaussian]
    far = plain > NEARLY * plain.max()  # few, or the error is everywhere, whether noise explains it or not
    narrow = int((far & (plain > TOLERANCE * sd[:gaussian])).sum()) if far.sum() < FEW * gaussian else 0
    largest = float((each / units).max())
    return Checked(accuracy, samples, unexplained, largest, float(np.median(off)), standing_out, narrow)


def _no_better_than_noise(checked: Checked, noise: DistanceNoise) -> Checked:
    """Errors that all look like noise may all be as large as noise."""
    accuracy = checked.accuracy
    floor = (noise.near / SAFETY) ** 2 / accuracy.variance
    return _with_high(checked, max(accuracy.high, accuracy.error + floor))


def _with_high(checked: Checked, high: float) -> Checked:
    return replace(checked, accuracy=replace(checked.accuracy, high=high))
