"""How far around an input the function is nearly linear."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reluctant.report.drawings.drawing import Drawing
from reluctant.report.figures import COLOURS, HALF, legend_above, log_axis, new_figure
from reluctant.report.words import percent

__all__ = ["draw_linearity"]

CHANGED = 0.5  # change of gradient that ends the neighbourhood in which one step can be trusted


def draw_linearity(linearity: Mapping[str, Any] | None) -> Drawing | None:
    """Relative change of gradient over the radius, in random directions and toward the boundary."""
    if linearity is None or not linearity["radii"]:
        return None
    figure = new_figure(HALF)
    axes = figure.add_subplot()
    for name, marker, colour in (("random", "o", COLOURS[0]), ("along", "s", COLOURS[1])):
        label = "random directions" if name == "random" else "toward the boundary"
        axes.plot(linearity["radii"], linearity[name], f"-{marker}", color=colour, markersize=4, label=label)
    if linearity.get("random networks"):
        axes.plot(linearity["radii"], linearity["random networks"], ":", color=COLOURS[7], label="random network")
    axes.axhline(CHANGED, color="gray", linewidth=0.9, linestyle="--", label="changed by half")
    axes.set_xscale("log")
    log_axis(axes.xaxis)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("distance, of the input's norm")
    axes.set_ylabel("change of gradient")
    legend_above(figure)
    radius = linearity.get("linear radius along")
    far = f"it has changed by half at {percent(radius)} of the norm" if radius else "it never changes by half here"
    return Drawing.of(figure, f"Relative change of gradient against the distance; toward the boundary {far}.")
