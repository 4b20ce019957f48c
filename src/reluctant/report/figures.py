"""Figures as inline SVG: text stays text and takes the colour of the page, the same data gives the same file."""

from __future__ import annotations

import io
from typing import Any

from reluctant.optional import require

__all__ = ["figure_svg", "new_figure"]

SIZE = (7.2, 3.2)  # inches
SALT = "reluctant"  # of element names, so that they do not change from run to run


def new_figure(size: tuple[float, float] = SIZE) -> Any:
    """An empty matplotlib figure that is drawn as SVG and needs no screen."""
    require("matplotlib", extra="report", purpose="A picture")
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasSVG(figure)
    return figure


def figure_svg(figure: Any) -> str:
    """The figure as an <svg> element without a background."""
    matplotlib = require("matplotlib", extra="report", purpose="A picture")
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": SALT}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    return svg[svg.index("<svg") :].replace("#000000", "currentColor")
