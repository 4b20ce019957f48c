"""How a target can be read: in which box it answers, saturates or clips its inputs, and through which link.

An interface that checks the range of its inputs gives NaN, an error or a refusal beyond it. Boxes are tried from the
smallest, so that at most one question of each kind goes unanswered: a served model repeats those, and waits.

Far from the origin one class has all the probability there is, the others underflow to 0, and their log-ratio is
infinite. Inside a box that keeps away from there the network is recovered as in any other domain.

A target that clips its inputs gives the same answer from a bound on, whichever coordinates are moved together. A
function that is flat far out for another reason has a bound of its own on every line. With one or two inputs there are
not enough such lines.

A verb checks the answers as they are. If the user gave no link and only one explains the answers, the verb continues
with the values behind it. Straight pieces behind a link, where the answers are curved, prove it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import BudgetExhausted, TargetError
from reluctant.interface.health import Interface, examine
from reluctant.interface.kinds import NOISE_FACTOR
from reluctant.interface.noise import are_log_probabilities, ask
from reluctant.messages import Diagnosis, Remedy
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles.base import Kind
from reluctant.oracles.input_units import in_own_units
from reluctant.oracles.ledger import Counting
from reluctant.oracles.links import AnswerLink, Linked, PlainProbabilities, ProbabilityFormat, lost_digits
from reluctant.results import Outcome

WIDTHS = tuple(2.0**k for k in range(-4, 11))  # 1/16 to 1024: beyond that methods look as far as in all of space
BOX_CORNERS = 8  # asked of each box, all coordinates at their bounds


def answered_box(oracle: Counting, rng: np.random.Generator) -> Domain | None:
    """The largest box [-w, w], else [0, w], whose corners are all answered with finite numbers; None if there is none.

    Cost: at most 8 rows for each of 15 sizes, for both kinds of box.
    """
    signs = rng.choice([-1.0, 1.0], (BOX_CORNERS - 1, oracle.dim))
    corners = np.concatenate([np.ones((1, oracle.dim)), signs])
    with oracle.stage("reach", expected=BOX_CORNERS * len(WIDTHS)):
        for low, unit in ((-1.0, corners), (0.0, (corners + 1) / 2)):
            answered = 0
            while answered < len(WIDTHS) and _answers(oracle, WIDTHS[answered] * unit):
                answered += 1
            if answered:
                width = WIDTHS[answered - 1]
                return Domain(low * width, width)
    return None


def _answers(oracle: Counting, rows: FloatArray) -> bool:
    try:
        return bool(np.isfinite(ask(oracle, rows)).all())
    except TargetError:
        return False


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

CENTRES, MOSTLY = 8, 0.5  # centres; share of them
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


def is_rounded_inside(oracle: Counting, rng: np.random.Generator) -> bool:
    """True if answers inside a box stay exactly the same over short steps and not over long ones.

    Probabilities that were rounded to decimals do; short lines then show no noise at all. Cost: 24 rows.
    """
    domain, dim = oracle.facts.domain, oracle.dim
    centres, others = (domain.interior(rng, CENTRES, dim) for _ in range(2))
    with oracle.stage("reach", expected=3 * CENTRES):
        rows = np.concatenate([centres, centres + SHORT * (others - centres), centres + LONG * (others - centres)])
        at, near, far = np.split(oracle.answer(rows), 3)
    still, moves = (near == at).all(axis=1), (far != at).any(axis=1)
    return bool(np.mean(still & moves) > MOSTLY)


def _at_corners(oracle: Counting, half_widths: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Answers (boxes, corners, outputs) at random corners of boxes, NaN and inf included."""
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


PROBES, MOVED = 6, 0.5  # random inputs; share of their coordinates that are moved
AGREEING = 3  # different choices of coordinates that have the same bound
FEWEST_INPUTS = 3  # so that there are more choices than that
SIZES: FloatArray = 2.0 ** np.arange(-6.0, 13.0)  # 1/64 to 4096
PLACES: FloatArray = np.concatenate([-SIZES[::-1], [0.0], SIZES])
POINTS, ROUNDS = 8, 8  # between two places, and how often they are laid anew: to a ten millionth of a bound
SAME, RESOLVED = 1e-5, 1e-6  # of the range: bounds that differ by less are the same; they are given to so much
SLOPE = 10.0  # times less steep than most a line may be where it ends: so much farther noise hides the bound
COARSEST = 0.05  # of the range: bounds that are known no better say nothing


