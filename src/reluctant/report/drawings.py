"""Pictures of the page as inline SVG with a text alternative: one function for each, from one part of the record.

Text stays text and takes the colour of the page; the same data gives the same file.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log10
from typing import Any

import numpy as np

from reluctant.audit.facts import Linearity
from reluctant.audit.record import DefenseRow, ErrorHistogram, FirstLayerImages, LinePicture, PlanePicture, StageRows
from reluctant.defenses import defense_kind
from reluctant.errors import require
from reluctant.numerics import FloatArray
from reluctant.report.text import count, percent, size, superscript

SIZE = (7.2, 3.2)  # inches: as wide as the page
HALF = (4.7, 3.1)  # two beside each other, one on a phone, where its text is still read
SALT = "reluctant"  # of element names, so that they do not change from run to run
HANDLE, A_LINE = 5, 13.5  # characters: as long as the mark beside a name is, and in an inch of a legend
NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))

# Seen on white and on black alike; series, then creases.
COLOURS = ("#4a7fb5", "#c97a1c", "#4f9d69", "#b35c9e", "#8a6d3b", "#3f97b5", "#b05050", "#7d7d85", "#8d8d30", "#7365d6")
CREASE = "#c4501f"

NAMED = re.compile(r' id="([^"]*)"')
USED = re.compile(r'(?:url\(#|href="#)([^")]+)')
DRAWN = re.compile(r' (?:d|x|y|points)="[^"]*"')
LONG = re.compile(r"(\d\.\d\d)\d+")


def new_figure(size: tuple[float, float] = SIZE) -> Any:
    """An empty matplotlib figure that is drawn as SVG and needs no screen."""
    require("matplotlib", extra="report", purpose="A picture")
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasSVG(figure)
    return figure


def figure_svg(figure: Any) -> str:
    """The figure as an <svg> element without a background; several of them can stand in one page."""
    matplotlib = require("matplotlib", extra="report", purpose="A picture")
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": SALT}):
        figure.savefig(buffer, format="svg", transparent=True, metadata=NO_METADATA)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace("#000000", "currentColor")
    used = set(USED.findall(svg))
    own = hashlib.sha256(svg.encode()).hexdigest()[:8]
    svg = NAMED.sub(lambda found: f' id="{own}-{found[1]}"' if found[1] in used else "", svg)
    return DRAWN.sub(lambda found: LONG.sub(r"\1", found[0]), re.sub(r'(url\(#|href="#)', rf"\g<1>{own}-", svg))


def figure_markup(figure: Any) -> Any:
    """The figure as SVG that a template prints as it is."""
    return require("markupsafe", extra="report", purpose="A picture").Markup(figure_svg(figure))


def legend_above(figure: Any) -> None:
    """Names above the axes, where they cover nothing: in one line where that has room for them, else in two columns."""
    names = figure.axes[0].get_legend_handles_labels()[1]
    ncols = len(names) if sum(len(name) + HANDLE for name in names) <= A_LINE * figure.get_figwidth() else 2
    style = {"frameon": False, "fontsize": 9, "handlelength": 1.6, "columnspacing": 1.1}
    figure.legend(loc="outside upper left", ncols=ncols, **style)


def log_axis(axis: Any) -> None:
    """Powers of ten on an axis, in characters that any font has."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(numticks=7))
    axis.set_major_formatter(FuncFormatter(_power_of_ten))
    axis.set_minor_formatter(NullFormatter())


def plain(text: Any) -> str:
    """Somebody's words in a picture: never read as a formula."""
    return str(text).replace("$", r"\$")


def _power_of_ten(value: float, _: Any = None) -> str:
    exponent = round(log10(value)) if value > 0 else 0
    return {0: "1", 1: "10", 2: "100", 3: "1,000"}.get(exponent, f"10{superscript(exponent)}")


@dataclass(frozen=True)
class Drawing:
    """SVG that a template prints as it is, and what it shows in a sentence."""

    picture: Any
    alt: str

    @classmethod
    def of(cls, figure: Any, alt: str) -> Drawing:
        """A matplotlib figure with its words."""
        return cls(figure_markup(figure), alt)


# ---- the function, the copy and the flip


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


def draw_first_layer(layer: FirstLayerImages | None) -> Drawing | None:
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
LONGEST_TITLE = 22  # characters


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
        axes.set_title(plain(title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1] + "…"), fontsize=9)
        axes.set_axis_off()
    return Drawing.of(figure, f"Three images: the input, read as {names[0]}; the change; the flipped, as {names[1]}.")


CREASE_MARK = 0.04  # height of the mark of a crease, of the picture


def draw_line(line: LinePicture | None, labels: bool = False) -> Drawing | None:
    """Answers (n, m) at positions (n,), creases as marks below and faint lines; labels jump from one to the next."""
    if line is None:
        return None
    answers = np.array(line.answers, dtype=float)
    answers = answers.reshape(len(line.positions), -1)
    if labels and answers.shape[1] > 1:
        answers = answers.argmax(axis=1)[:, None].astype(float)  # one 1 among 0s: the class is its place
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
    shown, style = (values, _label_colours(values)) if labels else (_finer(values), {"cmap": VALUE_COLOURS})
    extent = (left, right, bottom, top)
    seen = axes.imshow(shown, origin="lower", extent=extent, interpolation="none", aspect="equal", **style)
    from matplotlib.collections import LineCollection

    lines = [np.array(each, dtype=float) for each in part.creases]
    colours = [FIRST_LAYER if layer == 1 else DEEPER_LAYERS for layer in part.layers]
    axes.add_collection(LineCollection(lines, colors=colours, linewidths=0.9, alpha=0.8))
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


