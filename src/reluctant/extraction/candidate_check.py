"""A candidate network held against the target: where errors of a candidate of its kind would show.

Random points at each scale cost a share of the rows spent. A candidate for few digits is compared with the noise that
its method has measured, and its precision is examined too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reluctant.extraction.method import Candidate
from reluctant.networks import ReLUNetwork
from reluctant.numerics import Noise
from reluctant.oracles import Counting, Rows
from reluctant.verification.agreement import Verification, examine
from reluctant.verification.comparison import MOST_TOLERANCE, AtUse
from reluctant.verification.precision import Precision, PrecisionCheck, examine_precision

__all__ = [
    "FAR_POINTS",
    "FEW_DIGITS_TOLERANCE",
    "FEW_NEURONS",
    "POINTS_FOR_DEEP",
    "CheckedNetwork",
    "check_candidate",
    "points_worth",
]

VERIFICATION_SHARE = 5e-4  # random points at each scale, of the rows spent; creases are looked at besides
FEWEST_POINTS, MOST_POINTS = 20, 64
FEW_ROWS, POINTS_FOR_FEW_ROWS = 5000, 36  # a small network can afford more than its share
FEW_NEURONS, FAR_POINTS = 32, 48  # parts of a few deeper neurons may look like one layer where random points are
POINTS_FOR_DEEP = 160  # deeper neurons are active in parts of space that few points meet
FEW_DIGITS_TOLERANCE = 0.1  # of the output's deviation: held-out answers have already been compared with the noise


@dataclass(frozen=True)
class CheckedNetwork:
    """A whole network with its checks: the candidate of a method, put the right way round."""

    network: ReLUNetwork
    candidate: Candidate
    verification: Verification
    precision: PrecisionCheck | None = None

    @property
    def doubt(self) -> Verification | PrecisionCheck | None:
        """The first check that did not pass."""
        checks = (self.verification, self.precision)
        return next((check for check in checks if check is not None and not check.ok), None)

    def beside(self, at_use: AtUse | None) -> CheckedNetwork:
        """With a comparison at typical inputs, where there is one."""
        return replace(self, verification=self.verification.beside(at_use))

    def evidence(self) -> dict[str, Any]:
        """What speaks for the network, and against it."""
        found: dict[str, Any] = {"limits": self.candidate.limits} if self.candidate.limits else {}
        found |= {} if self.precision is None else {"precision": self.precision}
        return found | {"verification": self.verification, "certificate": self.candidate.certificate}


def check_candidate(
    oracle: Counting, network: ReLUNetwork, candidate: Candidate, noise: Noise, spent: Rows, rng: np.random.Generator
) -> CheckedNetwork:
    """Target against network, after so many rows.

    `network` is the candidate's, put the right way round; `noise` the target's, as its health check has measured it.
    """
    one_layer, most, precision = network.depth == 2, MOST_TOLERANCE, None
    if candidate.precision is not None:
        precision = examine_precision(oracle, network, candidate.precision, rng, spent.queries)
        noise, most = _measured_noise(candidate.precision, noise, oracle), FEW_DIGITS_TOLERANCE
    verification = examine(
        oracle, network, rng,
        noise=noise,
        # Rows asked, not sent: a retry must not change what is asked.
        points=points_worth(spent.asked) if network.depth <= 2 else POINTS_FOR_DEEP,
        per_neuron=0,
        held_out=candidate.held_out,
        far=FAR_POINTS if one_layer and network.widths[1] <= FEW_NEURONS else 0,
        most_tolerance=most,
    )  # fmt: skip
    return CheckedNetwork(network, candidate, verification, precision)


def _measured_noise(precision: Precision, noise: Noise, oracle: Counting) -> Noise:
    """The noise as the method for few digits has measured it."""
    near = float(precision.near.max())
    return Noise(near if oracle.facts.domain.is_space else max(near, noise.absolute), noise.relative)


def points_worth(spent: int) -> int:
    """Random points at each scale that a network is verified at, after so many rows."""
    if spent < FEW_ROWS:
        return POINTS_FOR_FEW_ROWS
    return int(np.clip(VERIFICATION_SHARE * spent, FEWEST_POINTS, MOST_POINTS))