def clipped_range(oracle: Counting, health: Interface, rng: np.random.Generator) -> Domain | None:
    """The box that inputs seem to be clipped to, if it has the same bounds for all of them; else None.

    Cost: 234 rows, and 768 to find the bounds if there are any; nothing for less than three inputs.
    """
    if oracle.dim < FEWEST_INPUTS:
        return None
    at = oracle.facts.domain.interior(rng, PROBES, oracle.dim)
    moved = rng.random(at.shape) < MOVED
    moved[np.arange(PROBES), rng.integers(oracle.dim, size=PROBES)] = True
    probes = _Probes(oracle, at, moved, NOISE_FACTOR * health.noise.at(health.spread))
    with oracle.stage("reach"):
        ends = probes.ends()
    if np.isnan(ends).all(axis=1).any():
        return None
    low, high = np.nanmin(ends[0]), np.nanmax(ends[1])
    within = max(SAME, SLOPE * probes.noise / health.spread) * (high - low)
    agree = np.abs(ends - np.array([[low], [high]])) <= within
    choices = [len(np.unique(moved[same], axis=0)) for same in agree]
    if min(choices) < AGREEING or within > COARSEST * (high - low):
        return None
    known = max(RESOLVED, SLOPE * probes.noise / health.spread) * (high - low)
    return Domain(_rounded_inward(low, known, inward=1.0), _rounded_inward(high, known, inward=-1.0))


@dataclass(frozen=True)
class ClippedRange:
    """The range that the target seems to clip its inputs to, and the remedy for a run that failed for it."""

    low: float
    high: float
    reason: Diagnosis

    def evidence(self) -> dict[str, Any]:
        """For the result."""
        return {"clipped": (self.low, self.high), "reason": self.reason}


def clipped_inputs(
    oracle: Counting, health: Interface, outcome: Outcome, rng: np.random.Generator
) -> ClippedRange | None:
    """The range that inputs seem to be clipped to, for a run with this outcome; None if there is none.

    Cost: nothing where answers change far out, or are those of a link that saturates; else up to 1002 rows. The stage
    that a run ended in stays what it was.
    """
    if health.constant_beyond is None or health.saturated or not oracle.facts.domain.is_space or in_own_units(oracle):
        return None
    ended_in = oracle.ledger.last_stage
    try:
        box = clipped_range(oracle, health, rng)
    except (BudgetExhausted, TargetError):
        return None  # it is only a word more
    finally:
        oracle.ledger.last_stage = ended_in
    if box is None:
        return None
    low, high = float(box.low), float(box.high)
    inside = Remedy("inside-range", "extract", {"domain": (low, high)})  # inside their bounds there is more to find
    fields = {"low": low, "high": high, "outcome": outcome.slug}
    return ClippedRange(low, high, Diagnosis("clipped-inputs", fields, (inside,)))


def _rounded_inward(bound: float, known: float, inward: float) -> float:
    """A bound in as many digits as are known; one that moves by more than that moves inward."""
    unit = 10.0 ** np.ceil(np.log10(known))
    nearest = np.round(bound / unit)
    outward = inward * (bound - nearest * unit) > known
    decimals = int(max(0.0, -np.log10(unit)))
    return float(np.round((nearest + inward * outward) * unit, decimals)) + 0.0


