"""First try: the exact method, which is the cheapest where it works."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.depth_two import DepthTwo
from reluctant.extraction.examining import FEW_DIGITS_TOLERANCE
from reluctant.extraction.failures import StageFailed
from reluctant.extraction.few_digits import FewDigits
from reluctant.geometry import DistanceNoise
from reluctant.health import Health
from reluctant.learning.models import oriented
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting, Oracle, Wrapper
from reluctant.oracles.ledger import Ledger
from reluctant.verification.check import examine
from reluctant.verification.findings import Verification
from reluctant.verification.tolerances import MOST_TOLERANCE

__all__ = ["VERIFICATION_POINTS", "Tried", "try_exact"]

VERIFICATION_POINTS = 36  # at each scale
COMPARED = 256  # rows at which a network is compared to itself without its skip term
MOST_OF_FEW = 8000  # with few digits, where a line takes 50 to 100 a neuron: what is curved takes many more
FEW_LINES = 2  # that the method for few digits may try
MOST_ON_LINE = 12_000  # rows: a line of two thousand neurons takes no more


@dataclass(frozen=True)
class Tried:
    """What the exact method gave: a network with its verification, or why there is none."""

    network: ReLUNetwork | None = None
    verification: Verification | None = None
    failure: str = ""

    @property
    def verified(self) -> bool:
        """True if there is a network and it passed."""
        return self.verification is not None and self.verification.ok


def try_exact(
    oracle: Counting, health: Health, noise: DistanceNoise, rng: np.random.Generator, *, few_digits: bool = False
) -> Tried:
    """One attempt of `DepthTwo`, or of `FewDigits`, verified.

    Cost: about one row a parameter, and 110 and one a neuron; of few digits as `FewDigits` takes.
    """
    method = FewDigits(lines=FEW_LINES) if few_digits else DepthTwo()
    try:
        candidate = method.run(
            _stopping(oracle, MOST_OF_FEW if few_digits else MOST_ON_LINE), noise, rng, lambda part: None
        )
    except (StageFailed, np.linalg.LinAlgError) as failure:
        return Tried(failure=str(failure))
    network = oriented(candidate.network, rng.standard_normal((COMPARED, oracle.dim)), noise.near)
    verification = examine(
        oracle, network, rng, noise=health.noise, points=VERIFICATION_POINTS, per_neuron=0, held_out=candidate.held_out,
        most_tolerance=FEW_DIGITS_TOLERANCE if few_digits else MOST_TOLERANCE,
    )  # fmt: skip
    return Tried(network, verification, "" if verification.ok else str(verification))


class _StopsOnLine(Wrapper):
    """Ends an attempt whose first line is not getting anywhere: noise larger than measured is taken for creases."""

    transparent = True

    def __init__(self, inner: Oracle, ledger: Ledger, most: int) -> None:
        super().__init__(inner)
        self.ledger, self.most, self.rows = ledger, most, 0

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, unless too much was asked on the line."""
        self.rows += len(rows) if self.ledger.stage == "line" else 0
        if self.rows > self.most:
            raise StageFailed("line", "creases without end", number=self.rows, limit=self.most)
        return self.inner.answer(rows)


def _stopping(oracle: Counting, most: int) -> Counting:
    return Counting(_StopsOnLine(oracle.inner, oracle.ledger, most), oracle.ledger, oracle.facts.domain)
