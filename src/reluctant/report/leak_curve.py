"""The leak curve: correct digits of honest users and of rebuilt copies, by defense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluctant.audit.record import DefenseRow
from reluctant.report.figures import COLOURS, HALF, Drawing, legend_above, log_axis, new_figure
from reluctant.report.numbers import count
from reluctant.report.sweep_text import is_open

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
    given = [row for row in tried if _kind(row.defense) in NAMES and row.digits is not None]
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
        _name(row.defense), row.digits or 0.0, _right(rebuilt.error), rebuilt.queries, rebuilt.ok, is_open(row)
    )  # fmt: skip


def _amount(row: DefenseRow) -> tuple[bool, float, float]:
    """How much answers give: most without a defense; where users lose the same, more decimals are more."""
    kind, _, value = row.defense.partition(",")[0].partition("=")
    return kind == "none", row.digits or 0.0, float(value) if kind in ("decimals", "digits") else np.inf


def _kind(defense: str) -> str:
    return defense.partition("=")[0]


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
