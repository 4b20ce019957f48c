"""One hidden layer: nearly every row follows from the settings of `DepthTwo`.

Only the search of the line depends on where creases lie: about five rows a crease, and more where creases crowd, for
the share of neurons with a close neighbour grows with their number.
"""

from __future__ import annotations

from reluctant.estimation.answers import Answers
from reluctant.estimation.model import Model
from reluctant.estimation.shapes import Widths
from reluctant.extraction.attempts import HEALTH_LINES
from reluctant.extraction.depth_two.assemble import refit_rows
from reluctant.extraction.depth_two.base_points import points_needed
from reluctant.extraction.depth_two.method import FEW_PARAMETERS, POLISHED_SHARE, directions_worth
from reluctant.extraction.depth_two.probe import POINTS as PROBED
from reluctant.extraction.depth_two.scaffold import stretch_of_regions
from reluctant.extraction.examining import FAR_POINTS, FEW_NEURONS, points_worth
from reluctant.health.check import ROWS_PER_LINE
from reluctant.verification.comparing import SCALES

__all__ = ["DEPTH_TWO", "first_look", "fixed_stages"]

ROWS_OF_OUTPUTS = 2  # a neuron, where there are several outputs
A_CREASE = 5  # rows of the line, about: what `neurons_on_a_line` says of its cost
HEALTH = float(ROWS_PER_LINE * HEALTH_LINES)


def fixed_stages(widths: Widths, answers: Answers) -> dict[str, float]:
    """Rows of every stage but the line."""
    d, h, m = widths
    return _verified({"health": HEALTH, **first_look(d, h, m), **_weights(d, h, m)}, h, m, _is_small(d, h, m))


def _is_small(d: int, h: int, m: int) -> bool:
    return h * (d + 1 + m) <= FEW_PARAMETERS


def first_look(d: int, creases: int, m: int) -> dict[str, float]:
    """What an attempt spends before it can be seen to fail, besides the line: also on a target with more layers."""
    if _is_small(d, creases, m):
        return {
            "scaffold": _regions(creases, m) * d if d > 1 else 0.0,
            "biases": refit_rows(creases, m, POLISHED_SHARE),
        }
    directions = min(directions_worth(d, m, creases), d - 1)
    return {"scaffold": _regions(creases, m) * (directions + 1) if directions else 0.0, "probe": PROBED}


def _regions(creases: int, m: int) -> float:
    """Pieces of the line that are looked at: with several outputs the first, the last, and some between."""
    if m == 1:
        return creases + 1
    nearest, farthest = stretch_of_regions(m)
    between = 2 * (creases - farthest) / (nearest + farthest)
    return 2 + max(1.0, between) if between > 0 else 2


def _weights(d: int, h: int, m: int) -> dict[str, float]:
    """The main pass and what follows it; a small network has none."""
    if _is_small(d, h, m):
        return {}
    outputs = {"outputs": float(ROWS_OF_OUTPUTS * h)} if m > 1 else {}
    return {"main pass": float(points_needed(h, m) * (d + 1)), **outputs, "biases": float(refit_rows(h, m))}


def _verified(stages: dict[str, float], h: int, m: int, small: bool) -> dict[str, float]:
    points = len(SCALES) * points_worth(int(sum(stages.values()) + A_CREASE * h))
    on_creases = h if m == 1 or small else 0  # with several outputs those are kept from before
    return {**stages, "verify": float(points + on_creases + (FAR_POINTS if h <= FEW_NEURONS else 0))}


def _features(widths: Widths, answers: Answers) -> tuple[float, ...]:
    h = widths[1]
    return float(h), float(h) ** 2


DEPTH_TWO = Model(
    "exact extraction, one hidden layer",
    "an exact copy",
    fixed_stages,
    ("line", "close creases"),
    _features,
)
