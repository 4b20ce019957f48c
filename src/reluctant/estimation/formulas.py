"""The cost formula of each method, for a shape (784-128-1) and a kind of answers ("float32", "decimals=3").

A formula has the rows that follow from the settings of its method, so that it changes with them, and a few terms that
grow with the shape (neurons, weights, creases), whose size `reluctant.estimation.cost` fits to measured runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from reluctant.errors import InvalidInput
from reluctant.extraction.any_depth import AnyDepth
from reluctant.extraction.any_depth.completion import Completion
from reluctant.extraction.bounded import Bounded
from reluctant.extraction.candidate_check import (
    FAR_POINTS,
    FEW_NEURONS,
    POINTS_FOR_DEEP,
    points_on_rays,
    shallow_counts,
)
from reluctant.extraction.depth_two.assembly import refit_rows
from reluctant.extraction.depth_two.main_pass import points_needed
from reluctant.extraction.depth_two.method import DepthTwo, directions_worth
from reluctant.extraction.depth_two.scaffold import stretch_of_regions
from reluctant.extraction.few_digits import FewDigits, noisy_line, scaled_view
from reluctant.extraction.few_digits.method import (
    FARTHER_LOOKS,
    SPREAD_ROWS,
    exact_distance,
    nearby_shares,
    rounded_distance,
)
from reluctant.extraction.few_digits.noisy_extension import starting_points
from reluctant.extraction.from_labels import FromLabels
from reluctant.interface.health import ROWS_PER_LINE, VERB_LINES
from reluctant.interface.noise import UNIFORM_SD
from reluctant.messages import Diagnosis
from reluctant.numerics import unit_roundoff
from reluctant.verification.points import LINE_POINTS, SCALES
from reluctant.verification.precision import rows_held_out

Widths = tuple[int, ...]
Rows = dict[str, float]

FEWEST_LAYERS = 3  # inputs, hidden neurons, outputs
EXPECTED_SHAPE = "widths from inputs to outputs with at least one hidden layer, such as 784-128-1"
MOST_DECIMALS = 15

FLOAT64, FLOAT32, FLOAT16, DECIMALS, NOISE, LABELS = "float64", "float32", "float16", "decimals", "noise", "labels"
ROUNDED_SINGLE = f"{FLOAT32},{DECIMALS}"
PLAIN = (FLOAT64, FLOAT32, FLOAT16, LABELS)
# Decimals from which nothing was measured: too many for the method from afar, too few for the exact one.
UNMEASURED_DECIMALS = {DECIMALS: 9, ROUNDED_SINGLE: 5}
KINDS = (*PLAIN, *(f"{name}=K" for name in UNMEASURED_DECIMALS), f"{NOISE}=S")


# ---- shapes and answers


def as_widths(shape: str | Sequence[int]) -> Widths:
    """Widths of all layers, from "784-128-1" or from numbers."""
    got = f"'{shape}'" if isinstance(shape, str) else repr(shape)
    parts = shape.strip().split("-") if isinstance(shape, str) else shape if isinstance(shape, Iterable) else ()
    try:
        widths = tuple(int(str(part)) for part in parts)
    except ValueError:
        widths = ()
    if len(widths) < FEWEST_LAYERS:
        raise InvalidInput.about("shape", got=got, expected=EXPECTED_SHAPE)
    if min(widths) < 1:
        raise InvalidInput.about("shape", got=got, expected="at least 1 neuron in every layer")
    return widths


def parameters(widths: Sequence[int]) -> int:
    """Weights and biases of a network of these widths."""
    return sum(out * (into + 1) for into, out in pairwise(widths))


def answers_per_parameter(rows: float, widths: Sequence[int], in_a_row: int | None = None) -> float:
    """Answers for each parameter, where a row brings so many: one for each output if not given."""
    return rows * (widths[-1] if in_a_row is None else in_a_row) / parameters(widths)


def shape_name(widths: Sequence[int]) -> str:
    """784-128-1."""
    return "-".join(map(str, widths))


@dataclass(frozen=True)
class Answers:
    """A kind of answers; `amount` is the number of decimals, or the noise over the output's deviation.

    "decimals=3" is float64 that is rounded, "float32,decimals=3" what a model that computes in float32 gives then.
    """

    kind: str = FLOAT64
    amount: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Answers:
        """From "float64", "float32", "float16", "labels", "decimals=3", "float32,decimals=3" or "noise=1e-4"."""
        asked = str(text).replace(" ", "")
        name, _, value = asked.partition("=")
        if asked in PLAIN:
            return cls(asked)
        if name in UNMEASURED_DECIMALS and value.isdecimal() and 1 <= int(value) <= MOST_DECIMALS:
            return cls(name, float(value))
        try:
            amount = float(value) if name == NOISE else math.nan
        except ValueError:
            amount = math.nan
        if 0 < amount < 1:
            return cls(NOISE, amount)
        kinds = f"one of {', '.join(KINDS)} (K from 1 to {MOST_DECIMALS}, S between 0 and 1)"
        raise InvalidInput.about("precision", got=f"'{text}'", expected=kinds)

    def __str__(self) -> str:
        return self.kind if self.kind in PLAIN else f"{self.kind}={self.amount:g}"

    @property
    def noise(self) -> float:
        """Deviation of an answer's error where it does not grow with the answer, for outputs of deviation one."""
        return UNIFORM_SD * 10**-self.amount if self.kind in UNMEASURED_DECIMALS else self.amount

    @property
    def steady_noise(self) -> bool:
        """True for noise that is the same however large the answer is, and too large for exact methods."""
        return self.kind not in PLAIN and not self.between

    @property
    def between(self) -> bool:
        """True for more decimals than were measured, and yet not all of the format."""
        return self.kind in UNMEASURED_DECIMALS and self.amount >= UNMEASURED_DECIMALS[self.kind]

    def in_a_row(self, outputs: int) -> int:
        """Answers that a row brings: one for each output, or one label."""
        return 1 if self.kind == LABELS else outputs


