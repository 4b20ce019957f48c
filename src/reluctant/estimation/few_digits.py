"""One hidden layer from answers of few digits.

Noise that stays the same however large the answer: the exact method from afar, then biases again, nearer and nearer.
float32: a line and a subspace cost so much a neuron, every other direction a fixed number of steps, the last fit so
many random inputs for each parameter.
"""

from __future__ import annotations

from reluctant.estimation.answers import Answers
from reluctant.estimation.depth_two import HEALTH, fixed_stages
from reluctant.estimation.model import Model
from reluctant.estimation.shapes import Widths
from reluctant.extraction.depth_two.assemble import refit_rows
from reluctant.extraction.driver import FAR_POINTS, FEW_NEURONS, points_worth
from reluctant.extraction.few_digits.bases import starting_points
from reluctant.extraction.few_digits.far import SPREAD_ROWS, exact_distance, nearby_shares
from reluctant.extraction.few_digits.lines import CROWDED, MOST_SPARE, ROWS_A_WEIGHT, SPARE_SHARE
from reluctant.extraction.few_digits.method import (
    MANY_PARAMETERS,
    MANY_RANDOM_SHARE,
    RANDOM_SHARE,
    SHARE_OF_SPENT,
    FewDigits,
)
from reluctant.extraction.few_digits.noise import LINES, POINTS
from reluctant.numerics import unit_roundoff
from reluctant.verification.check import SCALES
from reluctant.verification.precision import rows_held_out

__all__ = ["FLOAT32", "FROM_AFAR"]

LOOK = LINES * POINTS  # rows of one look at the noise
A_LINE, A_SUBSPACE = 75.0, 105.0  # rows a neuron, about: what `read_line` and three directions of growth say of theirs


def _noise_and_precision(h: int, looks: int) -> dict[str, float]:
    return {"noise": float(looks * LOOK + SPREAD_ROWS), "precision": float(rows_held_out(h))}


def _fixed_from_afar(widths: Widths, answers: Answers) -> dict[str, float]:
    d, h, m = widths
    distance = exact_distance(answers.noise / unit_roundoff("float64"))
    nearby = sum(refit_rows(h, m, share) for share in nearby_shares(distance, d))
    return {**fixed_stages(widths, answers), **_noise_and_precision(h, 5), "biases nearby": float(nearby)}


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
        "health": HEALTH, **_noise_and_precision(h, 3), "extension": extension, "polish": polish, "verify": verify,
    }  # fmt: skip


def _features_float32(widths: Widths, answers: Answers) -> tuple[float, ...]:
    """Neurons once for the line that is grown, and once for each that is read to choose from."""
    d, h, _ = widths
    spare = int(min(MOST_SPARE, SPARE_SHARE * ROWS_A_WEIGHT * d / A_LINE)) if h >= CROWDED else 0
    return float(h), float(h * spare), 1.0


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
)
