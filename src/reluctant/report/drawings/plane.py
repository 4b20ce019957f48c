"""A plane through input space: the target's values as a heat map, the recovered creases over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reluctant.report.drawings.drawing import Drawing
from reluctant.report.figures import HALF, new_figure

__all__ = ["draw_plane"]

VALUES, CLASSES = "viridis", "tab10"
SHAPE = (HALF[0], 3.9)


def draw_plane(part: Mapping[str, Any] | None) -> Drawing | None:
    """Values (n, n), rows from low to high, between two corners, and creases as polylines."""
    if part is None:
        return None
    from matplotlib.collections import LineCollection

    values = np.array(part["values"], dtype=float)
    (left, bottom), (right, top) = part["low"], part["high"]
    figure = new_figure(SHAPE)
    axes = figure.add_subplot()
    seen = axes.imshow(
        values, origin="lower", extent=(left, right, bottom, top), cmap=VALUES, interpolation="none", aspect="equal"
    )
    creases = [np.array(each, dtype=float) for each in part["creases"]]
    axes.add_collection(LineCollection(creases, colors="white", linewidths=0.9, alpha=0.8))
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    bar = figure.colorbar(seen, ax=axes, shrink=0.85, label="the target's answer")
    bar.outline.set_visible(False)
    bar.solids.set_rasterized(True)  # one picture instead of a path for every shade
    axes.set_xlabel("first direction")
    axes.set_ylabel("second direction")
    marks = f", crossed by {len(creases)} creases of the recovered network" if creases else ""
    return Drawing.of(figure, f"Heat map of the target's answer on a plane through input space{marks}.")
