"""Where queries went: a bar for each stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reluctant.report.drawings.drawing import Drawing
from reluctant.report.figures import COLOURS, HALF, new_figure, plain
from reluctant.report.words import count

__all__ = ["draw_stages"]

BAR, FRAME = 0.27, 0.5  # inches
MOST = 14  # stages shown by themselves


def draw_stages(by_stage: Mapping[str, Any]) -> Drawing | None:
    """Rows sent and replayed, in the order of the stages; small ones are put together."""
    rows = _longest({name: stage["sent"] + stage["replayed"] for name, stage in by_stage.items()})
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


def _longest(rows: dict[str, int]) -> dict[str, int]:
    rows = {name: value for name, value in rows.items() if value > 0}
    if len(rows) <= MOST:
        return rows
    kept = set(sorted(rows, key=rows.__getitem__, reverse=True)[: MOST - 1])
    others = sum(value for name, value in rows.items() if name not in kept)
    return {name: value for name, value in rows.items() if name in kept} | {"other stages": others}
