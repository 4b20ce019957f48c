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
from reluctant.numerics import FloatArray
from reluctant.oracles.counting import Counting
from reluctant.oracles.link import AnswerLink, all_told, link_of
from reluctant.oracles.network import LINK_FUNCTIONS
from reluctant.verification.tolerances import EXACT_TOLERANCE, MOST_TOLERANCE

__all__ = ["AtUse", "look_at_use"]

POINTS = 192
NORMAL = 0.9  # of the logarithm of the smallest normal number: ratios of probabilities up to there have their digits
LARGEST_POWER = 700.0  # e to that is a number in float64, and nothing is read there


@dataclass(frozen=True)
class AtUse:
    """Typical inputs: how many were asked and could be compared, at how many a network differs, the largest error.

    That is of values, over their deviation.
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
        told = f"{self.points} of {self.asked} typical inputs"
        if self.ok:
            return f"At {told}, also outside, it agrees with the target."
        return (
            f"At {self.differing} of {told}, also outside, it does NOT agree with the target, by up to "
            f"{self.largest:.1e} of the output's deviation."
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
    predicted = evaluate(network, rows)
    accepted = _accepted(values, tol, Behind.of(told, ratios=oracle.facts.reference) if heard else None, link)
    readable = accepted <= MOST_TOLERANCE
    errors = _errors(values, predicted, readable)
    wrong = ~(errors <= accepted) & readable
    as_told, comparable = _beside_told(predicted, told, link)
    comparable &= ~readable
    return AtUse(
        POINTS, int((readable | comparable).sum()), int(wrong.sum() + (comparable & (as_told > MOST_TOLERANCE)).sum()),
        float(errors[readable].max(initial=0.0)),
    )  # fmt: skip


def _accepted(values: FloatArray, tol: float, behind: Behind | None, link: AnswerLink | None) -> FloatArray:
    """Errors (n,) accepted in each row, infinite where it cannot be read.

    Next to 0 and 1 log-odds are known to so much less than elsewhere, and so is every value behind rounding or noise.
    Ratios of probabilities with all the digits of a number format are not.
    """
    size = np.abs(values).max(axis=1)
    with np.errstate(invalid="ignore"):
        finite = np.where(np.isfinite(values).all(axis=1), 1.0, np.inf)
    if behind is not None and link in ("softmax", "log-softmax") and _in_full(behind, tol):
        smallest = NORMAL * -np.log(np.finfo(behind.number_format).tiny)
        return np.where(size <= smallest, tol, np.inf)
    return np.asarray(finite * tol * np.exp(np.minimum(np.nan_to_num(size, nan=0.0), LARGEST_POWER)))


def _in_full(behind: Behind, tol: float) -> bool:
    """True if nothing but a number format limits the digits of probabilities."""
    return behind.decimals is None and (tol <= EXACT_TOLERANCE or behind.number_format != "float64")


def _errors(values: FloatArray, predicted: FloatArray, readable: NDArray[np.bool_]) -> FloatArray:
    """The largest error (n,) of each row, over the deviation of what could be read; 0 where a row could not."""
    errors = np.zeros(len(values))
    if readable.any():
        read = values[readable]
        unit = read.std(axis=0)
        unit[unit == 0] = np.abs(read).max() or 1.0
        errors[readable] = (np.abs(read - predicted[readable]) / unit).max(axis=1)
    return errors


def _beside_told(
    predicted: FloatArray, told: FloatArray, link: AnswerLink | None
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """How far (n,) a network's probabilities are from those that were told, and whether that can be said."""
    if link == "sigmoid":
        p = LINK_FUNCTIONS["sigmoid"](predicted)
    else:
        p = LINK_FUNCTIONS["softmax"](np.column_stack([np.zeros(len(predicted)), predicted]))
    if link in (None, "log-softmax") or p.shape != told.shape:
        return np.zeros(len(predicted)), np.zeros(len(predicted), dtype=bool)
    missing = ~(told > 0) if link == "top-k" else np.zeros(told.shape, dtype=bool)
    return np.where(missing, 0.0, np.abs(p - told)).max(axis=1), np.ones(len(predicted), dtype=bool)
