"""Answers that a network is held against: Gaussian points drawn before it was known, and points near its creases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.geometry import DistanceNoise
from reluctant.geometry.noise import roundings
from reluctant.geometry.samples import TOLERANCE, IntArray
from reluctant.learning.accuracy import Accuracy, measure_accuracy, near_creases
from reluctant.learning.hyperplanes import Hyperplanes
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["Checked", "Drawn", "check_network", "draw_points"]

IN_STRIPS = 256  # points near creases
FEW, NEARLY = 0.2, 1e-3  # of the points; of the largest deviation


@dataclass(frozen=True)
class Drawn:
    """Gaussian rows and their answers."""

    rows: FloatArray
    answers: FloatArray


@dataclass(frozen=True)
class Checked:
    """A network beside answers: its accuracy, and the points it does not explain, the worst first."""

    accuracy: Accuracy
    rows: FloatArray
    unexplained: IntArray
    largest: float  # deviation, over the standard deviation of the target
    typical: float  # deviation
    standing_out: int  # points that err nearly as much as the worst one

    @property
    def mostly_right(self) -> bool:
        """True if these are so few that what is missing is narrow."""
        return self.standing_out < FEW * len(self.rows)


def draw_points(oracle: Counting, n: int, rng: np.random.Generator) -> Drawn:
    """Ask n Gaussian points."""
    rows = rng.standard_normal((n, oracle.dim))
    with oracle.stage("search", expected=n):
        return Drawn(rows, oracle.query(rows))


def check_network(
    oracle: Counting, network: ReLUNetwork, drawn: Drawn, noise: DistanceNoise, rng: np.random.Generator
) -> Checked:
    """Hold a network against what was drawn and against new points near its creases. Cost: 256 rows."""
    planes = Hyperplanes.of(network)
    strips = near_creases(planes, IN_STRIPS, rng)
    with oracle.stage("accuracy", expected=len(strips)):
        answers = np.concatenate([drawn.answers, oracle.query(strips)]) if len(strips) else drawn.answers
    rows = np.concatenate([drawn.rows, strips])
    accuracy = measure_accuracy(network, rows, answers, len(strips), planes)
    off = np.abs(answers - network(rows)).max(axis=1)
    sd = np.hypot(noise.at(np.linalg.norm(rows, axis=1)), roundings(np.abs(answers).max(axis=1)))
    worst = np.argsort(-off / sd)
    unexplained = worst[off[worst] > TOLERANCE * sd[worst]]
    largest = float(off.max())
    standing_out = int((off > NEARLY * largest).sum())
    relative = largest / float(np.sqrt(accuracy.variance))
    return Checked(accuracy, rows, unexplained, relative, float(np.median(off)), standing_out)
