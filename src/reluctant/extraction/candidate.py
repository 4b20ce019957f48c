"""What a method hands to the driver: a network, and answers it kept back for its verification."""

from __future__ import annotations

from dataclasses import dataclass

from reluctant.extraction.certificate import Certificate
from reluctant.networks import ReLUNetwork
from reluctant.verification import HeldOut
from reluctant.verification.precision import Precision

__all__ = ["Candidate"]


@dataclass(frozen=True)
class Candidate:
    """A network that has still to be verified."""

    network: ReLUNetwork
    held_out: HeldOut | None = None
    certificate: Certificate | None = None
    limits: str = ""  # what the method cannot know, in words
    precision: Precision | None = None  # the noise to verify at, where the target has few digits
