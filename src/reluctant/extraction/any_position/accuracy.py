"""Models and their errors: a network under the Gaussian, sampled near its creases, and the risk of a missed bump.

Plain Gaussian samples are blind: a wrong neuron in a cluster errs within 1e-9 of a crease, where none of them is.
So some samples lie near the creases of the network, at distances spread over twelve orders of magnitude, and every
sample is weighted by the Gaussian over the mixture it was drawn from. A few of them tell around which creases the
error is; those that count are drawn mostly there. A bump of width w, one unit from the origin, holds the part
φ(1)·w of the Gaussian: it is seen if one random point falls into it, so not missing it costs about 1/w points, and
no method can do with less.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from reluctant.extraction.any_position.crease_planes import CreasePlanes, draw_sample, fit_outputs, prune
from reluctant.extraction.orientation import orient
from reluctant.geometry import DistanceNoise
from reluctant.geometry.lines import IntArray, answer_roundings
from reluctant.messages import Diagnosis, Notes
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray, unit_roundoff
from reluctant.oracles import Counting

BUMP_CONFIDENCE = 0.999
NEAR_BUMP = 1.0  # distance from the origin, in deviations of an input
FAR_BUMP = 3.0  # distance at which the width is stated too
TRIANGLE_SQUARE = 3.0  # the mean square of a triangle of height 1 is one over this


def gaussian_density(distance: float) -> float:
    """Of the Gaussian along a normal, at this distance from the origin."""
    return float(np.exp(-(distance**2) / 2) / np.sqrt(2 * np.pi))


NEAR_DENSITY = gaussian_density(NEAR_BUMP)


@dataclass(frozen=True)
class BumpRisk:
    """What could have been missed: bumps narrower than `width`, or farther out than distance 1.

    added: what a single bump of this width would add to the error, if it were as steep as the steepest neuron found;
    nobody measured how steep it is. None without neurons.
    """

    width: float
    confidence: float
    points: int
    added: float | None

    @property
    def notes(self) -> Notes:
        """The same as a diagnosis, with the width of a bump that shows farther out."""
        far_width = self.width * NEAR_DENSITY / gaussian_density(FAR_BUMP)
        distances = {"near": NEAR_BUMP, "far": FAR_BUMP, "far_width": far_width}
        return Notes((Diagnosis("missed-bump", asdict(self) | distances),))

    def __str__(self) -> str:
        return str(self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def points_to_see(width: float) -> int:
    """Random points that meet a bump of this width with the stated confidence: about 29 / width."""
    return int(np.ceil(np.log(1 / (1 - BUMP_CONFIDENCE)) / (NEAR_DENSITY * width)))


def remaining_risk(points: int, steepness: float | None = None) -> BumpRisk:
    """What could hide from so many points that all agree with the network.

    steepness: of its steepest neuron, over the standard deviation of the output; None if there is none.
    """
    width = float(np.log(1 / (1 - BUMP_CONFIDENCE)) / (NEAR_DENSITY * points))
    if steepness is None:
        return BumpRisk(width, BUMP_CONFIDENCE, points, None)
    height = steepness * width / 2
    return BumpRisk(width, BUMP_CONFIDENCE, points, NEAR_DENSITY * width * height**2 / TRIANGLE_SQUARE)


NEAREST_CREASE, CREASE_DECADES = 1e-12, 12  # the smallest distance from a crease, and decades from there
CONFIDENCE = 0.95
DEVIATIONS = 1.96  # of a Gaussian, to either side, for that confidence
UNMET_TERMS = 3.0  # with that confidence one of n samples meets a part of 3/n; it may hold terms like the largest
KNOWN_SHARE = 0.5  # of the samples that are drawn where errors were met
CONSTANT_ROUNDINGS = 64.0  # of the largest answer: an output that varies by less is constant


@dataclass(frozen=True)
class Accuracy:
    """Mean square error under the standard Gaussian over the variance of the target, with a confidence interval.

    Of several outputs it is that of the worst, each relative to its own variance.
    """

    error: float
    low: float
    high: float
    confidence: float
    points: int
    variance: float  # of that output

    def __str__(self) -> str:
        return str(Diagnosis("learned-accuracy", asdict(self)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class CreaseSamples:
    """Rows and answers: Gaussian ones, then `strips` of them drawn by `near_creases` with these chances."""

    rows: FloatArray
    answers: FloatArray
    strips: int
    chances: FloatArray  # (h, decades)


def even_chances(planes: CreasePlanes) -> FloatArray:
    """The same for every crease and decade (h, decades)."""
    return np.full((len(planes), CREASE_DECADES), 1 / max(CREASE_DECADES * len(planes), 1))


def near_creases(planes: CreasePlanes, n: int, chances: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Gaussian points moved straight to the neighbourhood of a crease each, spread evenly over what `chances` says."""
    if not len(planes):
        return np.empty((0, planes.normals.shape[1]))
    edges = np.append(0.0, np.cumsum(chances))
    places = edges[-1] * (np.arange(n) + rng.random(n)) / n
    cell = np.minimum(np.searchsorted(edges, places, side="right") - 1, chances.size - 1)
    crease, decade = np.divmod(cell, CREASE_DECADES)
    along = decade + np.clip((places - edges[cell]) / chances.ravel()[cell], 0, 1)
    sides = rng.choice([-1.0, 1.0], n) * NEAREST_CREASE * 10.0**along
    rows, normals = rng.standard_normal((n, planes.normals.shape[1])), planes.normals[crease]
    move = sides - (rows * normals).sum(axis=1) - planes.offsets[crease]
    return np.asarray(rows + move[:, None] * normals)


