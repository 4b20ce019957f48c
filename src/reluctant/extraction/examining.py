"""How closely a candidate network is compared with its target before it counts as recovered."""

from __future__ import annotations

import numpy as np

from reluctant.extraction.candidate import Candidate
from reluctant.networks import ReLUNetwork
from reluctant.numerics import Noise
from reluctant.oracles import Counting
from reluctant.verification.check import examine
from reluctant.verification.findings import Verification
from reluctant.verification.precision import Precision
from reluctant.verification.tolerances import MOST_TOLERANCE

__all__ = ["FAR_POINTS", "FEW_DIGITS_TOLERANCE", "FEW_NEURONS", "POINTS_FOR_DEEP", "examine_candidate", "points_worth"]

VERIFICATION_SHARE = 5e-4  # random points at each scale, of the rows spent; creases are looked at besides
FEWEST_POINTS, MOST_POINTS = 20, 64
FEW_ROWS, POINTS_FOR_FEW_ROWS = 5000, 36  # a small network can afford more than its share
FEW_NEURONS, FAR_POINTS = 32, 48  # parts of a few deeper neurons may look like one layer where random points are
POINTS_FOR_DEEP = 160  # deeper neurons are active in parts of space that few points meet
FEW_DIGITS_TOLERANCE = 0.1  # of the output's deviation: held-out answers have already been compared with the noise


def examine_candidate(
    oracle: Counting, network: ReLUNetwork, candidate: Candidate, noise: Noise, spent: int, rng: np.random.Generator
) -> Verification:
    """Target against network, after so many rows: where errors of a candidate of its kind would show.

    `network` is the candidate's, put the right way round; `noise` the target's, as its health check has measured it.
    """
    one_layer = network.depth == 2
    most = MOST_TOLERANCE
    if candidate.precision is not None:
        noise, most = _as_measured(candidate.precision, noise, oracle), FEW_DIGITS_TOLERANCE
    return examine(
        oracle, network, rng,
        noise=noise,
        points=points_worth(spent) if network.depth <= 2 else POINTS_FOR_DEEP,
        per_neuron=0,
        held_out=candidate.held_out,
        far=FAR_POINTS if one_layer and network.widths[1] <= FEW_NEURONS else 0,
        most_tolerance=most,
    )  # fmt: skip


def _as_measured(precision: Precision, noise: Noise, oracle: Counting) -> Noise:
    """The noise as the method for few digits has measured it."""
    near = float(precision.near.max())
    return Noise(near if oracle.facts.domain.is_space else max(near, noise.absolute), noise.relative)


def points_worth(spent: int) -> int:
    """Random points at each scale that a network is verified at, after so many rows."""
    if spent < FEW_ROWS:
        return POINTS_FOR_FEW_ROWS
    return int(np.clip(VERIFICATION_SHARE * spent, FEWEST_POINTS, MOST_POINTS))
