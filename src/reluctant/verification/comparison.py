"""Errors of a network beside a target, and the tolerance that each one is held against.

With f the target, g the network, unit the standard deviation of an output and sd the noise of an answer, a network
agrees with a target if at every point

    |f(x) - g(x)| / unit  ≤  max(√ε, 30 · sd / unit),

where ε is the spacing of float64, so √ε is half its digits. Nothing is decided where noise asks for a tolerance above
`MOST_TOLERANCE`. The noise of an answer grows with its size, and next to 0 or 1 with the digits that a probability
loses: sd is that of each answer. It is no less than what g itself rounds by at x: where terms cancel, that is more than
a reading of the noise at other points shows. Where a target answers gradients, those of the network must agree too, to
as many digits.

Besides whole networks, two things are compared: probabilities at typical inputs outside the box in which a link can
read them (`compare_at_use`), and the creases of a network of which only a part is known (`confirm_creases`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluctant.domains import Domain
from reluctant.interface.noise import RawDigits
from reluctant.interface.reach import FARTHEST
from reluctant.messages import Diagnosis
from reluctant.networks import ReLUNetwork
from reluctant.networks.network import ELEMENTWISE_LINKS, evaluate
from reluctant.numerics import DOUBLE, FloatArray, Noise, unit_roundoff
from reluctant.oracles.ledger import Counting
from reluctant.oracles.links import LINK_FUNCTIONS, lost_digits, raw_answers
from reluctant.verification.points import SCALES, PointGroup, crease_points
from reluctant.verification.precision import rounding_sizes

EXACT_TOLERANCE = float(np.sqrt(2 * unit_roundoff(np.float64)))  # √ε, of the output's standard deviation
NOISE_FACTOR = DOUBLE.deviations  # 30: noise is read from few samples, and differs from place to place
MOST_TOLERANCE = 1e-2  # of the output's standard deviation


# ---- a whole network


@dataclass(frozen=True)
class AcceptedError:
    """The errors that a comparison accepts, relative to the output's deviation: `tol`, or what the noise explains.

    noise: of the answers; None where it is yet to be measured. most: where noise asks for a larger tolerance, nothing
    is decided.
    """

    tol: float | None = None
    noise: Noise | None = None
    most: float = MOST_TOLERANCE

    @property
    def is_open(self) -> bool:
        """True if the noise must be measured first."""
        return self.tol is None and self.noise is None

    def decides(self, typical: float) -> bool:
        """True if errors within a tolerance that is typically so large mean that networks agree."""
        return self.tol is not None or typical <= self.most


@dataclass(frozen=True)
class ComparedAnswers:
    """Answers (n, m) with the group of each row, the units of their errors, and the errors in these units.

    lost (n, m): the uncertainty of values that were read from probabilities with few digits; 0 for other answers.
    """

    network: ReLUNetwork
    rows: FloatArray
    answers: FloatArray
    unit: FloatArray
    errors: FloatArray
    groups: NDArray[np.intp]  # (n,), indices into names
    names: Sequence[str]
    lost: FloatArray

    @property
    def at_use(self) -> NDArray[np.bool_]:
        """Which rows (n,) have the scale of use."""
        return np.asarray(self.groups == SCALES.index(1.0))

    def largest(self) -> dict[str, FloatArray]:
        """The largest error of each row, by group."""
        return {name: self.errors[self.groups == k].max(axis=1) for k, name in enumerate(self.names)}

    def tolerances(self, accepted: AcceptedError) -> FloatArray:
        """The tolerance, or max(√ε, 30 · sd / unit), for every answer (n, m).

        An answer near zero has the noise of the sums it is made of: that of the answers around it.
        """
        noise = accepted.noise
        if accepted.tol is not None or noise is None:
            return np.full(self.answers.shape, accepted.tol)
        sd = np.hypot(noise.absolute, noise.relative * np.maximum(np.abs(self.answers), self.unit)) + self.lost
        found = np.maximum(EXACT_TOLERANCE, NOISE_FACTOR * sd / self.unit)
        beyond = np.flatnonzero((self.errors > found).any(axis=1))  # few or none: only there rounding decides
        if len(beyond):
            rounded = noise.rounding * rounding_sizes(self.network, self.rows[beyond])
            found[beyond] = np.maximum(found[beyond], NOISE_FACTOR * rounded / self.unit[beyond])
        return np.asarray(found)


def compare_answers(
    network: ReLUNetwork,
    oracle: Counting,
    groups: Sequence[PointGroup],
    answers: FloatArray,
    raw: Sequence[FloatArray] = (),
) -> ComparedAnswers:
    """A network beside the answers at groups of points, the scales first.

    raw: the answers that the target gave before its link was undone, where they are known.
    """
    rows = np.concatenate([group.rows for group in groups])
    predicted = evaluate(network, rows, oracle.arrays)
    index = np.repeat(np.arange(len(groups)), [len(group.rows) for group in groups])
    unit = _units(answers, index)
    behind = RawDigits.behind(oracle, raw) if len(raw) else None
    errors, lost = np.abs(answers - predicted) / unit, _lost_behind(answers, oracle, behind)
    return ComparedAnswers(network, rows, answers, unit, errors, index, [group.name for group in groups], lost)


def slope_errors(network: ReLUNetwork, rows: FloatArray, slopes: FloatArray) -> FloatArray:
    """Errors (n,) of a network's gradients beside those (n, m, d) that a target answers, of an output's largest.

    0 where a row lies on a crease, to half the digits: there a gradient has two values.
    """
    off = np.linalg.norm(network.gradients(rows) - slopes, axis=2)
    largest = np.linalg.norm(slopes, axis=2).max(axis=0)
    off /= np.where(largest > 0, largest, 1.0)
    below, on_crease = [rows], np.zeros(len(rows), dtype=bool)
    for layer, values in enumerate(network.preactivations(rows)[: network.depth - 1]):
        terms = sum(np.abs(below[k]) @ np.abs(w).T for k, w in network.incoming(layer + 1).items())
        on_crease |= (np.abs(values) <= EXACT_TOLERANCE * (terms + np.abs(network.biases[layer]))).any(axis=1)
        below.append(np.maximum(values, 0))
    return np.where(on_crease, 0.0, off.max(axis=1))


def _units(answers: FloatArray, groups: NDArray[np.intp]) -> FloatArray:
    """Units (n, m) of the errors: an output's deviation at the scale of use, or in the row's own group if larger."""
    use = SCALES.index(1.0)
    spread = np.array([answers[groups == k].std(axis=0) for k in range(groups.max() + 1)])
    # A bump shows on its creases alone: random points see no more of it than rounding, which is no unit.
    largest = spread.max(axis=0)
    spread[use] = np.where(spread[use] > EXACT_TOLERANCE * largest, spread[use], largest)
    size = np.abs(answers[groups == use]).max() or 1.0
    constant = spread[use] <= unit_roundoff(np.float64) * size
    spread[use, constant] = size  # a constant output is measured by the size of the answers
    return np.asarray(np.maximum(spread, spread[use])[groups])


def _lost_behind(values: FloatArray, oracle: Counting, behind: RawDigits | None) -> FloatArray:
    """Uncertainty (n, m) of values, by the digits of the probabilities they were read from."""
    if oracle.facts.link is None:
        return np.zeros_like(values)
    return lost_digits(values, oracle) if behind is None else behind.lost(values, oracle)


# ---- typical inputs, where the network was compared inside a smaller box alone

USE_POINTS = 192
# Beyond a box, what a network may lack are neurons that are on behind a hyperplane: 0.3% of typical inputs, and 8% of
# those twice as far.
FARTHER_POINTS, TIMES_FARTHER = 192, 2.0


@dataclass(frozen=True)
class AtUse:
    """Comparison at typical inputs and farther ones, also outside the box in which a link can read all answers.

    asked: inputs. points: those that could be compared. differing: those at which the network differs. largest:
    difference of values, over their standard deviation; 0 where the probabilities alone differ. own_scales: the inputs
    are of the columns' own sizes, and larger ones.
    """

    asked: int
    points: int
    differing: int
    largest: float
    own_scales: bool = False

    @property
    def ok(self) -> bool:
        """True if none differs."""
        return self.differing == 0

    def and_also(self, other: AtUse) -> AtUse:
        """Both comparisons as one."""
        return AtUse(
            self.asked + other.asked, self.points + other.points, self.differing + other.differing,
            max(self.largest, other.largest),
        )  # fmt: skip

    @property
    def diagnosis(self) -> Diagnosis:
        """How it ended."""
        slug = "typical-unread" if not self.points else "typical-agree" if self.ok else "typical-differ"
        return Diagnosis(slug, asdict(self))

    def __str__(self) -> str:
        return str(self.diagnosis)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def compare_at_use(
    oracle: Counting,
    network: ReLUNetwork,
    box: Domain,
    tol: float,
    rng: np.random.Generator,
    count: int = USE_POINTS,
) -> AtUse | None:
    """Compare at so many typical inputs, and at 192 twice as far; None where they lie in the box. Cost: as many rows.

    tol: the tolerance inside the box, where probabilities have all their digits.
    """
    if np.max(box.high) >= FARTHEST:
        return None
    typical, others = typical_inputs(oracle, rng, count), typical_inputs(oracle, rng, FARTHER_POINTS)
    middle = others.mean(axis=0)
    farther = middle + TIMES_FARTHER * (others - middle)
    return compare_where_readable(oracle, network, typical, tol).and_also(
        compare_where_readable(oracle, network, farther, tol)
    )


def compare_where_readable(
    oracle: Counting, network: ReLUNetwork, rows: FloatArray, tol: float, roundings: FloatArray | float = 0.0
) -> AtUse:
    """Compare at rows whose answers may be certain: the values that can be read, else the probabilities.

    roundings (n, m): how far those of the target's own sums may carry its values.
    """
    with oracle.stage("verify", expected=len(rows)), raw_answers(oracle) as heard:
        values = oracle.answer(rows)
    raw, link = np.concatenate(heard) if heard else np.empty((0, 0)), oracle.facts.link
    deviations = np.array(
        [column[np.isfinite(column)].std() if np.isfinite(column).any() else 0.0 for column in values.T]
    )
    unit = np.where(deviations > 0, deviations, 1.0)
    tolerances = _value_tolerances(values, unit, tol, raw, oracle) + NOISE_FACTOR * roundings / unit
    readable = tolerances <= MOST_TOLERANCE
    predicted = evaluate(network, rows)
    errors = np.where(readable, np.abs(np.where(readable, values, 0.0) - predicted) / unit, 0.0)
    differ, unread = errors > tolerances, ~readable.all(axis=1)
    off, comparable = _probability_errors(predicted, raw, link)
    wrong = differ.any(axis=1) | (unread & comparable & (off > MOST_TOLERANCE))
    largest = float(errors[differ].max(initial=0.0))
    return AtUse(len(rows), int((~unread | comparable).sum()), int(wrong.sum()), largest)


def typical_inputs(oracle: Counting, rng: np.random.Generator, count: int) -> FloatArray:
    """Rows of the kind the target is for, if the user gave some; else, and where these are too few, Gaussian ones."""
    samples = oracle.facts.samples
    if samples is None:
        return Domain().sample(rng, count, oracle.dim)
    given = samples[rng.permutation(len(samples))[:count]]
    missing = count - len(given) if count > USE_POINTS else 0
    return np.concatenate([given, Domain().sample(rng, missing, oracle.dim)]) if missing else given


def _value_tolerances(
    values: FloatArray, unit: FloatArray, tol: float, raw: FloatArray, oracle: Counting
) -> FloatArray:
    """Tolerances (n, m) for values read through a link, infinite where one cannot be read.

    Log-odds z are known to e^|z| times less next to 1 than at even odds; behind rounding or noise next to 0 as well.
    Ratios of probabilities with all the digits of their number format lose none, down to its smallest normal number.
    """
    largest_power = 700.0  # e to that is a number in float64, and nothing is read there
    normal_share = 0.9  # of the logarithm of the smallest normal number
    behind = RawDigits.behind(oracle, [raw]) if len(raw) else None
    finite = np.isfinite(values)
    size = _log_odds_size(np.where(finite, values, np.inf), ratios=oracle.facts.reference)
    if behind is None or behind.decimals is not None or (tol > EXACT_TOLERANCE and behind.number_format == "float64"):
        odds = 2 * size if oracle.facts.link == "tanh" else size  # of (1 + t) / 2
        return np.where(finite, tol * np.exp(np.minimum(odds, largest_power)), np.inf)
    lost = _lost_behind(values, oracle, behind)
    smallest = normal_share * -np.log(np.finfo(behind.number_format).tiny)
    read = finite & ((size if oracle.facts.reference else np.abs(values)) <= smallest)
    return np.where(read, np.maximum(tol, NOISE_FACTOR * lost / unit), np.inf)


def _log_odds_size(values: FloatArray, *, ratios: bool) -> FloatArray:
    """Distance (n, 1) of a row from even odds, or of its smallest probability from its largest, as a logarithm."""
    if not ratios:
        return np.asarray(np.abs(values).max(axis=1, keepdims=True))
    return np.asarray(np.ptp(np.column_stack([np.zeros(len(values)), values]), axis=1, keepdims=True))


def _probability_errors(
    predicted: FloatArray, raw: FloatArray, link: str | None
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Differences (n,) of the network's probabilities from the target's, and where they can be compared."""
    if link in ELEMENTWISE_LINKS:
        p = LINK_FUNCTIONS[link](predicted)
    else:
        p = LINK_FUNCTIONS["softmax"](np.column_stack([np.zeros(len(predicted)), predicted]))
    if link in (None, "log-softmax") or p.shape != raw.shape:
        return np.zeros(len(predicted)), np.zeros(len(predicted), dtype=bool)
    missing = ~(raw > 0) if link == "top-k" else np.zeros(raw.shape, dtype=bool)
    return np.where(missing, 0.0, np.abs(p - raw)).max(axis=1), np.ones(len(predicted), dtype=bool)


