"""Positions of the compared points (scales, distances beside a crease), and tolerances.

Points lie at three scales, on every crease and beside it at distances over eight orders of magnitude; bends are checked
where only a part of a network is known. Tolerances follow from the measured noise.
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
from reluctant.networks import ReLUNetwork
from reluctant.networks.network import ELEMENTWISE_LINKS, evaluate
from reluctant.numerics import HOST, Arrays, FloatArray, Noise, joined, unit_roundoff
from reluctant.oracles.adapters.dispatch import LINK_FUNCTIONS
from reluctant.oracles.ledger import Counting
from reluctant.oracles.links import AnswerLink, link_of, lost_digits, raw_answers

CREASE_DRAWS = 8  # random points or lines tried for each neuron
LINE_SAMPLES = 17  # points on a line in which a sign change is looked for
BISECTIONS = 60  # more than float64 has bits
SCALE_OF_USE = (0.1, 10.0)
OUT_OF_USE = 2 * SCALE_OF_USE[1]  # of √d: a point of a crease that far out is not looked at

# Beside a crease: from just above rounding to the size of the point itself.
NEAREST_BESIDE, FARTHEST_BESIDE = 1e-8, 1.0

# Far along a crease, where one of a deeper layer has bent away: beyond the scale of use, and this much beside it.
FAR_SCALE, FAR_BESIDE = 30.0, 0.03


@dataclass(frozen=True)
class CreasePoints:
    """Points on creases, and the (layer, neuron) each one belongs to; `missed` neurons have none in reach."""

    points: FloatArray
    neurons: NDArray[np.intp]  # (n, 2)
    missed: int


def crease_points(
    network: ReLUNetwork, domain: Domain, rng: np.random.Generator, arrays: Arrays = HOST
) -> CreasePoints:
    """One random point on the crease of every hidden neuron whose crease passes the scale of use."""
    points, neurons, missed = [], [], 0
    for layer, width in enumerate(network.widths[1:-1]):
        found = _drawn_on_creases(network, layer, np.arange(width), domain, rng, arrays)
        for _ in range(CREASE_DRAWS - 1):
            open_ = np.flatnonzero(np.isnan(found[:, 0]))
            if not len(open_):
                break
            found[open_] = _drawn_on_creases(network, layer, open_, domain, rng, arrays)
        hit = np.flatnonzero(~np.isnan(found[:, 0]))
        points.append(found[hit] if len(hit) < width else found)
        neurons.append(np.column_stack([np.full(len(hit), layer), hit]))
        missed += width - len(hit)
    if not points:
        return CreasePoints(np.empty((0, network.dim)), np.empty((0, 2), dtype=np.intp), 0)
    return CreasePoints(joined(points), joined(neurons), missed)


def _drawn_on_creases(
    network: ReLUNetwork,
    layer: int,
    neurons: NDArray[np.intp],
    domain: Domain,
    rng: np.random.Generator,
    arrays: Arrays,
) -> FloatArray:
    """A random point on the crease of each of these neurons of a layer, NaN where none was met."""
    if layer == 0 and domain.is_space:
        return _project_to_first(network, neurons, rng, arrays)
    return _cross_deeper(network, layer, neurons, domain, rng)


def _random_starts(n: int, dim: int, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Random points, each at a scale of its own."""
    scale = _random_scales(n, rng)
    return domain.sample(rng, n, dim) if domain.is_box else domain.fold(scale * rng.standard_normal((n, dim)))


def _random_scales(n: int, rng: np.random.Generator) -> FloatArray:
    low, high = np.log(SCALE_OF_USE)
    return np.exp(rng.uniform(low, high, (n, 1)))