def _label_colours(labels: FloatArray) -> dict[str, Any]:
    """A colour for each label, those between the smallest and the largest included."""
    from matplotlib.colors import ListedColormap

    low, high = labels.min() - 0.5, labels.max() + 0.5
    kinds = round(high - low)
    few = kinds <= len(COLOURS)
    return {"cmap": ListedColormap(COLOURS[:kinds]) if few else LABEL_COLOURS, "vmin": low, "vmax": high}


def _finer(values: FloatArray) -> FloatArray:
    """Linear interpolation between the values that were asked."""
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


# ---- the leak curve: correct digits of honest users, rebuilt copies and trained copies, by defense

MOST_DIGITS = 17.0  # of a copy without any error

# Defenses that only take digits away, and their names below the curve.
NAMES = {
    "none": "all\ndigits",
    "decimals": "{}\ndecimals",
    "digits": "{}\ndigits",
    "float32": "float32",
    "float16": "float16",
    "gaussian": "noise\n{}",
    "laplace": "Laplace\n{}",
}


@dataclass(frozen=True)
class Point:
    """One setting: its name, digits that honest users and the copy have right, queries for the copy."""

    given: str
    honest: float
    copied: float | None
    queries: int | None
    ok: bool
    open: bool = False  # not decided: there is nothing to draw


def leak_points(rows: Sequence[DefenseRow]) -> list[Point]:
    """The rows about digits alone, from few to many; nothing where it is decided for one of them only."""
    tried = [row for row in rows if row.rebuilt is not None]
    given = [row for row in tried if defense_kind(row.defense) in NAMES and row.digits is not None]
    points = [_point(row) for row in sorted(given, key=_amount)]
    return points if sum(not point.open for point in points) > 1 else []


def draw_leak(rows: Sequence[DefenseRow]) -> Drawing | None:
    """Digits right, over what answers give from few digits to many."""
    points = leak_points(rows)
    if not points:
        return None
    figure = new_figure(HALF)
    axes = figure.add_subplot()
    at, ok = np.arange(len(points)), np.array([p.ok for p in points])
    honest = np.array([p.honest for p in points])
    copied = np.array([np.nan if p.open else p.copied or 0.0 for p in points])
    axes.plot(at, honest, "--", color=COLOURS[7], linewidth=1.2, label="honest users")
    axes.plot(at, np.where(ok, copied, np.nan), "-", color=COLOURS[6], linewidth=1.5)
    _mark(axes, at, copied, ok, COLOURS[6])
    axes.set_ylim(bottom=-0.6)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel("digits right")
    legend_above(figure)
    _name_axis(axes, points)
    words = "; ".join(f"{_flat(p.given)}: {_digits(p)}" for p in points)
    return Drawing.of(figure, f"Leak curve. Digits that the copy gets right, by what answers give: {words}.")


def draw_leak_queries(rows: Sequence[DefenseRow]) -> Drawing | None:
    """Queries for the copy, over the same."""
    points = leak_points(rows)
    known = [p for p in points if p.queries and not p.open]
    if not known:
        return None
    figure = new_figure(HALF)
    axes = figure.add_subplot()
    at, ok = np.arange(len(points)), np.array([p.ok for p in points])
    queries = np.array([float(p.queries or 0) if p in known else np.nan for p in points])
    axes.plot(at, np.where(ok, queries, np.nan), "-", color=COLOURS[0], linewidth=1.5)
    _mark(axes, at, queries, ok, COLOURS[0])
    axes.set_yscale("log")
    axes.set_ylim(10 ** np.floor(np.log10(np.nanmin(queries))), 10 ** np.ceil(np.log10(np.nanmax(queries) + 1)))
    log_axis(axes.yaxis)
    axes.set_ylabel("queries")
    legend_above(figure)
    _name_axis(axes, points)
    words = "; ".join(f"{_flat(p.given)}: {count(p.queries)}" for p in known)
    return Drawing.of(figure, f"Queries spent on the copy, by what answers give: {words}.")


def _mark(axes: Any, at: Any, values: Any, ok: Any, colour: str) -> None:
    """Verified copies, which a line joins; where there is none a cross by itself."""
    axes.plot(at[ok], values[ok], "o", color=colour, markersize=6, label="copy, verified")
    axes.plot(at[~ok], values[~ok], "x", color=colour, markersize=7, markeredgewidth=2, label="no verified copy")


def _name_axis(axes: Any, points: list[Point]) -> None:
    axes.set_xticks(range(len(points)), [point.given for point in points], fontsize=9)
    axes.set_xlim(-0.4, len(points) - 0.6)


def _point(row: DefenseRow) -> Point:
    rebuilt = row.rebuilt
    assert rebuilt is not None
    return Point(
        _name(row.defense), row.digits or 0.0, _right(rebuilt.error), rebuilt.queries, rebuilt.ok, row.is_open
    )  # fmt: skip


def _amount(row: DefenseRow) -> tuple[bool, float, float]:
    """How much answers give: most without a defense; where users lose the same, more decimals are more."""
    kind, _, value = row.defense.partition(",")[0].partition("=")
    return kind == "none", row.digits or 0.0, float(value) if kind in ("decimals", "digits") else np.inf


def _name(defense: str) -> str:
    kind, _, value = defense.partition("=")
    return NAMES[kind].format(value.partition(",")[0])


def _right(error: float | None) -> float | None:
    """Digits that are right at this relative error."""
    if error is None:
        return None
    return float(np.clip(-np.log10(error), 0.0, MOST_DIGITS)) if error > 0 else MOST_DIGITS


def _flat(name: str) -> str:
    return name.replace("\n", " ")


def _digits(point: Point) -> str:
    if point.open:
        return "not decided"
    return "none" if point.copied is None else f"{point.copied:.1f}"