# ---- a part of a network: the creases of its first layer

LONGEST_BEND_STEP = 4e-3  # of the point's norm: longer steps meet other creases
SECOND_DIFFERENCE = np.array([1.0, -2.0, 1.0])


@dataclass(frozen=True)
class ConfirmedNeurons:
    """Neurons of the first layer, those at whose creases the target bends, and the weights and biases of these."""

    neurons: int
    confirmed: int
    weights: int


def confirm_creases(
    oracle: Counting, network: ReLUNetwork, rng: np.random.Generator, *, noise: Noise, spread: float
) -> ConfirmedNeurons:
    """Ask across the crease of every neuron of the first layer. Cost: at most 36 rows a neuron.

    A neuron is confirmed if the target bends at two of six random points of its crease: elsewhere a neuron of a deeper
    layer may hide it. None is confirmed where answers are too noisy for a step that meets no other crease.
    """
    places, enough = 6, 2
    step = max(1e-5, 1e4 * noise.at(spread) / spread)  # of the point's norm: far above noise, short beside creases
    width = network.widths[1] if network.depth > 1 else 0
    if step > LONGEST_BEND_STEP:
        return ConfirmedNeurons(width, 0, 0)
    found = [crease_points(network, oracle.facts.domain, rng) for _ in range(places)]
    points = np.concatenate([each.points for each in found])
    neurons = np.concatenate([each.neurons for each in found])
    first_layer = neurons[:, 0] == 0
    points, owners = points[first_layer], neurons[first_layer, 1]
    bending = _target_bends(oracle, points, network.hyperplanes()[0][owners], step, noise)
    confirmed = int((np.bincount(owners[bending], minlength=width) >= enough).sum())
    return ConfirmedNeurons(width, confirmed, confirmed * (network.dim + 1))