def _project_to_first(
    network: ReLUNetwork, neurons: NDArray[np.intp], rng: np.random.Generator, arrays: Arrays
) -> FloatArray:
    """Drop random points onto the hyperplanes of the first layer; NaN where that leaves the scale of use."""
    w, b, scale = network.weights[0], network.biases[0], _random_scales(len(neurons), rng)
    normals = arrays.put(w if len(neurons) == len(w) else w[neurons])
    lengths = arrays.xp.linalg.norm(normals, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN for a neuron without a crease
        normals, offsets = normals / lengths[:, None], arrays.put(b[neurons]) / lengths
    points = arrays.put(scale) * arrays.normals(rng, (len(neurons), network.dim))
    points -= ((points * normals).sum(axis=1) + offsets)[:, None] * normals
    sizes = arrays.xp.linalg.norm(points, axis=1)
    points[~(sizes <= OUT_OF_USE * float(np.sqrt(network.dim)))] = np.nan
    return arrays.get(points)


def _cross_deeper(
    network: ReLUNetwork, layer: int, neurons: NDArray[np.intp], domain: Domain, rng: np.random.Generator
) -> FloatArray:
    """Find a zero of each neuron's pre-activation between two random points; NaN where there is none."""
    start, stop = (_random_starts(len(neurons), network.dim, domain, rng) for _ in range(2))

    def values(t: FloatArray) -> FloatArray:
        rows = start + t[:, None] * (stop - start)
        return network.preactivations(rows)[layer][np.arange(len(neurons)), neurons]

    grid = np.linspace(0, 1, LINE_SAMPLES)
    signs = np.array([values(np.full(len(neurons), t)) > 0 for t in grid])
    changes = signs[1:] != signs[:-1]
    first = changes.argmax(axis=0)
    low, high = grid[first], grid[first + 1]
    below = signs[first, np.arange(len(neurons))]
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        same = (values(middle) > 0) == below
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    points = start + low[:, None] * (stop - start)
    points[~changes.any(axis=0)] = np.nan
    return points


def points_beside(points: FloatArray, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Move each point by a random step, its size spread evenly over many orders of magnitude."""
    steps = rng.standard_normal(points.shape)
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    sizes = np.exp(rng.uniform(np.log(NEAREST_BESIDE), np.log(FARTHEST_BESIDE), (len(points), 1)))
    return np.clip(points + sizes * np.linalg.norm(points, axis=1, keepdims=True) * steps, domain.low, domain.high)


def far_along_creases(network: ReLUNetwork, count: int, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Points (n, d) far out along the hyperplanes of the first layer, a little beside them; none if it has none.

    A network whose neurons are really parts of deeper ones is wrong there, long before random points show it. In a
    bounded domain they are all over it.
    """
    if not count:
        return np.empty((0, network.dim))
    normals, offsets = network.hyperplanes()
    there = np.flatnonzero(np.isfinite(normals[:, 0]))
    which = there[rng.permutation(np.arange(count) % len(there))] if len(there) else there
    points = domain.sample(rng, len(which), network.dim, FAR_SCALE)
    sizes = np.linalg.norm(points - points.mean(axis=0), axis=1, keepdims=True) if len(points) else points[:, :1]
    points = points - ((points * normals[which]).sum(axis=1) + offsets[which])[:, None] * normals[which]
    return np.clip(points + FAR_BESIDE * sizes * rng.standard_normal(points.shape), domain.low, domain.high)


BEND_PLACES = 6  # on the crease of each neuron
ENOUGH_BENDS = 2  # of them: elsewhere a neuron of a deeper layer may hide it
BEND_STEP = 1e-5  # across the crease, of the size of the point: other creases are hardly ever as near by chance
BEND_STEP_IN_NOISE = 1e4  # of the answers' deviation: the step is so much longer than noise asks for
LONGEST_BEND_STEP = 4e-3  # longer ones meet other creases: where noise asks for them, nothing can be confirmed
BEND_TIMES_BESIDE = 2.0  # as much as beside it has a target to bend on a crease
STEPS_BESIDE = 5.0  # steps away, where nothing may bend
BEND_NOISE_FACTOR = 8.0  # a second difference above this many standard deviations is no noise
SECOND_DIFFERENCE = np.array([1.0, -2.0, 1.0])


@dataclass(frozen=True)
class Bends:
    """Neurons of the first layer, and how many of them lie where the target bends. weights: of those, biases too."""

    neurons: int
    confirmed: int
    weights: int


def look_for_bends(
    oracle: Counting, network: ReLUNetwork, rng: np.random.Generator, *, noise: Noise, spread: float
) -> Bends:
    """Ask on the crease of every neuron of the first layer, and beside it. Cost: at most 36 rows a neuron.

    None is confirmed where answers are too noisy for a step that meets no other crease.
    """
    width = network.widths[1] if network.depth > 1 else 0
    step = max(BEND_STEP, BEND_STEP_IN_NOISE * noise.at(spread) / spread)
    if step > LONGEST_BEND_STEP:
        return Bends(width, 0, 0)
    points, owners = _first_layer_points(oracle, network, rng)
    bending = _target_bends(oracle, points, network.hyperplanes()[0][owners], step, noise)
    confirmed = int((np.bincount(owners[bending], minlength=width) >= ENOUGH_BENDS).sum())
    return Bends(width, confirmed, confirmed * (network.dim + 1))


def _first_layer_points(
    oracle: Counting, network: ReLUNetwork, rng: np.random.Generator
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Points (n, d) on creases of the first layer, and the neuron each is of."""
    found = [crease_points(network, oracle.facts.domain, rng) for _ in range(BEND_PLACES)]
    points = np.concatenate([each.points for each in found])
    neurons = np.concatenate([each.neurons for each in found])
    first = neurons[:, 0] == 0
    return points[first], neurons[first, 1]


def _target_bends(
    oracle: Counting, points: FloatArray, normals: FloatArray, step: float, noise: Noise
) -> NDArray[np.bool_]:
    """Whether the target bends at each point (n,), and not beside it."""
    sizes = np.linalg.norm(points, axis=1, keepdims=True)
    places = np.array([-1.0, 0.0, 1.0, STEPS_BESIDE - 1, STEPS_BESIDE, STEPS_BESIDE + 1])
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
    floor = (
        BEND_NOISE_FACTOR
        * np.linalg.norm(SECOND_DIFFERENCE)
        * np.hypot(noise.absolute, noise.relative * np.abs(answers))
    )
    bending[inside] = ((on > floor.max(axis=0)) & (on > BEND_TIMES_BESIDE * beside)).any(axis=1)
    return bending


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
    behind = RawDigits.of(np.concatenate(told), link_of(oracle), ratios=oracle.facts.reference) if len(told) else None
    errors, lost = np.abs(answers - predicted) / unit, lost_behind(answers, oracle, behind)
    return ComparedAnswers(answers, unit, errors, groups, [name for name, _ in named], lost)


def lost_behind(values: FloatArray, oracle: Counting, behind: RawDigits | None) -> FloatArray:
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
    behind = RawDigits.of(told, link_of(oracle), ratios=oracle.facts.reference) if len(told) else None
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


def _has_full_digits(behind: RawDigits, tol: float) -> bool:
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
