"""How far the recovered network is from the target, over scales of the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reluctant.report.drawings.drawing import Drawing
from reluctant.report.figures import COLOURS, HALF, log_axis, new_figure
from reluctant.report.words import size

__all__ = ["draw_errors"]


def draw_errors(errors: Sequence[Any] | None) -> Drawing | None:
    """A histogram for each scale: counts between edges."""
    if not errors:
        return None
    figure = new_figure(HALF)
    axes = figure.add_subplot()
    for group, colour in zip(errors, COLOURS, strict=False):
        name = f"inputs of size {group['scale']:g}" if isinstance(group["scale"], int | float) else str(group["scale"])
        axes.stairs(group["counts"], group["edges"], color=colour, linewidth=1.5, label=name)
        axes.stairs(group["counts"], group["edges"], color=colour, fill=True, alpha=0.14)
    axes.set_xscale("log")
    log_axis(axes.xaxis)
    axes.set_xlabel("error of the copy, in deviations of the output")
    axes.set_ylabel("inputs")
    axes.legend(frameon=False, fontsize=9)
    largest = max((group["largest"] for group in errors if group["largest"] is not None), default=None)
    return Drawing.of(figure, f"Histogram of errors at {len(errors)} scales; the largest is {size(largest)}.")