def likely_chances(network: ReLUNetwork, samples: CreaseSamples, planes: CreasePlanes) -> FloatArray:
    """Chances that favour where errors were met, and the decades beside; the rest is left for where they were not."""
    even = even_chances(planes)
    near = samples.rows[len(samples.rows) - samples.strips :]
    terms = _error_terms(network, samples, planes)[0][len(samples.rows) - samples.strips :].max(axis=1, initial=0)
    seen, cell = np.zeros(even.shape), _decades(np.abs(planes.distance(near)))
    for crease in range(len(planes)):
        np.add.at(seen[crease], cell[:, crease], terms)
    beside = np.pad(seen, ((0, 0), (1, 1)), mode="edge")
    seen = beside[:, :-2] + 2 * beside[:, 1:-1] + beside[:, 2:]
    total = float(seen.sum())
    return even if total <= 0 else np.asarray((1 - KNOWN_SHARE) * even + KNOWN_SHARE * seen / total)


def measure_accuracy(network: ReLUNetwork, samples: CreaseSamples, planes: CreasePlanes) -> Accuracy:
    """Accuracy of a network with these hyperplanes, the worst output's. No queries."""
    terms, variance = _error_terms(network, samples, planes)
    error, n = terms.mean(axis=0), len(terms)
    sd = np.hypot(terms.std(axis=0), error * _kurtosis(samples.answers, variance)) / np.sqrt(n)
    # Errors hide in few samples: those that were not met may be like the largest that was.
    high = error + DEVIATIONS * sd + UNMET_TERMS * terms.max(axis=0) / n
    k = int(np.argmax(high))
    low = max(0.0, float(error[k] - DEVIATIONS * sd[k]))
    return Accuracy(float(error[k]), low, float(high[k]), CONFIDENCE, n, float(variance[k]))


def _kurtosis(answers: FloatArray, variance: FloatArray) -> FloatArray:
    """Standard deviation of one answer's square deviation, in variances: the unit of the error is measured too."""
    square = (answers - answers.mean(axis=0)) ** 2 / variance
    return np.asarray(square.std(axis=0))


def output_units(answers: FloatArray, weight: FloatArray) -> FloatArray:
    """Variance of every output under the Gaussian; of one that is constant, the square of its answers."""
    share = weight[:, None] / weight.sum()
    centre = (share * answers).sum(axis=0)
    variance = (share * (answers - centre) ** 2).sum(axis=0)
    size = np.abs(answers).max(axis=0)
    constant = variance <= (CONSTANT_ROUNDINGS * unit_roundoff(np.float64) * size) ** 2
    return np.where(constant, np.where(size > 0, size**2, 1.0), variance)


def _error_terms(network: ReLUNetwork, samples: CreaseSamples, planes: CreasePlanes) -> tuple[FloatArray, FloatArray]:
    """What every sample adds to every output's error (n, m), and the variances that are their units."""
    weight = _importance(samples, planes)
    units = output_units(samples.answers, weight)
    return weight[:, None] * (samples.answers - network(samples.rows)) ** 2 / units, units


def _decades(size: FloatArray) -> IntArray:
    """Which decade distances are in, the nearest or farthest if in none."""
    return np.clip(np.log10(np.maximum(size, NEAREST_CREASE) / NEAREST_CREASE), 0, CREASE_DECADES - 1).astype(np.intp)


