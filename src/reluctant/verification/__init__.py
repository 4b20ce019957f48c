"""Verification: a network compared with a target by queries, or with another network by weights."""

from reluctant.verification.agreement import GroupError, HeldOutRows, Verification, verify

__all__ = ["GroupError", "HeldOutRows", "Verification", "verify"]
