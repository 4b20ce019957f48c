"""How far the recovered network is from the target, over scales of the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reluctant.report.drawings.drawing import Drawing
from reluctant.report.figures import COLOURS, HALF, legend_above, log_axis, new_figure
from reluctant.report.words import size

__all__ = ["draw_errors"]


def draw_errors(errors: Sequence[Any] | None) -> Drawing | None:
    """A histogram for each scale: counts between edges."""
    if not errors:
        return None
    figure = new_figure(HALF)
    axes = figure.add_subplot()
    for group, colour in zip(errors, COLOURS, strict=False):
        axes.stairs(group["counts"], group["edges"], color=colour, linewidth=1.5, label=f"size {group['scale']:g}")
        axes.stairs(group["counts"], group["edges"], color=colour, fill=True, alpha=0.14)
    axes.set_xscale("log")
    axes.set_xlim(*_filled(errors))
    log_axis(axes.xaxis)
    axes.set_xlabel("error of the copy, in deviations of the output at that size")
    axes.set_ylabel("inputs")
    legend_above(figure)
    largest = max((group["largest"] for group in errors if group["largest"] is not None), default=None)
    return Drawing.of(figure, f"Histogram of errors at {len(errors)} scales; the largest is {size(largest)}.")


def _filled(errors: Sequence[Any]) -> tuple[float, float]:
    """The edges between which there is anything, and one bin of room."""
    low, high = [], []
    for group in errors:
        filled = [k for k, number in enumerate(group["counts"]) if number]
        if filled:
            low.append(group["edges"][max(filled[0] - 1, 0)])
            high.append(group["edges"][min(filled[-1] + 2, len(group["edges"]) - 1)])
    return (min(low), max(high)) if low else (errors[0]["edges"][0], errors[0]["edges"][-1])
