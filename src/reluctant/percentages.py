"""Shares in words: nearly all is not all."""

from __future__ import annotations

__all__ = ["percentage"]

NEARLY_ALL = 0.999  # the largest share that is written as less than all


def percentage(part: float) -> str:
    """A share of one with a decimal; "100.0%" is all of it."""
    return f"{min(part, NEARLY_ALL) if part < 1 else part:.1%}"
