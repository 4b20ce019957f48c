"""What the driver asks of a method, and what it gets: a network, and answers kept back for its verification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from reluctant.extraction.certificate import Certificate
from reluctant.extraction.so_far import Keep
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting
from reluctant.verification import HeldOut
from reluctant.verification.precision import Precision

__all__ = ["Candidate", "Method"]


@dataclass(frozen=True)
class Candidate:
    """A network that has still to be verified."""

    network: ReLUNetwork
    held_out: HeldOut | None = None
    certificate: Certificate | None = None
    limits: str = ""  # what the method cannot know, in words
    precision: Precision | None = None  # the noise to verify at, where the target has few digits


class Method(Protocol):
    """Mathematics of one attempt; the driver owns attempts, limits and verification."""

    def run(self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Keep) -> Candidate:
        """A candidate network, or StageFailed; `keep` is told what is known on the way."""
