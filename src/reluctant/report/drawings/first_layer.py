"""What each neuron of the first layer looks at, where inputs are images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.report.drawings.drawing import Drawing
from reluctant.report.figures import HALF, new_figure

__all__ = ["WEIGHTS", "draw_first_layer"]

WEIGHTS = "coolwarm"  # grey where a weight is zero
ACROSS = 8  # images in a row, at most


def draw_first_layer(layer: Mapping[str, Any] | None) -> Drawing | None:
    """Images as one mosaic, each on a scale of its own."""
    if layer is None or not layer["images"]:
        return None
    images = np.array(layer["images"], dtype=float).reshape(-1, layer["height"], layer["width"])
    largest = np.abs(images).max(axis=(1, 2), keepdims=True)
    tiles = _mosaic(images / np.where(largest > 0, largest, 1.0))
    figure = new_figure((HALF[0], HALF[0] * tiles.shape[0] / tiles.shape[1]))
    axes = figure.add_subplot()
    axes.imshow(tiles, cmap=WEIGHTS, vmin=-1, vmax=1, interpolation="none")
    axes.set_axis_off()
    size = f"{layer['width']} by {layer['height']} points"
    return Drawing.of(figure, f"Weights of {len(images)} neurons of the first layer as images of {size}.")


def _mosaic(images: FloatArray) -> FloatArray:
    """Images beside and below each other with a gap between, NaN where there is nothing."""
    count, height, width = images.shape
    across = -(-count // -(-count // ACROSS))  # rows of the same length, as far as that goes
    gap = max(1, width // 8)
    padded = np.pad(images, ((0, -count % across), (0, gap), (0, gap)), constant_values=np.nan)
    padded[count:] = np.nan
    rows = padded.reshape(-1, across, height + gap, width + gap)
    return np.asarray(rows.swapaxes(1, 2).reshape(-1, across * (width + gap))[:-gap, :-gap])
