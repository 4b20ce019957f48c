"""At the scale of use, beyond the box in which probabilities can be read well: does a network hold there too?

Far out probabilities saturate, and a network is looked for and verified inside a box. Where typical inputs lie outside,
neurons whose creases do so too are missed, and nothing inside tells. Values are compared where they can be read; where
they cannot, the probabilities themselves.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluctant.domains import Domain
from reluctant.health.behind import Behind
from reluctant.health.saturation import FARTHEST
from reluctant.networks import ReLUNetwork
from reluctant.networks.evaluation import evaluate
from reluctant.networks.network import OF_EACH_VALUE
from reluctant.numerics import FloatArray
from reluctant.oracles.counting import Counting
from reluctant.oracles.link import AnswerLink, all_told, link_of
from reluctant.oracles.network import LINK_FUNCTIONS
from reluctant.verification.comparing import lost_behind
from reluctant.verification.tolerances import EXACT_TOLERANCE, MOST_TOLERANCE, NOISE_FACTOR

__all__ = ["AtUse", "look_at_use"]

POINTS = 192
NORMAL = 0.9  # of the logarithm of the smallest normal number: ratios of probabilities up to there have their digits
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
    rows = Domain().sample(rng, POINTS, oracle.dim)
    with oracle.stage("verify", expected=POINTS), all_told(oracle) as heard:
        values = oracle.answer(rows)
    told, link = np.concatenate(heard) if heard else np.empty((0, 0)), link_of(oracle)
    predicted, unit = evaluate(network, rows), _units(values)
    accepted = _accepted(values, unit, tol, told, oracle)
    readable = accepted <= MOST_TOLERANCE
    errors = np.where(readable, np.abs(np.where(readable, values, 0.0) - predicted) / unit, 0.0)
    as_told, comparable = _beside_told(predicted, told, link)
    unread, differ = ~readable.all(axis=1), errors > accepted
    wrong = differ.any(axis=1) | (unread & comparable & (as_told > MOST_TOLERANCE))
    largest = float(errors[differ].max(initial=0.0))
    return AtUse(POINTS, int((~unread | comparable).sum()), int(wrong.sum()), largest)


def _units(values: FloatArray) -> FloatArray:
    """Deviation (m,) of each output over what is finite; 1 of one that has none."""
    unit = np.array([column[np.isfinite(column)].std() if np.isfinite(column).any() else 0.0 for column in values.T])
    return np.where(unit > 0, unit, 1.0)


def _accepted(values: FloatArray, unit: FloatArray, tol: float, told: FloatArray, oracle: Counting) -> FloatArray:
    """Errors (n, m) accepted of each value, infinite where it cannot be read.

    Next to 1 log-odds are known to so much less than elsewhere; behind rounding or noise next to 0 as well. Ratios of
    probabilities with all the digits of a number format are not.
    """
    behind = Behind.of(told, link_of(oracle), ratios=oracle.facts.reference) if len(told) else None
    size = _size(np.where(np.isfinite(values), values, np.inf), ratios=oracle.facts.reference)
    odds = 2 * size if link_of(oracle) == "tanh" else size  # of (1 + t) / 2
    coarser = np.exp(np.minimum(odds, LARGEST_POWER))
    if behind is None or not _in_full(behind, tol):
        return np.where(np.isfinite(values), tol * coarser, np.inf)
    lost = lost_behind(values, oracle, behind)
    smallest = NORMAL * -np.log(np.finfo(behind.number_format).tiny)
    read = np.isfinite(values) & ((size if oracle.facts.reference else np.abs(values)) <= smallest)
    return np.where(read, np.maximum(tol, NOISE_FACTOR * lost / unit), np.inf)


def _size(values: FloatArray, *, ratios: bool) -> FloatArray:
    """How far (n, 1) a row is from even odds, or its smallest probability from its largest, as a logarithm."""
    if not ratios:
        return np.asarray(np.abs(values).max(axis=1, keepdims=True))
    return np.asarray(np.ptp(np.column_stack([np.zeros(len(values)), values]), axis=1, keepdims=True))


def _in_full(behind: Behind, tol: float) -> bool:
    """True if nothing but a number format limits the digits of probabilities."""
    return behind.decimals is None and (tol <= EXACT_TOLERANCE or behind.number_format != "float64")


def _beside_told(
    predicted: FloatArray, told: FloatArray, link: AnswerLink | None
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """How far (n,) a network's probabilities are from those that were told, and whether that can be said."""
    if link in OF_EACH_VALUE:
        p = LINK_FUNCTIONS[link](predicted)
    else:
        p = LINK_FUNCTIONS["softmax"](np.column_stack([np.zeros(len(predicted)), predicted]))
    if link in (None, "log-softmax") or p.shape != told.shape:
        return np.zeros(len(predicted)), np.zeros(len(predicted), dtype=bool)
    missing = ~(told > 0) if link == "top-k" else np.zeros(told.shape, dtype=bool)
    return np.where(missing, 0.0, np.abs(p - told)).max(axis=1), np.ones(len(predicted), dtype=bool)
