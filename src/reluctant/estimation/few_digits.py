"""One hidden layer from answers of few digits.

Noise that stays the same however large the answer: the exact method from afar, then biases again, nearer and nearer.
float32: a line and a subspace cost so much a neuron, every other direction a fixed number of steps, the last fit so
many random inputs for each parameter. float32 that is rounded too: the same from afar, where the rounding is small,
then biases nearby.
"""

from __future__ import annotations

from reluctant.estimation.answers import Answers
from reluctant.estimation.depth_two import HEALTH, fixed_stages
from reluctant.estimation.model import Model
from reluctant.estimation.shapes import Widths
from reluctant.extraction.depth_two.assemble import refit_rows
from reluctant.extraction.examining import FAR_POINTS, FEW_NEURONS, points_worth
from reluctant.extraction.few_digits.bases import starting_points
from reluctant.extraction.few_digits.far import (
    FARTHER,
    SPREAD_ROWS,
    exact_distance,
    nearby_shares,
    rounded_distance,
)
from reluctant.extraction.few_digits.lines import CROWDED, MOST_SPARE, ROWS_A_WEIGHT, SPARE_SHARE
from reluctant.extraction.few_digits.method import (
    MANY_PARAMETERS,
    MANY_RANDOM_SHARE,
    RANDOM_SHARE,
    SHARE_OF_SPENT,
    FewDigits,
)
from reluctant.extraction.few_digits.noise import LINES, NEAR_AND_FAR, POINTS
from reluctant.numerics import unit_roundoff
from reluctant.verification.comparing import SCALES
from reluctant.verification.precision import rows_held_out

__all__ = ["FLOAT32", "FROM_AFAR", "ROUNDED_FLOAT32"]

LOOK = LINES * POINTS  # rows of one look at the noise
FROM_HERE = NEAR_AND_FAR + FARTHER  # looks that choose where to stand
FROM_THERE = FROM_HERE + NEAR_AND_FAR  # and those at that place
A_LINE, A_SUBSPACE = 75.0, 105.0  # rows a neuron, about: what `read_line` and three directions of growth say of theirs


def _noise_and_precision(h: int, looks: int) -> dict[str, float]:
    return {"noise": float(looks * LOOK + SPREAD_ROWS), "precision": float(rows_held_out(h))}


def _fixed_from_afar(widths: Widths, answers: Answers) -> dict[str, float]:
    distance = exact_distance(answers.noise / unit_roundoff("float64"))
    return {
        **fixed_stages(widths, answers),
        **_noise_and_precision(widths[1], FROM_THERE),
        "biases nearby": _nearby(widths, distance),
    }


def _nearby(widths: Widths, distance: float) -> float:
    """Rows that fit biases anew, from so far away down to the scale of use."""
    d, h, m = widths
    return float(sum(refit_rows(h, m, share) for share in nearby_shares(distance, d)))


def _fixed_rounded(widths: Widths, answers: Answers) -> dict[str, float]:
    distance = rounded_distance(answers.noise, unit_roundoff("float32"))
    return {
        **_fixed_float32(widths, answers),
        **_noise_and_precision(widths[1], FROM_THERE),
        "biases nearby": _nearby(widths, distance),
        "lines to choose from": A_LINE * widths[1] * _spare_lines(widths),
    }


def _fixed_float32(widths: Widths, answers: Answers) -> dict[str, float]:
    d, h, m = widths
    short, long = starting_points(h, m)
    others = max(0, d - 1 - FewDigits().directions)
    extension = float(others * (2 * short + long))
    share = MANY_RANDOM_SHARE if h * (d + 1 + m) >= MANY_PARAMETERS else RANDOM_SHARE
    spent = extension + (A_LINE + A_SUBSPACE) * h
    polish = max(share * h * (d + 1 + m) / m, SHARE_OF_SPENT * spent)
    far = FAR_POINTS if h <= FEW_NEURONS else 0
    verify = float(len(SCALES) * points_worth(int(spent + polish)) + h + far)
    return {
        "health": HEALTH, **_noise_and_precision(h, FROM_HERE), "extension": extension, "polish": polish,
        "verify": verify,
    }  # fmt: skip


def _features_float32(widths: Widths, answers: Answers) -> tuple[float, ...]:
    """Neurons once for the line that is grown, and once for each that is read to choose from."""
    return float(widths[1]), float(widths[1] * _spare_lines(widths)), 1.0


def _spare_lines(widths: Widths) -> int:
    """Lines that are read besides the one that is grown."""
    d, h, _ = widths
    return int(min(MOST_SPARE, SPARE_SHARE * ROWS_A_WEIGHT * d / A_LINE)) if h >= CROWDED else 0


FROM_AFAR = Model(
    "extraction from few digits, looked at from afar",
    "a copy as exact as the noise allows",
    _fixed_from_afar,
    ("line",),
    lambda widths, answers: (float(widths[1]),),
)
FLOAT32 = Model(
    "extraction from float32",
    "a copy as exact as float32 allows",
    _fixed_float32,
    ("line and subspace", "lines to choose from", "whatever the width"),
    _features_float32,
    crowds=True,
)
ROUNDED_FLOAT32 = Model(
    "extraction from float32 of few decimals, looked at from afar",
    "a copy as exact as the decimals allow",
    _fixed_rounded,
    ("line and subspace", "whatever the width"),
    lambda widths, answers: (float(widths[1]), 1.0),
    crowds=True,
)
