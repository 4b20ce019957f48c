"""Where probabilities do not saturate: a box around the origin in which every log-ratio is finite.

Far from the origin one class has all the probability there is, the others underflow to 0, and their log-ratio is
infinite. Inside a box that keeps away from there the network is recovered as in any other domain.
"""

from __future__ import annotations

import numpy as np

from reluctant.domains import Domain
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Counting
from reluctant.oracles.links import lost_digits

__all__ = ["FARTHEST", "larger", "readable_box", "smaller", "told_in_steps", "unsaturated_box"]

HALF_WIDTHS: FloatArray = 4.0 ** np.arange(5.0, -5.0, -1.0)  # from the largest: 1024 to 1/256
CORNERS = 12  # asked of each box
BETWEEN: FloatArray = np.array([3.0, 2.0, 1.5])  # times one of them: below the next
FARTHEST = 4.0  # deviations: hardly a coordinate of a typical input is farther out
MARGIN = 4.0  # random corners are not the worst ones; the next smaller box is safe
ROOM_LEFT = 2.0  # of the margin, in a box that is flat without it

FINE_HALF_WIDTHS: FloatArray = 2.0 ** np.arange(10.0, -9.0, -1.0)  # the same range in finer steps
SINGLE_RANGE = float(-np.log(np.finfo(np.float32).tiny))  # between log-probabilities that float32 holds with all digits
READABLE = 0.6  # of that range at random corners: others are farther out
# Next to 1 a probability is known to a rounding of 1, and its log-odds, at the logarithm of k, to k of them.
MOST_LOST = 512.0 * float(unit_roundoff(np.float32))

PLACES, MOSTLY = 8, 0.5  # centres; share of them
SHORT, LONG = 1e-5, 0.3  # parts of the way to another centre: float32 is not so coarse that it stays on the first


def unsaturated_box(oracle: Counting, rng: np.random.Generator) -> Domain | None:
    """The largest box whose random corners are answered with finite numbers, less a margin; None if there is none.

    Cost: 120 rows, and 36 more where typical inputs lie outside: then every bit of room counts.
    """
    largest = _largest_finite(oracle, HALF_WIDTHS, rng)
    if largest is None:
        return None
    if largest < MARGIN * FARTHEST:
        largest = _largest_finite(oracle, largest * BETWEEN, rng) or largest
    return _cube(largest / MARGIN)


def _largest_finite(oracle: Counting, half_widths: FloatArray, rng: np.random.Generator) -> float | None:
    """The largest of these boxes, from the largest on, that has finite corners, as all smaller ones have."""
    finite = np.isfinite(_at_corners(oracle, half_widths, rng)).all(axis=(1, 2))
    unbroken = int(np.cumprod(np.flip(finite)).sum())
    return float(half_widths[-unbroken]) if unbroken else None


def readable_box(oracle: Counting, rng: np.random.Generator) -> Domain | None:
    """The largest box at whose random corners every answer has digits of float32 left; None if there is none.

    Below the smallest normal number probabilities fade long before they are 0; those of sigmoids do so next to 1 as
    well, and answers of a tanh next to both ends. Cost: 228 rows.
    """
    answers = _at_corners(oracle, FINE_HALF_WIDTHS, rng)
    lost = lost_digits(answers.reshape(-1, oracle.outputs), oracle, "float32").reshape(answers.shape)
    if oracle.facts.reference:  # log-ratios to one class more than there are outputs
        answers = np.concatenate([answers, np.zeros_like(answers[..., :1])], axis=2)
        spread = np.ptp(answers, axis=2) + np.log(answers.shape[2])
    else:
        spread = np.abs(answers).max(axis=2)
    within = (spread < READABLE * SINGLE_RANGE) & (lost.max(axis=2) < MOST_LOST)  # NaN is not
    readable = within.all(axis=1)
    unbroken = int(np.cumprod(np.flip(readable)).sum())
    return _cube(FINE_HALF_WIDTHS[-unbroken]) if unbroken else None


def told_in_steps(oracle: Counting, rng: np.random.Generator) -> bool:
    """True if answers inside a box stay exactly the same over short steps and not over long ones.

    Probabilities that were rounded to decimals do; short lines then show no noise at all. Cost: 24 rows.
    """
    domain, dim = oracle.facts.domain, oracle.dim
    centres, others = (domain.interior(rng, PLACES, dim) for _ in range(2))
    with oracle.stage("reach", expected=3 * PLACES):
        rows = np.concatenate([centres, centres + SHORT * (others - centres), centres + LONG * (others - centres)])
        at, near, far = np.split(oracle.answer(rows), 3)
    still, moves = (near == at).all(axis=1), (far != at).any(axis=1)
    return bool(np.mean(still & moves) > MOSTLY)


def _at_corners(oracle: Counting, half_widths: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Answers (boxes, corners, outputs) at random corners of boxes, those that are not finite as well."""
    corners = rng.choice([-1.0, 1.0], (CORNERS, oracle.dim))
    rows = (half_widths[:, None, None] * corners).reshape(-1, oracle.dim)
    with oracle.stage("reach", expected=len(rows)):
        return np.asarray(oracle.answer(rows)).reshape(len(half_widths), CORNERS, -1)


def _cube(half: float) -> Domain:
    return Domain(-float(half), float(half))


def smaller(box: Domain) -> Domain:
    """The next box to try, where rows inside this one saturated after all."""
    return Domain(box.low / MARGIN, box.high / MARGIN)


def larger(box: Domain) -> Domain:
    """The next box to try, where nothing changes inside this one: half of the margin is left."""
    return Domain(box.low * ROOM_LEFT, box.high * ROOM_LEFT)
