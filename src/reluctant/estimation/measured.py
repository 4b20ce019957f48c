"""The measured points that the cost model is fitted to: part of the package, made from the kept benchmark results.

`scripts/measured_points.py` writes measured.json from benchmarks/results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from reluctant.estimation.answers import Answers
from reluctant.estimation.shapes import Widths, answers_per_parameter, parameters, shape_name

__all__ = ["Measured", "Point", "measured"]


@dataclass(frozen=True)
class Point:
    """What one shape took: medians and largest over its networks.

    Arguments:
        name: as the benchmark calls it.
        widths: of the networks.
        answers: what they were asked for.
        networks: how many there were.
        ok: how many were recovered and verified.
        queries: rows, usually.
        most_queries: rows, of the one that took the most.
        out: error over the output's deviation, usually; sine of the angle for spans.
        most_out: the largest.
        source: the kept results it comes from.
        memory: most GiB of the whole process, where that was measured.
        why: how it ended, where none was recovered.
    """

    name: str
    widths: Widths
    answers: Answers
    networks: int
    ok: int
    queries: float
    most_queries: float
    out: float | None
    most_out: float | None
    source: str
    memory: float | None = None
    why: str = ""

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        return parameters(self.widths)

    @property
    def per_parameter(self) -> float:
        """Answers for each parameter."""
        return answers_per_parameter(self.queries, self.widths, self.answers.in_a_row(self.widths[-1]))

    def same_as(self, other: Point) -> bool:
        """True for the same shape, asked in the same way."""
        return (self.widths, self.answers) == (other.widths, other.answers)

    @property
    def shape(self) -> str:
        """Widths as they are written."""
        return shape_name(self.widths)


@dataclass(frozen=True)
class Measured:
    """All points, those that ended without a network, and how fast targets compute: operations a second."""

    points: tuple[Point, ...]
    failed: tuple[Point, ...]
    speeds: Mapping[str, float]


@cache
def measured() -> Measured:
    """What was measured."""
    data = json.loads(resources.files("reluctant.estimation").joinpath("measured.json").read_text("utf-8"))
    points = tuple(map(_point, data["points"]))
    return Measured(
        tuple(point for point in points if point.ok), tuple(point for point in points if not point.ok), data["speeds"]
    )


def _point(data: Mapping[str, Any]) -> Point:
    return Point(**{**data, "widths": tuple(data["widths"]), "answers": Answers.parse(data["answers"])})
