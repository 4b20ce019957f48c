"""Answers beside what a network gives: the units of errors, the errors, and how large they may be.

Half the digits of float64 are accepted, or more where the noise of the target asks for it. Far out probabilities
saturate, so a network behind a link is looked for and verified inside a box. Where typical inputs lie outside,
neurons whose creases do so too are missed, and nothing inside shows it: `look_at_use` compares there. It compares
values where they can be read, and the probabilities themselves where they cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluctant.domains import Domain
from reluctant.interface.digits import Behind
from reluctant.interface.reach import FARTHEST
from reluctant.networks import ReLUNetwork
from reluctant.networks.network import ELEMENTWISE_LINKS, evaluate
from reluctant.numerics import FloatArray, Noise, unit_roundoff
from reluctant.oracles.adapters.callable import LINK_FUNCTIONS
from reluctant.oracles.ledger import Counting
from reluctant.oracles.links import AnswerLink, link_of, lost_digits, raw_answers

__all__ = [
    "EXACT_TOLERANCE",
    "MOST_TOLERANCE",
    "NOISE_FACTOR",
    "SCALES",
    "USE_SCALE_INDEX",
    "AtUse",
    "ComparedAnswers",
    "compare_answers",
    "look_at_use",
    "lost_behind",
]

# Accept half the digits of float64; a target with more noise than that, up to this many deviations of it.
EXACT_TOLERANCE = float(np.sqrt(2 * unit_roundoff(np.float64)))
NOISE_FACTOR = 30.0
MOST_TOLERANCE = 1e-2  # of the output's deviation: where noise asks for more, nothing can be told

SCALES = (0.1, 1.0, 10.0)
USE_SCALE_INDEX = SCALES.index(1.0)


@dataclass(frozen=True)
class ComparedAnswers:
    """Answers (n, m), the units of their errors, and the errors in these; groups (n,) are numbers of names.

    lost (n, m): what is not known of values for the digits that probabilities have lost; 0 of other answers.
    """

    answers: FloatArray
    unit: FloatArray
    errors: FloatArray
    groups: NDArray[np.intp]
    names: Sequence[str]
    lost: FloatArray

    @property
    def at_use(self) -> NDArray[np.bool_]:
        """Which rows (n,) are of the scale of use."""
        return np.asarray(self.groups == USE_SCALE_INDEX)

    def largest(self) -> dict[str, FloatArray]:
        """The largest error of each row, by group."""
        return {name: self.errors[self.groups == k].max(axis=1) for k, name in enumerate(self.names)}

    def limits(self, noise: Noise) -> FloatArray:
        """Largest errors (n, m) accepted: more where the answers, and so their noise, are larger.

        An answer near zero has the noise of the sums it is made of: that of the answers around it.
        """
        sd = np.hypot(noise.absolute, noise.relative * np.maximum(np.abs(self.answers), self.unit)) + self.lost
        return np.asarray(np.maximum(EXACT_TOLERANCE, NOISE_FACTOR * sd / self.unit))


def compare_answers(
    network: ReLUNetwork,
    oracle: Counting,
    named: Sequence[tuple[str, FloatArray]],
    answers: FloatArray,
    told: Sequence[FloatArray] = (),
) -> ComparedAnswers:
    """Of the rows by name, the scales first; told: what the target answered behind its link, if that is known."""
    predicted = evaluate(network, np.concatenate([rows for _, rows in named]), oracle.arrays)
    groups = np.repeat(np.arange(len(named)), [len(rows) for _, rows in named])
    unit = _units(answers, groups)
    behind = Behind.of(np.concatenate(told), link_of(oracle), ratios=oracle.facts.reference) if len(told) else None
    errors, lost = np.abs(answers - predicted) / unit, lost_behind(answers, oracle, behind)
    return ComparedAnswers(answers, unit, errors, groups, [name for name, _ in named], lost)


def lost_behind(values: FloatArray, oracle: Counting, behind: Behind | None) -> FloatArray:
    """What (n, m) is not known of values, by the digits in which their probabilities were told."""
    if behind is None:
        return lost_digits(values, oracle)
    made_of_others = link_of(oracle) == "top-k"  # the one that is not told is what the others leave of 1
    return lost_digits(values, oracle, behind.number_format, grid=behind.on_a_grid or made_of_others)


def _units(answers: FloatArray, groups: NDArray[np.intp], at_use: int = USE_SCALE_INDEX) -> FloatArray:
    """Units (n, m) of the errors: the output's deviation at the scale of use, or in the row's own group."""
    spread = np.array([answers[groups == k].std(axis=0) for k in range(groups.max() + 1)])
    # A bump shows on its creases alone: what random points see of it is rounding, and no unit.
    largest = spread.max(axis=0)
    spread[at_use] = np.where(spread[at_use] > EXACT_TOLERANCE * largest, spread[at_use], largest)
    size = np.abs(answers[groups == at_use]).max() or 1.0
    constant = spread[at_use] <= unit_roundoff(np.float64) * size
    spread[at_use, constant] = size  # a constant output is measured by the size of the answers
    return np.asarray(np.maximum(spread, spread[at_use])[groups])


USE_POINTS = 192
NORMAL_SHARE = (
    0.9  # of the logarithm of the smallest normal number: ratios of probabilities up to there have their digits
)
LARGEST_POWER = 700.0  # e to that is a number in float64, and nothing is read there


@dataclass(frozen=True)
class AtUse:
    """Typical inputs: how many were asked and could be compared, at how many a network differs, the largest difference.

    That is of values, over their deviation; 0 where the probabilities differ alone.
    """

    asked: int
    points: int
    differing: int
    largest: float

    @property
    def ok(self) -> bool:
        """True if none is known to differ."""
        return self.differing == 0

    def __str__(self) -> str:
        if not self.points:
            return f"None of {self.asked} typical inputs outside can be read: nothing is known of them."
        if self.ok:
            return f"At {self.points} of {self.asked} typical inputs, also outside, it agrees with the target."
        some = "" if self.points == self.asked else " that can be compared"
        by = f"by up to {self.largest:.1e} of the output's deviation" if self.largest else "by its answers"
        return (
            f"At {self.differing} of {self.points} typical inputs{some}, also outside, it does NOT agree with the "
            f"target, {by}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def look_at_use(
    oracle: Counting, network: ReLUNetwork, box: Domain, tol: float, rng: np.random.Generator
) -> AtUse | None:
    """Compare at random inputs of size 1, in all of space; None where they lie in the box. Cost: 192 rows.

    tol: what is accepted inside the box, where probabilities have all their digits.
    """
    if np.max(box.high) >= FARTHEST:
        return None
    rows = Domain().sample(rng, USE_POINTS, oracle.dim)
    with oracle.stage("verify", expected=USE_POINTS), raw_answers(oracle) as heard:
        values = oracle.answer(rows)
    told, link = np.concatenate(heard) if heard else np.empty((0, 0)), link_of(oracle)
    predicted, unit = evaluate(network, rows), _finite_units(values)
    accepted = _accepted_errors(values, unit, tol, told, oracle)
    readable = accepted <= MOST_TOLERANCE
    errors = np.where(readable, np.abs(np.where(readable, values, 0.0) - predicted) / unit, 0.0)
    as_told, comparable = _probability_errors(predicted, told, link)
    unread, differ = ~readable.all(axis=1), errors > accepted
    wrong = differ.any(axis=1) | (unread & comparable & (as_told > MOST_TOLERANCE))
    largest = float(errors[differ].max(initial=0.0))
    return AtUse(USE_POINTS, int((~unread | comparable).sum()), int(wrong.sum()), largest)


def _finite_units(values: FloatArray) -> FloatArray:
    """Deviation (m,) of each output over what is finite; 1 of one that has none."""
    unit = np.array([column[np.isfinite(column)].std() if np.isfinite(column).any() else 0.0 for column in values.T])
    return np.where(unit > 0, unit, 1.0)


def _accepted_errors(
    values: FloatArray, unit: FloatArray, tol: float, told: FloatArray, oracle: Counting
) -> FloatArray:
    """Errors (n, m) accepted of each value, infinite where it cannot be read.

    Next to 1 log-odds are known to so much less than elsewhere; behind rounding or noise next to 0 as well. Ratios of
    probabilities with all the digits of a number format are not.
    """
    behind = Behind.of(told, link_of(oracle), ratios=oracle.facts.reference) if len(told) else None
    size = _log_odds_size(np.where(np.isfinite(values), values, np.inf), ratios=oracle.facts.reference)
    odds = 2 * size if link_of(oracle) == "tanh" else size  # of (1 + t) / 2
    coarser = np.exp(np.minimum(odds, LARGEST_POWER))
    if behind is None or not _has_full_digits(behind, tol):
        return np.where(np.isfinite(values), tol * coarser, np.inf)
    lost = lost_behind(values, oracle, behind)
    smallest = NORMAL_SHARE * -np.log(np.finfo(behind.number_format).tiny)
    read = np.isfinite(values) & ((size if oracle.facts.reference else np.abs(values)) <= smallest)
    return np.where(read, np.maximum(tol, NOISE_FACTOR * lost / unit), np.inf)


def _log_odds_size(values: FloatArray, *, ratios: bool) -> FloatArray:
    """How far (n, 1) a row is from even odds, or its smallest probability from its largest, as a logarithm."""
    if not ratios:
        return np.asarray(np.abs(values).max(axis=1, keepdims=True))
    return np.asarray(np.ptp(np.column_stack([np.zeros(len(values)), values]), axis=1, keepdims=True))


def _has_full_digits(behind: Behind, tol: float) -> bool:
    """True if nothing but a number format limits the digits of probabilities."""
    return behind.decimals is None and (tol <= EXACT_TOLERANCE or behind.number_format != "float64")


def _probability_errors(
    predicted: FloatArray, told: FloatArray, link: AnswerLink | None
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """How far (n,) a network's probabilities are from those that were told, and whether that can be said."""
    if link in ELEMENTWISE_LINKS:
        p = LINK_FUNCTIONS[link](predicted)
    else:
        p = LINK_FUNCTIONS["softmax"](np.column_stack([np.zeros(len(predicted)), predicted]))
    if link in (None, "log-softmax") or p.shape != told.shape:
        return np.zeros(len(predicted)), np.zeros(len(predicted), dtype=bool)
    missing = ~(told > 0) if link == "top-k" else np.zeros(told.shape, dtype=bool)
    return np.where(missing, 0.0, np.abs(p - told)).max(axis=1), np.ones(len(predicted), dtype=bool)