def _target_bends(
    oracle: Counting, points: FloatArray, normals: FloatArray, step: float, noise: Noise
) -> NDArray[np.bool_]:
    """Whether (n,) the second difference across a crease is beyond noise and twice that of a place five steps away."""
    noise_factor, times_beside = 8.0, 2.0
    sizes = np.linalg.norm(points, axis=1, keepdims=True)
    places = np.array([-1.0, 0.0, 1.0, 4.0, 5.0, 6.0])  # in steps along the normal: on the crease, and beside it
    rows = points + step * places[:, None, None] * sizes * normals  # (places, n, d)
    domain = oracle.facts.domain
    inside = ((rows >= domain.low) & (rows <= domain.high)).all(axis=(0, 2))
    bending = np.zeros(len(points), dtype=bool)
    if not inside.any():
        return bending
    kept = rows[:, inside]
    with oracle.stage("part", expected=kept.shape[0] * kept.shape[1]):
        answers = oracle.query(kept.reshape(-1, oracle.dim)).reshape(*kept.shape[:2], -1)
    on, beside = (np.abs(np.tensordot(SECOND_DIFFERENCE, part, axes=1)) for part in np.split(answers, 2))
    sd = np.hypot(noise.absolute, noise.relative * np.abs(answers))
    floor = noise_factor * np.linalg.norm(SECOND_DIFFERENCE) * sd
    bending[inside] = ((on > floor.max(axis=0)) & (on > times_beside * beside)).any(axis=1)
    return bending