def _importance(samples: CreaseSamples, planes: CreasePlanes) -> FloatArray:
    """Density of the Gaussian over that of the mixture, at each row."""
    if not samples.strips:
        return np.ones(len(samples.rows))
    share = samples.strips / len(samples.rows)
    distance = planes.distance(samples.rows)
    along = distance - planes.offsets  # coordinate along each normal, a standard Gaussian one
    size = np.abs(distance)
    inside = (size > NEAREST_CREASE) & (size < NEAREST_CREASE * 10.0**CREASE_DECADES)
    chance = samples.chances[np.arange(len(planes)), _decades(size)]
    drawn = np.where(inside, chance / (2 * np.maximum(size, NEAREST_CREASE) * np.log(10)), 0.0)
    gaussian = np.exp(-(along**2) / 2) / np.sqrt(2 * np.pi)
    ratio = np.full(size.shape, np.inf)  # where the Gaussian's density is too small for a number
    np.divide(drawn, gaussian, out=ratio, where=gaussian > 0)
    return np.asarray(1 / (1 - share + share * np.where(drawn > 0, ratio, 0.0).sum(axis=1)))


IN_STRIPS, MORE_IN_STRIPS = 256, 768  # points near creases: to see where errors are, and to measure them
FEW_POINTS, NEARLY_WORST = 0.2, 1e-3  # of the points; of the largest deviation
FAR_BELOW = 1e3  # times smaller than eps need not be known better
FIRST_CHECK_TIMES = 20.0  # as many times larger the error may be than a first check says: it meets few cells
BLOCK_ROWS = 65_536  # rows asked at a time


@dataclass(frozen=True)
class DrawnPoints:
    """Gaussian rows and their answers."""

    rows: FloatArray
    answers: FloatArray


@dataclass(frozen=True)
class NetworkCheck:
    """A network beside answers: its accuracy, and the points it does not explain, the worst first."""

    accuracy: Accuracy
    samples: CreaseSamples
    unexplained: IntArray
    largest: float  # deviation, over the standard deviation of the output
    typical: float  # deviation
    standing_out: int  # points that err nearly as much as the worst one
    narrow: int  # of the Gaussian points those that do, if they are few and unexplained

    @property
    def rows(self) -> FloatArray:
        """Everything that was asked."""
        return self.samples.rows

    @property
    def mostly_right(self) -> bool:
        """True if so few points stand out that the missing part is narrow."""
        return self.standing_out < FEW_POINTS * len(self.rows)


def draw_points(oracle: Counting, n: int, rng: np.random.Generator, through: FloatArray | None = None) -> DrawnPoints:
    """Ask n Gaussian points, and those given (k, d) besides."""
    rows = rng.standard_normal((n, oracle.dim))
    rows = rows if through is None else np.concatenate([rows, through])
    with oracle.stage("search", expected=len(rows)):
        answers = [oracle.query(rows[k : k + BLOCK_ROWS]) for k in range(0, len(rows), BLOCK_ROWS)]
    return DrawnPoints(rows, np.concatenate(answers))


def check_network(
    oracle: Counting, network: ReLUNetwork, drawn: DrawnPoints, noise: DistanceNoise, rng: np.random.Generator
) -> NetworkCheck:
    """Hold a network against what was drawn and against new points near its creases. Cost: 256 rows."""
    return _checked_with(oracle, network, drawn, noise, rng, IN_STRIPS, even_chances(CreasePlanes.of(network)))


def check_closely(
    oracle: Counting, network: ReLUNetwork, known: NetworkCheck, drawn: DrawnPoints, noise: DistanceNoise,
    rng: np.random.Generator, eps: float,
) -> NetworkCheck:  # fmt: skip
    """Measure the error anew, mostly where a first check has met it.

    Cost: 768 rows; none if all errors are noise, or far below eps: then the interval of the first check is widened.
    """
    if not len(known.unexplained):
        return _no_better_than_noise(known, noise)
    if FAR_BELOW * known.accuracy.high <= eps:
        return _with_high(known, FIRST_CHECK_TIMES * known.accuracy.high)
    chances = likely_chances(network, known.samples, CreasePlanes.of(network))
    return _checked_with(oracle, network, drawn, noise, rng, MORE_IN_STRIPS, chances)


def _checked_with(
    oracle: Counting, network: ReLUNetwork, drawn: DrawnPoints, noise: DistanceNoise, rng: np.random.Generator,
    strips: int, chances: FloatArray,
) -> NetworkCheck:  # fmt: skip
    planes = CreasePlanes.of(network)
    near = near_creases(planes, strips, chances, rng)
    with oracle.stage("accuracy", expected=len(near)):
        answers = np.concatenate([drawn.answers, oracle.query(near)]) if len(near) else drawn.answers
    samples = CreaseSamples(np.concatenate([drawn.rows, near]), answers, len(near), chances)
    return _compared_to(network, samples, measure_accuracy(network, samples, planes), noise, len(drawn.rows))


