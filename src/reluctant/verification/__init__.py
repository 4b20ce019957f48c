"""Verification: a target against a network by questions, a network against a network by weights."""

from reluctant.verification.alignment import Alignment, compare
from reluctant.verification.check import GroupError, Verification, verify

__all__ = ["Alignment", "GroupError", "Verification", "compare", "verify"]
