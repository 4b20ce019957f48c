"""The cost formula of each method: rows fixed by its settings, and the terms that grow with the shape.

The settings come from the methods, so that a formula changes with them. What they leave open is a few terms, each a
count of a shape (neurons, weights, creases) times a size that `reluctant.estimation.cost` fits to measured runs.

One hidden layer: nearly every row is fixed; only the search of the line depends on where creases lie. Two hidden layers
and more: what is fixed is small. Few digits: with noise that stays the same however large the answer, the exact method
from afar, then biases again, nearer and nearer; float32 costs so much a neuron for a line and a subspace, and a fixed
number of steps for every other direction. Labels alone: every bit of every direction of the span, and no copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from reluctant.estimation.measurements import (
    DECIMALS,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    LABELS,
    ROUNDED_SINGLE,
    Answers,
    Widths,
    parameters,
)
from reluctant.extraction.any_depth import AnyDepth
from reluctant.extraction.any_depth.completion import Completion
from reluctant.extraction.attempts import FAR_POINTS, FEW_NEURONS, HEALTH_LINES, POINTS_FOR_DEEP, points_worth
from reluctant.extraction.bounded import Bounded
from reluctant.extraction.depth_two.assembly import refit_rows
from reluctant.extraction.depth_two.main_pass import points_needed
from reluctant.extraction.depth_two.method import DepthTwo, directions_worth
from reluctant.extraction.depth_two.scaffold import stretch_of_regions
from reluctant.extraction.few_digits import FewDigits, noisy_line, view
from reluctant.extraction.few_digits.extension import starting_points
from reluctant.extraction.few_digits.method import (
    FARTHER_LOOKS,
    SPREAD_ROWS,
    exact_distance,
    nearby_shares,
    rounded_distance,
)
from reluctant.interface.health import ROWS_PER_LINE
from reluctant.numerics import unit_roundoff
from reluctant.verification.points import SCALES
from reluctant.verification.precision import rows_held_out

Rows = dict[str, float]

HEALTH_ROWS = float(ROWS_PER_LINE * HEALTH_LINES)
ROWS_OF_OUTPUTS = 2  # a neuron, where there are several outputs
ROWS_A_CREASE = 5  # of the line, about
ROWS_A_LINE, ROWS_A_SUBSPACE = 75.0, 105.0  # a neuron, about, in float32
NOISE_LOOK = view.NOISE_LINES * view.NOISE_POINTS  # rows of one look at the noise
LOOKS_FROM_HERE = view.NEAR_AND_FAR + FARTHER_LOOKS  # looks that choose where to stand
LOOKS_FROM_THERE = LOOKS_FROM_HERE + view.NEAR_AND_FAR  # and those at that place
MOST_HIDDEN = 3  # layers of any network that was measured


class NotMeasured(Exception):
    """There is no number for such a target, and why."""


@dataclass(frozen=True)
class CostFormula:
    """How many rows a method asks.

    Arguments:
        name: of the method.
        gives: its result.
        fixed: rows by stage that follow from the settings.
        terms: names of the fitted terms.
        counts: how often each of them occurs.
        sizes: of a shape that matter to it; all if there are none.
        crowds: the wider a network is, the more often it takes another attempt.
    """

    name: str
    gives: str
    fixed: Callable[[Widths, Answers], Mapping[str, float]]
    terms: tuple[str, ...]
    counts: Callable[[Widths, Answers], tuple[float, ...]]
    sizes: tuple[str, ...] = ()
    crowds: bool = False


def _verify_rows(h: int, spent: float, on_creases: int) -> float:
    points = len(SCALES) * points_worth(int(spent))
    return float(points + on_creases + (FAR_POINTS if h <= FEW_NEURONS else 0))


# ---- one hidden layer


def _is_small(d: int, h: int, m: int) -> bool:
    return h * (d + 1 + m) <= DepthTwo.polished_parameters


def _first_look(d: int, creases: int, m: int) -> Rows:
    """Rows of an attempt before it can be seen to fail, besides the line: also on a target with more layers."""
    pieces: float = creases + 1  # of the line; with several outputs the first, the last, and some between
    if m > 1:
        nearest, farthest = stretch_of_regions(m)
        between = 2 * (creases - farthest) / (nearest + farthest)
        pieces = 2 + max(1.0, between) if between > 0 else 2
    if _is_small(d, creases, m):
        return {"scaffold": pieces * d if d > 1 else 0.0, "biases": refit_rows(creases, m, DepthTwo.polished_share)}
    directions = min(directions_worth(d, m, creases), d - 1)
    return {"scaffold": pieces * (directions + 1) if directions else 0.0, "probe": DepthTwo.probe_points}


def _fixed_two(widths: Widths, answers: Answers) -> Rows:
    """Every stage but the line."""
    d, h, m = widths
    stages: Rows = {"health": HEALTH_ROWS, **_first_look(d, h, m)}
    if not _is_small(d, h, m):  # a small network needs no main pass
        outputs = {"outputs": float(ROWS_OF_OUTPUTS * h)} if m > 1 else {}
        biases = float(refit_rows(h, m, DepthTwo.bias_share))
        stages |= {"main pass": float(points_needed(h, m) * (d + 1)), **outputs, "biases": biases}
    on_creases = h if m == 1 or _is_small(d, h, m) else 0  # with several outputs those are kept from before
    return {**stages, "verify": _verify_rows(h, sum(stages.values()) + ROWS_A_CREASE * h, on_creases)}


DEPTH_TWO = CostFormula(
    "exact extraction, one hidden layer",
    "an exact copy",
    _fixed_two,
    ("line", "close creases"),
    lambda widths, answers: (float(widths[1]), float(widths[1]) ** 2),
)

# ---- more hidden layers


def _fixed_deep(widths: Widths) -> Rows:
    """Health, the attempt at one hidden layer that comes to nothing, and verification."""
    neurons = sum(widths[1:-1])
    lost = sum(_first_look(widths[0], neurons, widths[-1]).values())
    return {"health": HEALTH_ROWS, "one layer first": lost, "verify": float(len(SCALES) * POINTS_FOR_DEEP + neurons)}


def _fixed_three(widths: Widths, answers: Answers) -> Rows:
    above = (widths[1] + parameters(widths[1:])) / widths[-1]  # a row each, for the last fit
    return {
        **_fixed_deep(widths),
        "exploration": float(Bounded.batch_points * (Bounded.quiet_batches + 1)),
        "fit": above,
    }


def _counts_three(widths: Widths, answers: Answers) -> tuple[float, ...]:
    d, h, k, _ = widths
    return float(h * d), float(h * (h + k)), float(h + k)


def _fixed_any(widths: Widths, answers: Answers) -> Rows:
    return {**_fixed_deep(widths), "check": max(float(Completion.points), Completion.share * parameters(widths))}


def _counts_any(widths: Widths, answers: Answers) -> tuple[float, ...]:
    """Coefficients of all hidden neurons, neurons, and, with many inputs, first weights by themselves.

    A crease is followed in every layer that it could belong to, so neurons count once for each layer after the first.
    """
    coefficients = sum(out * (into + 1) for into, out in pairwise(widths[:-1]))
    first = widths[0] * widths[1] if widths[0] >= AnyDepth.many_inputs else 0
    return float(coefficients - first), float(sum(widths[1:-1]) * (len(widths) - 3)), float(first)


DEPTH_THREE = CostFormula(
    "exact extraction, two hidden layers",
    "an exact copy",
    _fixed_three,
    ("first weights", "hyperplanes", "creases"),
    _counts_three,
)
ANY_DEPTH = CostFormula(
    "exact extraction by following creases",
    "an exact copy",
    _fixed_any,
    ("following creases", "lines and attempts", "first weights"),
    _counts_any,
)

# ---- few digits


def _noise_and_precision(h: int, looks: int) -> Rows:
    return {"noise": float(looks * NOISE_LOOK + SPREAD_ROWS), "precision": float(rows_held_out(h))}


def _nearby_rows(widths: Widths, distance: float) -> float:
    """Rows that fit biases anew, from so far away down to the scale of use."""
    d, h, m = widths
    return float(sum(refit_rows(h, m, share) for share in nearby_shares(distance, d)))


def _fixed_from_afar(widths: Widths, answers: Answers) -> Rows:
    distance = exact_distance(answers.noise / unit_roundoff("float64"))
    seen = _noise_and_precision(widths[1], LOOKS_FROM_THERE)
    return {**_fixed_two(widths, answers), **seen, "biases nearby": _nearby_rows(widths, distance)}


def _fixed_float32(widths: Widths, answers: Answers) -> Rows:
    d, h, m = widths
    short, long = starting_points(h, m)
    extension = float(max(0, d - 1 - FewDigits.directions) * (2 * short + long))
    many = h * (d + 1 + m) >= FewDigits.many_parameters
    share = FewDigits.many_random_share if many else FewDigits.random_share
    spent = extension + (ROWS_A_LINE + ROWS_A_SUBSPACE) * h
    polish = max(share * h * (d + 1 + m) / m, FewDigits.spent_share * spent)
    return {
        "health": HEALTH_ROWS, **_noise_and_precision(h, LOOKS_FROM_HERE), "extension": extension, "polish": polish,
        "verify": _verify_rows(h, spent + polish, h),
    }  # fmt: skip


def _spare_lines(widths: Widths) -> int:
    """Lines that are read besides the one that is grown."""
    d, h, _ = widths
    spare = noisy_line.SPARE_SHARE * noisy_line.ROWS_A_WEIGHT * d / ROWS_A_LINE
    return int(min(noisy_line.MOST_SPARE, spare)) if h >= noisy_line.CROWDED_LINE else 0


def _fixed_rounded(widths: Widths, answers: Answers) -> Rows:
    distance = rounded_distance(answers.noise, unit_roundoff("float32"))
    return {
        **_fixed_float32(widths, answers),
        **_noise_and_precision(widths[1], LOOKS_FROM_THERE),
        "biases nearby": _nearby_rows(widths, distance),
        "lines to choose from": ROWS_A_LINE * widths[1] * _spare_lines(widths),
    }


STEADY_NOISE = CostFormula(
    "extraction from few digits, looked at from afar",
    "a copy as exact as the noise allows",
    _fixed_from_afar,
    ("line",),
    lambda widths, answers: (float(widths[1]),),
)
FLOAT32_DIGITS = CostFormula(
    "extraction from float32",
    "a copy as exact as float32 allows",
    _fixed_float32,
    ("line and subspace", "lines to choose from", "whatever the width"),
    lambda widths, answers: (float(widths[1]), float(widths[1] * _spare_lines(widths)), 1.0),
    crowds=True,
)
ROUNDED_FLOAT32 = CostFormula(
    "extraction from float32 of few decimals, looked at from afar",
    "a copy as exact as the decimals allow",
    _fixed_rounded,
    ("line and subspace", "whatever the width"),
    lambda widths, answers: (float(widths[1]), 1.0),
    crowds=True,
)

# ---- labels


def _label_counts(widths: Widths, answers: Answers) -> tuple[float, ...]:
    """Components of the normals outside the span and inside; the cube is what runs show, and no argument."""
    n, k = widths[0], min(widths[0], widths[1])
    return float(k * (n - k)), float(k) ** 3, 1.0


LABELS_ONLY = CostFormula(
    "span from labels alone",
    "the directions of its input that it looks at, and no copy",
    lambda widths, answers: {},
    ("outside the span", "inside the span", "boundary and verification"),
    _label_counts,
    sizes=("inputs", "neurons in the first layer", "hidden layers", "outputs"),
)


def formula_for(widths: Widths, answers: Answers, link: str = "identity") -> CostFormula:
    """The formula of what `extract` would do, or `recover_span` from labels; NotMeasured where there is none."""
    hidden = len(widths) - 2
    if answers.kind == LABELS:
        return LABELS_ONLY
    if link != "identity":
        raise NotMeasured(
            f"Not modelled: answers behind a {link}. Where they saturate, values are read inside a box, which takes "
            "some times as many rows. Without a link there are numbers for the values."
        )
    if answers.between:
        name, other = ("answers", FLOAT64) if answers.kind == DECIMALS else (FLOAT32, f"{FLOAT32} that is not rounded")
        raise NotMeasured(
            f"Not measured: {name} rounded to {answers.amount:.0f} decimals. Attempts on them fail at times. "
            f"There are numbers for fewer decimals, and for {other}."
        )
    if answers.kind == FLOAT16:
        raise NotMeasured("float16 has three digits: extraction refuses such answers (low-precision).")
    if answers.kind == FLOAT64:
        if hidden > MOST_HIDDEN:
            raise NotMeasured(
                f"Not measured: {hidden} hidden layers. Extraction tries any depth, but no measured network has more "
                f"than {MOST_HIDDEN}."
            )
        if hidden == 1:
            return DEPTH_TWO
        return DEPTH_THREE if hidden == 2 and widths[1] <= widths[0] else ANY_DEPTH
    if hidden > 1:
        raise NotMeasured(
            f"With {hidden} hidden layers and few digits extraction refuses (low-precision): only one hidden layer has "
            "been recovered from such answers."
        )
    return {FLOAT32: FLOAT32_DIGITS, ROUNDED_SINGLE: ROUNDED_FLOAT32}.get(answers.kind, STEADY_NOISE)
