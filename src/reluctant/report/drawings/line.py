"""The function along a line: a curve for each output, and where neurons turn on or off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.report.drawings.drawing import Drawing
from reluctant.report.figures import COLOURS, CREASE, HALF, new_figure

__all__ = ["draw_line"]

MARK = 0.04  # height of the mark of a crease, of the picture


def draw_line(line: Mapping[str, Any] | None, labels: bool = False) -> Drawing | None:
    """Answers (n, m) at positions (n,), creases as marks below and faint lines; labels jump from one to the next."""
    if line is None:
        return None
    answers = np.array(line["answers"], dtype=float)
    answers = answers.reshape(len(line["positions"]), -1)
    if labels and answers.shape[1] > 1:
        answers = answers.argmax(axis=1)[:, None].astype(float)  # one 1 among 0s: the class is where it stands
    creases = line.get("creases") or []
    figure = new_figure(HALF)
    axes = figure.add_subplot()
    across = axes.get_xaxis_transform()
    axes.plot(*_uprights(creases, 1.0), color=CREASE, linewidth=0.6, alpha=0.35, transform=across)
    style = "steps-mid" if labels else "default"
    for output, colour in zip(answers.T, COLOURS, strict=False):
        axes.plot(line["positions"], output, color=colour, linewidth=1.3, drawstyle=style)
    axes.plot(*_uprights(creases, MARK), color=CREASE, linewidth=1.4, transform=across)
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
