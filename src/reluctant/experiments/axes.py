"""Colours that are seen on white and on black, and numbers on axes as plain text: a page may show them in any font."""

from __future__ import annotations

from contextlib import AbstractContextManager
from math import log10
from typing import Any

from reluctant.optional import require
from reluctant.report.figures import COLOURS, log_axis
from reluctant.report.words import size

__all__ = ["page_colours", "plain_axes"]

FEW_DECADES = 2.0  # on an axis: then numbers between the powers of ten are written too
BETWEEN = (1.0, 2.0, 5.0)


def page_colours() -> AbstractContextManager[None]:
    """Series are drawn in the colours of the report, C0, C1 and so on too."""
    matplotlib = require("matplotlib", extra="report", purpose="A picture")
    context: AbstractContextManager[None] = matplotlib.rc_context({"axes.prop_cycle": matplotlib.cycler(color=COLOURS)})
    return context


def plain_axes(figure: Any) -> None:
    """Label every logarithmic axis of a figure without formulas; ticks that were chosen stay."""
    from matplotlib.ticker import FixedLocator

    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if axis.get_scale() == "log" and not isinstance(axis.get_major_locator(), FixedLocator):
            low, high = axis.get_view_interval()
            _label(axis, abs(log10(high / low)))


def _label(axis: Any, decades: float) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if decades >= FEW_DECADES:
        log_axis(axis)
        return
    axis.set_major_locator(LogLocator(subs=BETWEEN))
    axis.set_major_formatter(FuncFormatter(lambda value, _: size(value, 1)))
    axis.set_minor_formatter(NullFormatter())
