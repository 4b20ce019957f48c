"""Two hidden layers and more: what is fixed is small, and the fitted terms say what the rest grows with."""

from __future__ import annotations

from itertools import pairwise

from reluctant.estimation.answers import Answers
from reluctant.estimation.depth_two import HEALTH, first_look
from reluctant.estimation.model import Model
from reluctant.estimation.shapes import Widths, parameters
from reluctant.extraction.any_depth.completion import CHECKED, FEWEST_CHECKED
from reluctant.extraction.any_depth.method import MANY_INPUTS
from reluctant.extraction.bounded.explore import POINTS as EXPLORED
from reluctant.extraction.bounded.explore import QUIET_BATCHES
from reluctant.extraction.examining import POINTS_FOR_DEEP
from reluctant.verification.comparing import SCALES

__all__ = ["ANY_DEPTH", "DEPTH_THREE"]


def _ends(widths: Widths) -> dict[str, float]:
    """Health, the attempt at one hidden layer that comes to nothing, and verification."""
    neurons = sum(widths[1:-1])
    lost = sum(first_look(widths[0], neurons, widths[-1]).values())
    return {"health": HEALTH, "one layer first": lost, "verify": float(len(SCALES) * POINTS_FOR_DEEP + neurons)}


def _fixed_three(widths: Widths, answers: Answers) -> dict[str, float]:
    _, h, _, m = widths
    above = (h + parameters(widths[1:])) / m  # a row each, for the last fit
    return {**_ends(widths), "exploration": float(EXPLORED * (QUIET_BATCHES + 1)), "fit": above}


def _features_three(widths: Widths, answers: Answers) -> tuple[float, ...]:
    d, h, k, _ = widths
    return float(h * d), float(h * (h + k)), float(h + k)


def _fixed_any(widths: Widths, answers: Answers) -> dict[str, float]:
    return {**_ends(widths), "check": max(float(FEWEST_CHECKED), CHECKED * parameters(widths))}


def _features_any(widths: Widths, answers: Answers) -> tuple[float, ...]:
    """Coefficients of all hidden neurons, neurons, and, with many inputs, first weights by themselves.

    A crease is followed in every layer that it could belong to, so neurons count once for each layer after the first.
    """
    coefficients = sum(out * (into + 1) for into, out in pairwise(widths[:-1]))
    first = widths[0] * widths[1] if widths[0] >= MANY_INPUTS else 0
    neurons, later = sum(widths[1:-1]), len(widths) - 3
    return float(coefficients - first), float(neurons * later), float(first)


DEPTH_THREE = Model(
    "exact extraction, two hidden layers",
    "an exact copy",
    _fixed_three,
    ("first weights", "hyperplanes", "creases"),
    _features_three,
)
ANY_DEPTH = Model(
    "exact extraction by following creases",
    "an exact copy",
    _fixed_any,
    ("following creases", "lines and attempts", "first weights"),
    _features_any,
)