# ---- formulas

HEALTH_ROWS = float(ROWS_PER_LINE * VERB_LINES)
ROWS_OF_OUTPUTS = 2  # a neuron, where there are several outputs
ROWS_A_CREASE = 5  # of the line, about
ROWS_A_LINE, ROWS_A_SUBSPACE = 75.0, 105.0  # a neuron, about, in float32
NOISE_LOOK = scaled_view.NOISE_LINES * scaled_view.NOISE_POINTS  # rows of one measurement of the noise
LOOKS_FROM_HERE = scaled_view.NEAR_AND_FAR + FARTHER_LOOKS  # measurements that choose a place
LOOKS_FROM_THERE = LOOKS_FROM_HERE + scaled_view.NEAR_AND_FAR  # and those at that place
MOST_HIDDEN = 3  # layers of any network that was measured


@dataclass(frozen=True)
class CostFormula:
    """Rows of a method.

    Arguments:
        name: of the method.
        gives: its result.
        fixed: rows by stage that follow from the settings.
        terms: names of the fitted terms.
        counts: how often each of them occurs.
        crowds: wide networks take another attempt more often, so every measured shape counts for the range.
    """

    name: str
    gives: str
    fixed: Callable[[Widths, Answers], Mapping[str, float]]
    terms: tuple[str, ...]
    counts: Callable[[Widths, Answers], tuple[float, ...]]
    crowds: bool = False


def _verify_rows(h: int, spent: float, on_creases: int, all_parameters: int | None = None) -> float:
    counts, far = shallow_counts(int(spent), all_parameters), FAR_POINTS if h <= FEW_NEURONS else 0
    return float(counts.random + counts.on_lines + on_creases + far)


def _is_small(d: int, h: int, m: int) -> bool:
    return h * (d + 1 + m) <= DepthTwo.polished_parameters


def _first_look(d: int, creases: int, m: int) -> Rows:
    """Rows of an attempt at one hidden layer before it can fail, besides the line: also on a target with more."""
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
    """One hidden layer: every stage but the line."""
    d, h, m = widths
    stages: Rows = {"health": HEALTH_ROWS, **_first_look(d, h, m)}
    if not _is_small(d, h, m):  # a small network needs no main pass
        outputs = {"outputs": float(ROWS_OF_OUTPUTS * h)} if m > 1 else {}
        biases = float(refit_rows(h, m, DepthTwo.bias_share))
        stages |= {"main pass": float(points_needed(h, m) * (d + 1)), **outputs, "biases": biases}
    on_creases = h if m == 1 or _is_small(d, h, m) else 0  # with several outputs those are kept from before
    spent = sum(stages.values()) + ROWS_A_CREASE * h
    on_rays = 0 if answers.steady_noise else points_on_rays(int(spent))  # few digits are compared on lines instead
    exact = None if answers.steady_noise else parameters(widths)
    return {**stages, "verify": _verify_rows(h, spent, on_creases, exact) + on_rays}


def _fixed_deep(widths: Widths) -> Rows:
    """Health, the attempt at one hidden layer that fails, and verification."""
    neurons = sum(widths[1:-1])
    lost = sum(_first_look(widths[0], neurons, widths[-1]).values())
    verified = len(SCALES) * POINTS_FOR_DEEP + 2 * neurons + LINE_POINTS
    return {"health": HEALTH_ROWS, "one layer first": lost, "verify": float(verified)}


def _fixed_three(widths: Widths, answers: Answers) -> Rows:
    above = (widths[1] + parameters(widths[1:])) / widths[-1]  # a row each, for the last fit
    exploration = float(Bounded.batch_points * (Bounded.quiet_batches + 1))
    return {**_fixed_deep(widths), "exploration": exploration, "fit": above}


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


def _noise_and_precision(h: int, looks: int) -> Rows:
    return {"noise": float(looks * NOISE_LOOK + SPREAD_ROWS), "precision": float(rows_held_out(h))}


