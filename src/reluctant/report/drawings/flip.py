"""The one-step flip as images: the input, what was changed, the flipped input."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluctant.report.drawings.drawing import Drawing
from reluctant.report.drawings.first_layer import WEIGHTS
from reluctant.report.figures import HALF, new_figure, plain

__all__ = ["draw_flip"]

SHAPE = (HALF[0], 1.95)


def draw_flip(
    start: Any, flipped: Any, shape: tuple[int, int] | None, labels: tuple[str, str] | None = None
) -> Drawing | None:
    """Three images of a shape (height, width), or None where inputs are no images."""
    if start is None or flipped is None or shape is None or len(start) != shape[0] * shape[1]:
        return None
    before, after = (np.array(each, dtype=float).reshape(shape) for each in (start, flipped))
    change = after - before
    low, high = min(before.min(), after.min()), max(before.max(), after.max())
    largest = float(np.abs(change).max()) or 1.0
    names = labels or ("before", "after")
    figure = new_figure(SHAPE)
    parts = (
        (before, f"input: {names[0]}", {"cmap": "gray", "vmin": low, "vmax": high}),
        (change, f"change, up to {largest:.2g}", {"cmap": WEIGHTS, "vmin": -largest, "vmax": largest}),
        (after, f"flipped: {names[1]}", {"cmap": "gray", "vmin": low, "vmax": high}),
    )
    for axes, (image, title, colours) in zip(figure.subplots(1, 3), parts, strict=True):
        axes.imshow(image, interpolation="none", **colours)
        axes.set_title(plain(_short(title)), fontsize=9)
        axes.set_axis_off()
    return Drawing.of(figure, f"Three images: the input, read as {names[0]}; the change; the flipped, as {names[1]}.")


def _short(title: str, most: int = 22) -> str:
    return title if len(title) <= most else title[: most - 1] + "…"
