"""Figures as inline SVG, with a text alternative.

Text stays text and takes the colour of the page; the same data gives the same file.
"""

from __future__ import annotations

import hashlib
import io
import re
from dataclasses import dataclass
from math import log10
from typing import Any

from reluctant._optional import require
from reluctant.report.numbers import superscript

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
    return DRAWN.sub(lambda found: LONG.sub(r"\1", found[0]), _own_names(svg))


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


def _own_names(svg: str) -> str:
    """Names that are used become the picture's own; the others go."""
    used = set(USED.findall(svg))
    own = hashlib.sha256(svg.encode()).hexdigest()[:8]
    svg = NAMED.sub(lambda found: f' id="{own}-{found[1]}"' if found[1] in used else "", svg)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{own}-", svg)


@dataclass(frozen=True)
class Drawing:
    """SVG that a template prints as it is, and what it shows in a sentence."""

    picture: Any
    alt: str

    @classmethod
    def of(cls, figure: Any, alt: str) -> Drawing:
        """A matplotlib figure with its words."""
        return cls(figure_markup(figure), alt)
