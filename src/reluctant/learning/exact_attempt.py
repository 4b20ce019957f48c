"""The first attempt of `learn`: refusals, working noise, and one run of the exact method.

The exact method is the cheapest where it works. Noise is measured on more lines than a health check takes, and
never below the number format: a target that is flat nearly everywhere rounds to exact zeros there, and what it
does inside a bump is another matter. What looks flat is not refused, for it may have a bump.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.attempts import FEW_DIGITS_TOLERANCE
from reluctant.extraction.depth_two import DepthTwo
from reluctant.extraction.few_digits import FewDigits
from reluctant.extraction.method import StageFailed
from reluctant.extraction.prospects import answered_far_out, exact_refusal, too_few_digits
from reluctant.geometry import DistanceNoise
from reluctant.interface import Interface
from reluctant.interface.diagnoses import unreadable_values
from reluctant.interface.noise import measure_noise, narrowest_format
from reluctant.learning.models import oriented_network
from reluctant.messages import Diagnosis, Remedy
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray, unit_roundoff
from reluctant.oracles import Counting
from reluctant.oracles.base import Kind
from reluctant.oracles.ledger import Limit
from reluctant.results import Outcome
from reluctant.verification.agreement import Verification, examine
from reluctant.verification.comparison import MOST_TOLERANCE

SATURATED = Diagnosis("saturates-in-space", remedies=(Remedy("use-extract", "extract"),))
FLAT_OUTCOMES = {Outcome.CONSTANT, Outcome.PIECEWISE_CONSTANT, Outcome.TOO_NOISY}  # as a bump looks from outside


def refusal_of(health: Interface) -> Outcome | None:
    """Why a target cannot be learned, or None; what looks flat may have a bump."""
    labels = health.answers is Kind.LABELS and health.refusal is not Outcome.CONSTANT
    if health.refusal is not None and (health.refusal not in FLAT_OUTCOMES or labels):
        return health.refusal
    return Outcome.OUT_OF_REACH if exact_refusal(health) is Outcome.OUT_OF_REACH else None


def unread_behind_link(health: Interface) -> tuple[Outcome, Diagnosis] | None:
    """Why values that a link reads cannot be learned in all of space, or None."""
    if health.raw is not None and health.raw.too_coarse:
        return Outcome.LOW_PRECISION, unreadable_values(health)
    certain = health.refusal is Outcome.NON_FINITE and health.raw is not None and not health.raw.certain
    if not certain and (health.raw is None or health.refusal is not None or answered_far_out(health)):
        return None
    return unreadable(health)


def unreadable(health: Interface) -> tuple[Outcome, Diagnosis]:
    """Of values that a link cannot read everywhere: for noise, or because probabilities saturate."""
    if health.deterministic:
        return Outcome.OUT_OF_REACH, SATURATED
    return Outcome.LOW_PRECISION, too_few_digits(health, tried=False)


NOISE_LINES = 12
FORMAT_ROUNDINGS = 2.0  # of the largest answer in its number format


def working_noise(oracle: Counting, health: Interface, answers: FloatArray, rng: np.random.Generator) -> DistanceNoise:
    """Noise by distance from the origin, of a target that gave these answers to random points. Cost: 60 rows."""
    known = DistanceNoise.of(health, oracle.dim)
    with oracle.stage("noise"):
        reading = measure_noise(oracle, rng, lines=NOISE_LINES)
    rounding = FORMAT_ROUNDINGS * unit_roundoff(narrowest_format(answers)) * float(np.abs(answers).max())
    near = max(known.near, DOUBLE.safety * reading.sd if reading else 0.0, rounding)
    # Far out all of a few lines may meet neurons that are off: roundings of sums grow like the inputs do.
    return DistanceNoise(near, max(known.growth, near / float(np.sqrt(oracle.dim))))


VERIFICATION_POINTS = 36  # at each scale
COMPARED_ROWS = 256  # rows at which a network is compared to itself without its skip term
MOST_OF_FEW = 8000  # with few digits, where a line takes 50 to 100 a neuron: what is curved takes many more
FEW_LINES = 2  # that the method for few digits may try
MOST_ON_LINE = 12_000  # rows: a line of two thousand neurons takes no more


@dataclass(frozen=True)
class ExactTry:
    """What the exact method gave: a network with its verification, or why there is none."""

    network: ReLUNetwork | None = None
    verification: Verification | None = None
    failure: str = ""

    @property
    def verified(self) -> bool:
        """True if there is a network and it passed."""
        return self.verification is not None and self.verification.ok


def try_exact(
    oracle: Counting, health: Interface, noise: DistanceNoise, rng: np.random.Generator, *, few_digits: bool = False
) -> ExactTry:
    """One attempt of `DepthTwo`, or of `FewDigits`, verified.

    Cost: about one row a parameter, and 110 and one a neuron; of few digits as `FewDigits` takes.
    """
    method = FewDigits(lines=FEW_LINES) if few_digits else DepthTwo()
    limit = Limit(MOST_OF_FEW if few_digits else MOST_ON_LINE, stage="line", refusal=_endless_line)
    try:
        candidate = method.run(limit.of(oracle), noise, rng, lambda part: None)
    except (StageFailed, np.linalg.LinAlgError) as failure:
        return ExactTry(failure=str(failure))
    network = oriented_network(candidate.network, rng.standard_normal((COMPARED_ROWS, oracle.dim)), noise.near)
    verification = examine(
        oracle, network, rng, noise=health.noise, points=VERIFICATION_POINTS, per_neuron=0, held_out=candidate.held_out,
        most_tolerance=FEW_DIGITS_TOLERANCE if few_digits else MOST_TOLERANCE,
    )  # fmt: skip
    return ExactTry(network, verification, "" if verification.ok else str(verification))


def _endless_line(wanted: int, most: float) -> StageFailed:
    """The first line is not getting anywhere: noise larger than measured is taken for creases."""
    return StageFailed("line", "creases without end", number=wanted, limit=most)