def _nearby_rows(widths: Widths, distance: float) -> float:
    """Rows that fit biases anew, from so far away down to the scale of use."""
    d, h, m = widths
    return float(sum(refit_rows(h, m, share) for share in nearby_shares(distance, d)))


def _fixed_from_afar(widths: Widths, answers: Answers) -> Rows:
    """Noise that stays the same: the exact method from afar, then biases again, nearer and nearer."""
    distance = exact_distance(answers.noise / unit_roundoff("float64"))
    noise = _noise_and_precision(widths[1], LOOKS_FROM_THERE)
    return {**_fixed_two(widths, answers), **noise, "biases nearby": _nearby_rows(widths, distance)}


def _fixed_float32(widths: Widths, answers: Answers) -> Rows:
    """A fixed number of steps for every direction outside the subspace."""
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


def _counts_from_labels(widths: Widths, answers: Answers) -> tuple[float, ...]:
    """Unknown numbers of the directions outside the flat; neurons, for each pair of classes that may meet; a run."""
    n, k, m = widths
    outside = max(0, n - FromLabels.flat)
    return float(outside * (k + max(m - 1, 1))), float(k * max(m - 1, 1)), 1.0


def _counts_labels(widths: Widths, answers: Answers) -> tuple[float, ...]:
    """Components of the normals outside the span and inside; the cube is what runs show, and no argument."""
    n, k = widths[0], min(widths[0], widths[1])
    return float(k * (n - k)), float(k) ** 3, 1.0


DEPTH_TWO = CostFormula(
    "exact extraction, one hidden layer", "an exact copy", _fixed_two, ("line", "close creases"),
    lambda widths, answers: (float(widths[1]), float(widths[1]) ** 2),
)  # fmt: skip
DEPTH_THREE = CostFormula(
    "exact extraction, two hidden layers", "an exact copy", _fixed_three, ("first weights", "hyperplanes", "creases"),
    _counts_three,
)  # fmt: skip
ANY_DEPTH = CostFormula(
    "exact extraction by following creases", "an exact copy", _fixed_any,
    ("following creases", "lines and attempts", "first weights"), _counts_any,
)  # fmt: skip
STEADY_NOISE = CostFormula(
    "extraction from few digits, from afar", "a copy as exact as the noise allows", _fixed_from_afar, ("line",),
    lambda widths, answers: (float(widths[1]),),
)  # fmt: skip
FLOAT32_DIGITS = CostFormula(
    "extraction from float32", "a copy as exact as float32 allows", _fixed_float32,
    ("line and subspace", "lines to choose from", "whatever the width"),
    lambda widths, answers: (float(widths[1]), float(widths[1] * _spare_lines(widths)), 1.0), crowds=True,
)  # fmt: skip
ROUNDED_FLOAT32 = CostFormula(
    "extraction from float32 of few decimals, from afar", "a copy as exact as the decimals allow", _fixed_rounded,
    ("line and subspace", "whatever the width"), lambda widths, answers: (float(widths[1]), 1.0), crowds=True,
)  # fmt: skip
FROM_LABELS = CostFormula(
    "extraction from labels alone", "a copy with the same decision boundary", lambda widths, answers: {},
    ("directions outside the flat", "neurons in the flat", "look and verification"), _counts_from_labels,
)  # fmt: skip
LABELS_ONLY = CostFormula(
    "span from labels alone",
    "the directions of its input that change its label. Of two labels and two hidden layers extract may find a copy "
    "too, at a cost that is not estimated",
    lambda widths, answers: {}, ("outside the span", "inside the span", "boundary and verification"), _counts_labels,
)  # fmt: skip


def formula_for(widths: Widths, answers: Answers, link: str = "identity") -> CostFormula | Diagnosis:
    """The formula of what `extract` would do, of `recover_span` for labels of several layers; or why there is none."""
    hidden = len(widths) - 2
    if answers.kind == LABELS:
        return FROM_LABELS if hidden == 1 else LABELS_ONLY
    if link != "identity":
        return Diagnosis("link-not-measured", {"link": link})
    if answers.between:
        return Diagnosis("decimals-not-measured", {"decimals": int(answers.amount)})
    if answers.kind == FLOAT16:
        return Diagnosis("float16-refused")
    if answers.kind == FLOAT64:
        if hidden > MOST_HIDDEN:
            return Diagnosis("depth-not-measured", {"hidden": hidden, "most": MOST_HIDDEN})
        if hidden == 1:
            return DEPTH_TWO
        return DEPTH_THREE if hidden == 2 and widths[1] <= widths[0] else ANY_DEPTH
    if hidden > 1:
        return Diagnosis("deep-few-digits-not-measured", {"hidden": hidden})
    return {FLOAT32: FLOAT32_DIGITS, ROUNDED_SINGLE: ROUNDED_FLOAT32}.get(answers.kind, STEADY_NOISE)
