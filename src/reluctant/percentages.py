"""Shares as percentages in text; a share below one is never written as 100%."""

from __future__ import annotations

MOST_DECIMALS = 6
NEARLY_ALL = 0.999  # the largest share that is written as less than all


def percentage(part: float) -> str:
    """A share of one with a decimal; "100.0%" is all of it."""
    return f"{min(part, NEARLY_ALL) if part < 1 else part:.1%}"


def told_apart(part: float, other: float) -> tuple[str, str]:
    """Two shares in as few decimals as tell them apart: 1.02% and 1%."""
    for decimals in range(1, MOST_DECIMALS):
        said = _short(part, decimals), _short(other, decimals)
        if said[0] != said[1]:
            return said
    return _short(part, MOST_DECIMALS), _short(other, MOST_DECIMALS)


def _short(part: float, decimals: int) -> str:
    return f"{100 * part:.{decimals}f}".rstrip("0").rstrip(".") + "%"
