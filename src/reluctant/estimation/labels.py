"""The span from labels alone: every bit of every direction has to be asked for, and no copy comes of it."""

from __future__ import annotations

from reluctant.estimation.answers import Answers
from reluctant.estimation.model import Model
from reluctant.estimation.shapes import Widths

__all__ = ["LABELS"]


def _features(widths: Widths, answers: Answers) -> tuple[float, ...]:
    """Components of the normals outside the span, what it takes inside, and what every run takes.

    The cube is what runs show and no argument: with more directions normals are worse conditioned, and more bits of
    each of k·k components are asked for.
    """
    n, k = widths[0], min(widths[0], widths[1])
    return float(k * (n - k)), float(k) ** 3, 1.0


LABELS = Model(
    "span from labels alone",
    "the directions of its input that it looks at, and no copy",
    lambda widths, answers: {},
    ("outside the span", "inside the span", "boundary and verification"),
    _features,
    sizes=("inputs", "neurons in the first layer", "hidden layers", "outputs"),
)
