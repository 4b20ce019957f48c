"""A plane through input space: the target's values as a heat map, the recovered creases over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.report.drawings.drawing import Drawing
from reluctant.report.figures import HALF, new_figure

__all__ = ["draw_plane"]

VALUES = "viridis"
SHAPE = (HALF[0], 3.6)
FIRST, DEEPER = "white", "#ff9f5a"  # colours of creases by their layer
FINER = 6  # how many steps are drawn between two values that were asked


def draw_plane(part: Mapping[str, Any] | None) -> Drawing | None:
    """Values (n, n), rows from low to high, between two corners, and creases as polylines."""
    if part is None:
        return None
    from matplotlib.collections import LineCollection

    values = np.array(part["values"], dtype=float)
    (left, bottom), (right, top) = part["low"], part["high"]
    figure = new_figure(SHAPE)
    axes = figure.add_subplot()
    extent = (left, right, bottom, top)
    seen = axes.imshow(_finer(values), origin="lower", extent=extent, cmap=VALUES, interpolation="none", aspect="equal")
    creases = [np.array(each, dtype=float) for each in part["creases"]]
    colours = [FIRST if layer == 1 else DEEPER for layer in part.get("layers") or [1] * len(creases)]
    axes.add_collection(LineCollection(creases, colors=colours, linewidths=0.9, alpha=0.8))
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    bar = figure.colorbar(seen, ax=axes, shrink=0.85, label="largest answer" if part.get("classes") else "answer")
    bar.outline.set_visible(False)
    bar.solids.set_rasterized(True)  # one picture instead of a path for every shade
    axes.set_xlabel("first direction")
    axes.set_ylabel("second direction")
    marks = f", crossed by {len(creases)} creases of the recovered network" if creases else ""
    return Drawing.of(figure, f"Heat map of the target's answer on a plane through input space{marks}.")


def _finer(values: FloatArray) -> FloatArray:
    """Values between those that were asked, straight from one to the next."""
    for _ in range(2):
        at = np.linspace(0, len(values) - 1, FINER * (len(values) - 1) + 1)
        values = np.array([np.interp(at, np.arange(len(values)), column) for column in values.T])
    return values
