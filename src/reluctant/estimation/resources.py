"""What an attack needs besides rows: the target's arithmetic, our memory, the transcript on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import nnls

from reluctant.estimation.depth_two import DEPTH_TWO
from reluctant.estimation.measured import Point
from reluctant.estimation.model import Model
from reluctant.estimation.shapes import Widths, parameters
from reluctant.numerics import FLOAT_BYTES
from reluctant.oracles.transcript import KEY_BYTES

__all__ = ["GIVEN_SPEED", "arithmetic_seconds", "memory", "transcript_bytes"]

OPERATIONS_A_WEIGHT = 2  # a product and a sum
MILLION = 1e6
FARTHEST = 4.0  # times the largest measured run: beyond, memory is not known
GIVEN_SPEED = "the speed given"


def arithmetic_seconds(widths: Widths, rows: float, speeds: Mapping[str, float]) -> dict[str, float]:
    """Time that the target's own arithmetic takes, at each speed in operations a second."""
    operations = OPERATIONS_A_WEIGHT * parameters(widths) * rows
    return {where: operations / speed for where, speed in speeds.items()}


def transcript_bytes(rows: float, answers: int) -> float:
    """Size on disk of rows with so many answers each: the key of the row, and its answers."""
    return rows * (KEY_BYTES + FLOAT_BYTES * answers)


def memory(model: Model, points: Sequence[Point], widths: Widths) -> float | None:
    """GiB of the whole process on a host, None where that was not measured, nor anything near.

    Base points are chosen among some for each neuron, with a number for each neuron; gradients have one for each input.
    """
    told = [point for point in points if point.memory is not None]
    if model is not DEPTH_TWO or not told:
        return None
    sizes = nnls(np.array([_features(point.widths) for point in told]), np.array([point.memory for point in told]))[0]
    return float(np.dot(sizes, _features(widths))) if _is_near(widths, told) else None


def _is_near(widths: Widths, points: Sequence[Point]) -> bool:
    """True if nothing that memory could grow with, outputs included, is far beyond the measured runs."""
    largest = np.max([_grows(point.widths) for point in points], axis=0)
    return bool(np.all(np.array(_grows(widths)) <= FARTHEST * largest))


def _grows(widths: Widths) -> tuple[float, ...]:
    return (*_features(widths), float(widths[-1]))


def _features(widths: Widths) -> tuple[float, float, float]:
    d, h, m = widths
    return 1.0, h * h / MILLION, (h + m) * d / MILLION