@dataclass(frozen=True)
class _Probes:
    """Inputs (n, d) some of whose coordinates are moved together."""

    oracle: Counting
    at: FloatArray
    moved: np.ndarray
    noise: float

    def ask(self, places: FloatArray) -> FloatArray:
        """Answers (n, k, outputs) with the coordinates at these places (n, k)."""
        rows = np.where(self.moved[:, None], places[..., None], self.at[:, None])
        return ask(self.oracle, rows.reshape(-1, self.oracle.dim)).reshape(*places.shape, -1)

    def ends(self) -> FloatArray:
        """Below and above what place (2, n) answers no longer change; NaN where they always do, or never."""
        places = np.array([PLACES[::-1], PLACES])
        answers = self.ask(np.broadcast_to(PLACES, (PROBES, len(PLACES))))
        far = np.stack([answers[:, 0], answers[:, -1]])
        last = np.stack([self._last_other(answers[:, ::-1], far[0]), self._last_other(answers, far[1])])
        ended = (last >= 0) & (last < len(PLACES) - 2)
        if not ended.any(axis=1).all():
            return np.full(last.shape, np.nan)
        inside, outside = (np.take_along_axis(places, np.clip(last + k, 0, len(PLACES) - 1), axis=1) for k in (0, 1))
        for _ in range(ROUNDS):
            inside, outside = self._closer(inside, outside, far)
        return np.where(ended, (inside + outside) / 2, np.nan)

    def _closer(self, inside: FloatArray, outside: FloatArray, far: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Places (2, n) that still differ and no longer do, after one round of points between them."""
        parts = np.linspace(0, 1, POINTS + 2)
        between = inside[..., None] + parts * (outside - inside)[..., None]
        asked = between[..., 1:-1].transpose(1, 0, 2).reshape(PROBES, -1)
        answers = self.ask(asked).reshape(PROBES, 2, POINTS, -1)
        last = np.stack([self._last_other(answers[:, side], far[side]) for side in (0, 1)]) + 1
        both = (np.take_along_axis(between, (last + k)[..., None], axis=2)[..., 0] for k in (0, 1))
        return next(both), next(both)

    def _last_other(self, answers: FloatArray, far: FloatArray) -> np.ndarray:
        """Index (n,) of the last of the answers (n, k, outputs) that is not the one far out; -1 if all are."""
        with np.errstate(invalid="ignore"):  # certain answers are infinite behind a link: equal ones are no other
            other = np.abs(answers - far[:, None]).max(axis=2) > self.noise
        count = other.shape[1]
        return np.where(other.any(axis=1), count - 1 - np.argmax(other[:, ::-1], axis=1), -1)


# ---- the link that answers show by themselves

FEW_ROWS = 12  # asked to tell what kind of answers they are; all honest inputs may have the other label
# Refusals of answers that a link may explain, and of values behind one that is there all the same.
OF_ANSWERS = (Outcome.NOT_PIECEWISE_LINEAR, Outcome.TOO_NOISY, Outcome.NON_FINITE)
OF_VALUES = (None, Outcome.NON_FINITE, Outcome.NOT_PIECEWISE_LINEAR)


@dataclass(frozen=True)
class ReadTarget:
    """A target read through the link that its answers show, and its interface then."""

    oracle: Counting
    health: Interface
    link: AnswerLink
    percent: bool

    def evidence(self) -> dict[str, Any]:
        """For the result."""
        return {"health": self.health, "found link": self.link} | ({"percent": True} if self.percent else {})


def find_link(
    oracle: Counting, served: Interface, rng: np.random.Generator, *, coarse: bool = False
) -> ReadTarget | None:
    """The target behind the link of its answers; None where the user gave one, or none explains them.

    coarse: also behind probabilities of so few decimals that no line can be read.

    Cost: none for values and labels; else a second health check, and 12 rows for curved answers of several outputs.
    """
    if not oracle.unread or served.step_function or served.refusal not in OF_ANSWERS:
        return None
    link = likely_link(oracle, served, rng)
    if link is None:
        return None
    writing = probability_format(served)
    plain = oracle.inner if writing is None else PlainProbabilities(oracle.inner, writing)
    read = oracle.around(Linked(plain, link))
    try:
        behind = examine(read, rng)
    except TargetError:
        return None
    fitted = coarse and behind.raw is not None and behind.raw.may_be_fitted(read.outputs)
    unreadable = behind.raw is not None and (behind.raw.certain or (behind.raw.too_coarse and not fitted))
    allowed = OF_VALUES if served.are_of_a_link else (None,)
    return None if unreadable or behind.refusal not in allowed else ReadTarget(read, behind, link, served.percent)


def likely_link(oracle: Counting, served: Interface, rng: np.random.Generator) -> AnswerLink | None:
    """What may stand after the values; None where nothing does, or noise would hide it."""
    if served.top_k is not None:
        return "top-k" if served.top_k.all_but_one else None
    if served.answers is Kind.PROBABILITIES:
        return "softmax"
    if served.tanh:
        return "tanh" if served.deterministic else None
    curved = served.refusal is Outcome.NOT_PIECEWISE_LINEAR
    if curved and oracle.outputs > 1:
        few = ask(oracle, oracle.facts.domain.sample(rng, FEW_ROWS, oracle.dim))
        if are_log_probabilities(few):
            return "log-softmax"
    sigmoids = oracle.facts.kind is Kind.PROBABILITIES or (curved and served.may_be_sigmoids)
    return "sigmoid" if sigmoids and served.deterministic else None


def probability_format(served: Interface) -> ProbabilityFormat | None:
    """How probabilities are written, None of plain ones and of other answers."""
    hidden = served.top_k is not None and served.refusal is Outcome.NON_FINITE
    number_format = served.number_format if served.decimals is None else None
    return ProbabilityFormat(served.percent, number_format, hidden) if served.percent or hidden else None
