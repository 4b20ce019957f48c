"""The leak curve: digits given against digits that a copy gets right, and the queries it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluctant.report.drawings.drawing import Drawing
from reluctant.report.figures import COLOURS, HALF, log_axis, new_figure

__all__ = ["Point", "draw_leak", "leak_points"]

SHAPE = (HALF[0], 4.4)
MOST_DIGITS = 17.0  # of a copy without any error


@dataclass(frozen=True)
class Point:
    """One setting: what is given, digits that honest users and the copy have right, queries for the copy."""

    given: str
    honest: float | None
    copied: float | None
    queries: int | None
    ok: bool


def leak_points(rows: Sequence[Mapping[str, Any]]) -> list[Point]:
    """The rows about decimals alone, from few to many; without any defense all digits are given."""
    decimals = sorted(
        ((int(row["defense"].removeprefix("decimals=")), row) for row in rows if _is_decimals(row["defense"])),
        key=lambda pair: pair[0],
    )
    named = [(str(number), row) for number, row in decimals]
    named += [("all", row) for row in rows if row["defense"] == "none"]
    return [_point(name, row) for name, row in named] if decimals else []


def draw_leak(rows: Sequence[Mapping[str, Any]] | None) -> Drawing | None:
    """Two curves under each other over the decimals given."""
    points = leak_points(rows or ())
    if not points:
        return None
    figure = new_figure(SHAPE)
    digits, queries = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _draw_digits(digits, points)
    _draw_queries(queries, points)
    queries.set_xticks(range(len(points)), [point.given for point in points])
    queries.set_xlabel("decimals given in an answer")
    words = "; ".join(f"{p.given}: {_digits(p.copied)}" for p in points)
    return Drawing.of(figure, f"Leak curve. Digits that the copy gets right, by decimals given: {words}.")


def _draw_digits(axes: Any, points: list[Point]) -> None:
    at = np.arange(len(points))
    honest = np.array([np.nan if p.honest is None else p.honest for p in points])
    copied = np.array([0.0 if p.copied is None else p.copied for p in points])
    ok = np.array([p.ok for p in points])
    axes.plot(at, honest, "--", color=COLOURS[7], linewidth=1.2, label="what honest users get")
    axes.plot(at, copied, "-", color=COLOURS[6], linewidth=1.5)
    axes.plot(at[ok], copied[ok], "o", color=COLOURS[6], markersize=6, label="copy, verified")
    axes.plot(at[~ok], copied[~ok], "x", color=COLOURS[6], markersize=7, label="no verified copy")
    axes.set_ylim(bottom=min(-0.5, *copied - 0.5))
    axes.set_ylabel("digits right")
    axes.legend(frameon=False, fontsize=9, loc="upper left")


def _draw_queries(axes: Any, points: list[Point]) -> None:
    known = [(k, p.queries, p.ok) for k, p in enumerate(points) if p.queries]
    for k, queries, ok in known:
        axes.plot(k, queries, "o" if ok else "x", color=COLOURS[0], markersize=6)
    axes.plot([k for k, _, _ in known], [queries for _, queries, _ in known], "-", color=COLOURS[0], linewidth=1.5)
    axes.set_yscale("log")
    log_axis(axes.yaxis)
    axes.set_ylabel("queries")


def _point(given: str, row: Mapping[str, Any]) -> Point:
    rebuilt = row["rebuilt"] or {}
    honest = (row["honest"] or {}).get("error rms")
    return Point(given, _right(honest), _right(rebuilt.get("error")), rebuilt.get("queries"), bool(rebuilt.get("ok")))


def _right(error: float | None) -> float | None:
    """Digits that are right at this relative error."""
    if error is None:
        return None
    return float(np.clip(-np.log10(error), 0.0, MOST_DIGITS)) if error > 0 else None


def _digits(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f}"


def _is_decimals(defense: str) -> bool:
    return defense.startswith("decimals=") and defense.removeprefix("decimals=").isdigit()
