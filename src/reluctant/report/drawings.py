"""Drawings of the page: one function for each picture, from one part of the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reluctant.audit.facts import Linearity
from reluctant.audit.record import ErrorHistogram, FirstLayer, LinePicture, PlanePicture, StageRows
from reluctant.numerics import FloatArray
from reluctant.report.figures import COLOURS, CREASE, HALF, Drawing, legend_above, log_axis, new_figure, plain
from reluctant.report.numbers import count, percent, size


def draw_errors(errors: Sequence[ErrorHistogram]) -> Drawing | None:
    """A histogram for each scale: counts between edges."""
    if not errors:
        return None
    figure = new_figure(HALF)
    axes = figure.add_subplot()
    for group, colour in zip(errors, COLOURS, strict=False):
        axes.stairs(group.counts, group.edges, color=colour, linewidth=1.5, label=f"size {group.scale:g}")
        axes.stairs(group.counts, group.edges, color=colour, fill=True, alpha=0.14)
    axes.set_xscale("log")
    axes.set_xlim(*_filled_edges(errors))
    log_axis(axes.xaxis)
    axes.set_xlabel("error of the copy, in deviations of the output at that size")
    axes.set_ylabel("inputs")
    legend_above(figure)
    largest = max(group.largest for group in errors)
    return Drawing.of(figure, f"Histogram of errors at {len(errors)} scales; the largest is {size(largest)}.")


def _filled_edges(errors: Sequence[ErrorHistogram]) -> tuple[float, float]:
    """The edges between which there is anything, and one bin of room."""
    low, high = [], []
    for group in errors:
        filled = [k for k, number in enumerate(group.counts) if number]
        if filled:
            low.append(group.edges[max(filled[0] - 1, 0)])
            high.append(group.edges[min(filled[-1] + 2, len(group.edges) - 1)])
    return (min(low), max(high)) if low else (errors[0].edges[0], errors[0].edges[-1])


WEIGHTS = "coolwarm"  # grey where a weight is zero
ACROSS = 8  # images in a row, at most


def draw_first_layer(layer: FirstLayer | None) -> Drawing | None:
    """Images as one mosaic, each on a scale of its own."""
    if layer is None or not layer.images:
        return None
    images = np.array(layer.images, dtype=float).reshape(-1, layer.height, layer.width)
    largest = np.abs(images).max(axis=(1, 2), keepdims=True)
    tiles = _mosaic(images / np.where(largest > 0, largest, 1.0))
    figure = new_figure((HALF[0], HALF[0] * tiles.shape[0] / tiles.shape[1]))
    axes = figure.add_subplot()
    axes.imshow(tiles, cmap=WEIGHTS, vmin=-1, vmax=1, interpolation="none")
    axes.set_axis_off()
    size = f"{layer.width} by {layer.height} points"
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


FLIP_SHAPE = (HALF[0], 1.95)


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
    figure = new_figure(FLIP_SHAPE)
    parts = (
        (before, f"input: {names[0]}", {"cmap": "gray", "vmin": low, "vmax": high}),
        (change, f"change, up to {largest:.2g}", {"cmap": WEIGHTS, "vmin": -largest, "vmax": largest}),
        (after, f"flipped: {names[1]}", {"cmap": "gray", "vmin": low, "vmax": high}),
    )
    for axes, (image, title, colours) in zip(figure.subplots(1, 3), parts, strict=True):
        axes.imshow(image, interpolation="none", **colours)
        axes.set_title(plain(_short_title(title)), fontsize=9)
        axes.set_axis_off()
    return Drawing.of(figure, f"Three images: the input, read as {names[0]}; the change; the flipped, as {names[1]}.")


def _short_title(title: str, most: int = 22) -> str:
    return title if len(title) <= most else title[: most - 1] + "…"


CREASE_MARK = 0.04  # height of the mark of a crease, of the picture


def draw_line(line: LinePicture | None, labels: bool = False) -> Drawing | None:
    """Answers (n, m) at positions (n,), creases as marks below and faint lines; labels jump from one to the next."""
    if line is None:
        return None
    answers = np.array(line.answers, dtype=float)
    answers = answers.reshape(len(line.positions), -1)
    if labels and answers.shape[1] > 1:
        answers = answers.argmax(axis=1)[:, None].astype(float)  # one 1 among 0s: the class is where it stands
    creases = line.creases or ()
    figure = new_figure(HALF)
    axes = figure.add_subplot()
    across = axes.get_xaxis_transform()
    axes.plot(*_uprights(creases, 1.0), color=CREASE, linewidth=0.6, alpha=0.35, transform=across)
    style = "steps-mid" if labels else "default"
    for output, colour in zip(answers.T, COLOURS, strict=False):
        axes.plot(line.positions, output, color=colour, linewidth=1.3, drawstyle=style)
    axes.plot(*_uprights(creases, CREASE_MARK), color=CREASE, linewidth=1.4, transform=across)
    axes.margins(x=0)
    axes.set_xlabel("position along the line")
    axes.set_ylabel("label" if labels else "answer")
    if labels:
        axes.yaxis.get_major_locator().set_params(integer=True)
    what = "label" if labels else f"{answers.shape[1]} outputs"
    marks = f", with {len(creases)} creases of the copy marked" if creases else ""
    return Drawing.of(figure, f"The target's {what} along a line through input space{marks}.")


def _uprights(positions: Sequence[float], height: float) -> tuple[FloatArray, FloatArray]:
    """Upright lines as one broken line: a page with thousands of them stays small."""
    x = np.repeat(np.asarray(positions, dtype=float), 3)
    return x, np.tile([0.0, height, np.nan], len(positions))


CHANGED = 0.5  # change of gradient that ends the neighbourhood in which one step can be trusted


def draw_linearity(linearity: Linearity | None) -> Drawing | None:
    """Relative change of gradient over the radius, in random directions and toward the boundary."""
    if linearity is None or not linearity.radii:
        return None
    figure = new_figure(HALF)
    axes = figure.add_subplot()
    curves = (
        (linearity.random, "o", COLOURS[0], "random directions"),
        (linearity.along, "s", COLOURS[1], "toward the boundary"),
    )
    for curve, marker, colour, label in curves:
        heights = [np.nan if each is None else each for each in curve]
        axes.plot(linearity.radii, heights, f"-{marker}", color=colour, markersize=4, label=label)
    if linearity.random_networks:
        axes.plot(linearity.radii, linearity.random_networks, ":", color=COLOURS[7], label="random network")
    axes.axhline(CHANGED, color="gray", linewidth=0.9, linestyle="--", label="changed by half")
    axes.set_xscale("log")
    log_axis(axes.xaxis)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("distance, of the input's norm")
    axes.set_ylabel("change of gradient")
    legend_above(figure)
    radius = linearity.linear_radius_along
    far = f"it has changed by half at {percent(radius)} of the norm" if radius else "it never changes by half here"
    return Drawing.of(figure, f"Relative change of gradient against the distance; toward the boundary {far}.")


VALUE_COLOURS, LABEL_COLOURS = "viridis", "tab20"
PLANE_SHAPE = (HALF[0], 3.6)
FIRST_LAYER, DEEPER_LAYERS = "white", "#ff9f5a"  # colours of creases by their layer
FINER = 6  # how many steps are drawn between two values that were asked


def draw_plane(part: PlanePicture | None, labels: bool = False) -> Drawing | None:
    """Values or labels (n, n), rows from low to high, between two corners, and creases as polylines."""
    if part is None:
        return None
    values = np.array((part.classes if labels else None) or part.values, dtype=float)
    (left, bottom), (right, top) = part.low, part.high
    figure = new_figure(PLANE_SHAPE)
    axes = figure.add_subplot()
    shown, colours = (values, _label_colours(values)) if labels else (_finer(values), {"cmap": VALUE_COLOURS})
    extent = (left, right, bottom, top)
    seen = axes.imshow(shown, origin="lower", extent=extent, interpolation="none", aspect="equal", **colours)
    _draw_creases(axes, part)
    axes.set(xlim=(left, right), ylim=(bottom, top), xlabel="first direction", ylabel="second direction")
    name = "label" if labels else "largest answer" if part.classes else "answer"
    bar = figure.colorbar(seen, ax=axes, shrink=0.85, label=name)
    bar.outline.set_visible(False)
    if labels:
        bar.locator.set_params(integer=True)
    bar.solids.set_rasterized(True)  # one picture instead of a path for every shade
    creases = len(part.creases)
    marks = f", crossed by {creases} creases of the copy" if creases else ""
    return Drawing.of(figure, f"Heat map of the target's {name} on a plane through input space{marks}.")


def _draw_creases(axes: Any, part: PlanePicture) -> None:
    from matplotlib.collections import LineCollection

    lines = [np.array(each, dtype=float) for each in part.creases]
    colours = [FIRST_LAYER if layer == 1 else DEEPER_LAYERS for layer in part.layers]
    axes.add_collection(LineCollection(lines, colors=colours, linewidths=0.9, alpha=0.8))


def _label_colours(labels: FloatArray) -> dict[str, Any]:
    """A colour for each label, those between the smallest and the largest included."""
    from matplotlib.colors import ListedColormap

    low, high = labels.min() - 0.5, labels.max() + 0.5
    kinds = round(high - low)
    few = kinds <= len(COLOURS)
    return {"cmap": ListedColormap(COLOURS[:kinds]) if few else LABEL_COLOURS, "vmin": low, "vmax": high}


def _finer(values: FloatArray) -> FloatArray:
    """Values between those that were asked, straight from one to the next."""
    for _ in range(2):
        at = np.linspace(0, len(values) - 1, FINER * (len(values) - 1) + 1)
        values = np.array([np.interp(at, np.arange(len(values)), column) for column in values.T])
    return values


BAR, FRAME = 0.27, 0.5  # inches
MOST_STAGES = 14  # stages shown by themselves


def draw_stages(by_stage: Mapping[str, StageRows]) -> Drawing | None:
    """Rows sent and replayed, in the order of the stages; small ones are put together."""
    rows = _longest_stages({name: stage.sent + stage.replayed for name, stage in by_stage.items()})
    if not rows:
        return None
    figure = new_figure((HALF[0], BAR * len(rows) + FRAME))
    axes = figure.add_subplot()
    bars = axes.barh([plain(name) for name in rows], list(rows.values()), color=COLOURS[0], height=0.68)
    axes.bar_label(bars, labels=[count(value) for value in rows.values()], padding=4, fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.16)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    words = ", ".join(f"{name} {count(value)}" for name, value in rows.items())
    return Drawing.of(figure, f"Bar chart of queries by stage: {words}.")


def _longest_stages(rows: dict[str, int]) -> dict[str, int]:
    rows = {name: value for name, value in rows.items() if value > 0}
    if len(rows) <= MOST_STAGES:
        return rows
    kept = set(sorted(rows, key=rows.__getitem__, reverse=True)[: MOST_STAGES - 1])
    others = sum(value for name, value in rows.items() if name not in kept)
    return {name: value for name, value in rows.items() if name in kept} | {"other stages": others}
