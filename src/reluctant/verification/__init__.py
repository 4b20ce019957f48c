"""Verification: a target against a network by questions; network against network is in `alignment`."""

from reluctant.verification.check import GroupError, HeldOut, Verification, verify

__all__ = ["GroupError", "HeldOut", "Verification", "verify"]