def _compared_to(
    network: ReLUNetwork, samples: CreaseSamples, accuracy: Accuracy, noise: DistanceNoise, gaussian: int
) -> NetworkCheck:
    """Where a network is off, of the samples the first of which are Gaussian."""
    each = np.abs(samples.answers - network(samples.rows))
    units = np.sqrt(output_units(samples.answers[:gaussian], np.ones(gaussian)))
    off = each.max(axis=1)
    sd = np.hypot(noise.at(np.linalg.norm(samples.rows, axis=1)), answer_roundings(np.abs(samples.answers).max(axis=1)))
    worst = np.argsort(-off / sd)
    unexplained = worst[off[worst] > DOUBLE.in_line * sd[worst]]
    standing_out = int((off > NEARLY_WORST * off.max()).sum())
    plain = off[:gaussian]
    far = plain > NEARLY_WORST * plain.max()  # few, or the error is everywhere, whether noise explains it or not
    narrow = int((far & (plain > DOUBLE.in_line * sd[:gaussian])).sum()) if far.sum() < FEW_POINTS * gaussian else 0
    largest = float((each / units).max())
    return NetworkCheck(accuracy, samples, unexplained, largest, float(np.median(off)), standing_out, narrow)


def _no_better_than_noise(checked: NetworkCheck, noise: DistanceNoise) -> NetworkCheck:
    """Errors that all look like noise may all be as large as noise."""
    accuracy = checked.accuracy
    floor = (noise.near / DOUBLE.safety) ** 2 / accuracy.variance
    return _with_high(checked, max(accuracy.high, accuracy.error + floor))


def _with_high(checked: NetworkCheck, high: float) -> NetworkCheck:
    return replace(checked, accuracy=replace(checked.accuracy, high=high))


# ---- models

SAME_ERROR = 1e-2  # of the error: a network that differs by less, or by noise, is the same
TERM_ROUNDINGS = 4.0  # of the largest term that an answer is the sum of


@dataclass(frozen=True)
class Model:
    """A network, the hyperplanes it bends along, and its check."""

    network: ReLUNetwork
    planes: CreasePlanes
    checked: NetworkCheck

    def good_for(self, eps: float) -> bool:
        """True if the error is at most eps, at the upper end of its interval."""
        return self.checked.accuracy.high <= eps

    def better_than(self, other: Model | None) -> bool:
        """True if its error is the smaller one."""
        return other is None or self.checked.accuracy.error < other.checked.accuracy.error


def model_of(
    oracle: Counting, network: ReLUNetwork, drawn: DrawnPoints, noise: DistanceNoise, rng: np.random.Generator
) -> Model:
    """A network found elsewhere. Cost: 256 rows."""
    checked = check_network(oracle, network, drawn, noise, rng)
    return Model(network, CreasePlanes.of(network, checked.typical), checked)


def fitted_model(
    oracle: Counting, planes: CreasePlanes, drawn: DrawnPoints, noise: DistanceNoise, rng: np.random.Generator
) -> Model:
    """The best network with these hyperplanes, or those of them that are needed.

    Cost: 256 rows, 1.5 for each unknown, and 4 a hyperplane.
    """
    with oracle.stage("outputs"):
        sample = draw_sample(oracle.query, planes, noise, rng)
    planes = prune(planes, sample)
    network = fit_outputs(planes, sample)
    return Model(network, planes, check_network(oracle, network, drawn, noise, rng))


def oriented_network(network: ReLUNetwork, rows: FloatArray, allowed: float) -> ReLUNetwork:
    """The network without its skip term, if that changes answers to `rows` by no more than `allowed` and roundings.

    In a cluster every digit counts. A network without neurons is an affine one.
    """
    if network.skip is None or network.depth != 2:
        return network
    if not network.widths[1]:
        return ReLUNetwork([network.skip], [network.biases[1]])
    answers = network(rows)
    terms = network.preactivations(rows)[0] * np.abs(network.weights[1]).max(axis=0)
    allowed += TERM_ROUNDINGS * unit_roundoff(np.float64) * float(np.abs(terms).max(initial=0))
    for other in (ReLUNetwork(network.weights, network.biases), orient(network)):
        if np.abs(other(rows) - answers).max() <= allowed:
            return other
    return network


def oriented_model(
    oracle: Counting, model: Model, drawn: DrawnPoints, noise: DistanceNoise, rng: np.random.Generator
) -> Model:
    """The same, oriented if that can be had without loss, and checked at new points. Cost: 256 rows."""
    accuracy = model.checked.accuracy
    allowed = SAME_ERROR * float(np.sqrt(accuracy.error * accuracy.variance)) + noise.near
    network = oriented_network(model.network, model.checked.rows, allowed)
    return Model(network, model.planes, check_network(oracle, network, drawn, noise, rng))


def closely_checked(
    oracle: Counting, model: Model, drawn: DrawnPoints, noise: DistanceNoise, rng: np.random.Generator, eps: float
) -> Model:
    """The same, its error measured where it is, if it is close to eps. Cost: up to 768 rows."""
    return replace(model, checked=check_closely(oracle, model.network, model.checked, drawn, noise, rng, eps))
