"""The function along a line: a curve for each output, and where neurons turn on or off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reluctant.report.drawings.drawing import Drawing
from reluctant.report.figures import COLOURS, CREASE, HALF, new_figure

__all__ = ["draw_line"]


def draw_line(line: Mapping[str, Any] | None) -> Drawing | None:
    """Answers (n, m) at positions (n,), creases as marks below and faint lines."""
    if line is None:
        return None
    answers = np.array(line["answers"], dtype=float)
    answers = answers.reshape(len(line["positions"]), -1)
    creases = line.get("creases") or []
    figure = new_figure(HALF)
    axes = figure.add_subplot()
    for crease in creases:
        axes.axvline(crease, color=CREASE, linewidth=0.6, alpha=0.35)
    for output, colour in zip(answers.T, COLOURS, strict=False):
        axes.plot(line["positions"], output, color=colour, linewidth=1.3)
    axes.plot(creases, np.zeros(len(creases)), "|", color=CREASE, markersize=9, transform=axes.get_xaxis_transform())
    axes.margins(x=0)
    axes.set_xlabel("position along the line")
    axes.set_ylabel("answer")
    marks = f", with {len(creases)} creases of the recovered network marked" if creases else ""
    return Drawing.of(figure, f"The target's {answers.shape[1]} outputs along a line through input space{marks}.")
