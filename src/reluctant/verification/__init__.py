"""Verification: a target against a network by questions; network against network is in `alignment`."""

from reluctant.verification.check import verify
from reluctant.verification.findings import GroupError, HeldOut, Verification

__all__ = ["GroupError", "HeldOut", "Verification", "verify"]
