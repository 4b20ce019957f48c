"""Verification: a target against a network by questions; network against network is in `alignment`."""

from reluctant.verification.agreement import GroupError, HeldOutRows, Verification, verify

__all__ = ["GroupError", "HeldOutRows", "Verification", "verify"]
