"""Verification for few digits: held-out residuals against the measured noise.

A network recovered from few digits is right if it leaves nothing but noise: at several scales, on the network's own
creases and across them, in the mean and at every single point. A missing neuron, two merged into one or one the wrong
way round leave more.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from reluctant.domains import Domain
from reluctant.messages import Diagnosis
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles.ledger import Counting
from reluctant.verification.points import PointGroup, crease_points, random_group

POINTS_BY_SCALE = {0.1: 64, 1.0: 128, 10.0: 64}  # at each scale
# Creases that far out bend nothing at the scale of use, and may have been missed.
FARTHEST_SCALE, FAR_POINTS = 100.0, 64
# Two creases merged into one are wrong in between alone. The error grows with their distance, and from LEAST on, that
# of the noise over the bend, a ladder of steps across the crease meets it where it shows.
LEAST_STEP, LONGER_STEP, LADDER_STEPS = 60.0, 4.0, 4
LARGEST_DEVIATION = 15.0  # of one answer, in deviations of its noise


@dataclass(frozen=True)
class Precision:
    """Noise of each output (m,): where it is least, and by how much it grows with the distance from a centre."""

    most_ratio: ClassVar[float] = 3.0  # residual over noise, root mean square; noise differs between places

    near: FloatArray
    growth: FloatArray
    centre: FloatArray | float = 0.0

    @property
    def rounding(self) -> float:
        """Size of the roundings inside the target, of the sums it adds up."""
        return DOUBLE.rounding

    def at(self, rows: FloatArray) -> FloatArray:
        """Standard deviations (n, m) of answers there, for a comparison: rather too large."""
        return np.hypot(self.near, self._grown(rows))

    def least_at(self, rows: FloatArray) -> FloatArray:
        """Standard deviations (n, m), rather too small."""
        return np.maximum(self.near, self._grown(rows))

    def _grown(self, rows: FloatArray) -> FloatArray:
        return np.asarray(self.growth * np.linalg.norm(rows - self.centre, axis=1)[:, None])


@dataclass(frozen=True)
class CarriedPrecision(Precision):
    """Noise that roundings inside a network carry to its outputs, beside noise by distance.

    factor: of the roundings, one for each output or for all.
    """

    most_ratio: ClassVar[float] = 2.0

    network: ReLUNetwork | None = None
    factor: FloatArray | float = 0.0

    @property
    def rounding(self) -> float:
        """Size of the roundings inside the target, of the sums it adds up."""
        return max(float(np.max(self.factor)), DOUBLE.rounding)

    def at(self, rows: FloatArray) -> FloatArray:
        """Standard deviations (n, m) of answers there."""
        return np.hypot(super().at(rows), self._carried(rows))

    def least_at(self, rows: FloatArray) -> FloatArray:
        """The smallest deviations (n, m) of answers there: all of them, for the carried part is no overestimate."""
        return self.at(rows)

    def _carried(self, rows: FloatArray) -> FloatArray:
        quietest = 0.05  # of the median: outputs that are 0 have no noise, and their neighbours have
        assert self.network is not None
        sizes = self.factor * rounding_sizes(self.network, rows)
        return np.maximum(sizes, quietest * np.median(sizes, axis=0))


def rounding_sizes(network: ReLUNetwork, rows: FloatArray) -> FloatArray:
    """How large roundings of every sum and product are at the outputs (n, m), up to a factor.

    Variances of independent relative errors are carried from layer to layer; those of a neuron that is off end there,
    unless it is so little off that roundings turn it on.
    """
    turned_on = 2.0**-20  # of the size of roundings: eight of float32
    values, variances = {0: rows}, {0: np.einsum("nd,nd->n", rows, rows)[:, None] / network.dim}
    for k, b in enumerate(network.biases, 1):
        incoming = network.incoming(k)
        sums = np.add.reduce([values[s] @ w.T for s, w in incoming.items()]) + b
        inside = np.add.reduce(
            [
                variances[s] * (w**2).sum(axis=1) if s == 0 else (variances[s] + values[s] ** 2) @ (w**2).T
                for s, w in incoming.items()
            ]
        )
        variances[k], values[k] = inside + sums**2, sums
        if k < network.depth:
            variances[k] = np.where(sums > -turned_on * np.sqrt(variances[k]), variances[k], 0.0)
            values[k] = np.maximum(sums, 0.0)
    return np.asarray(np.sqrt(variances[network.depth]))


@dataclass(frozen=True)
class NoiseRatio:
    """The residual of one group of points, in deviations of the noise: root mean square and largest."""

    name: str
    points: int
    rms: float
    largest: float


@dataclass(frozen=True)
class PrecisionCheck:
    """Comparison of a network with a target of few digits.

    noise: standard deviation of an answer at the scale of use. residual: root mean square of what held-out answers
    there leave. error: what the network's own error is at most, with 95 % confidence. All relative to the output's
    standard deviation. cost: answers asked in all, in units of the network's parameters; exact extraction takes
    about one.
    """

    ok: bool
    noise: float
    residual: float
    error: float
    groups: tuple[NoiseRatio, ...]
    cost: float

    @property
    def ratio(self) -> float:
        """Largest root mean square of a group, in units of the noise."""
        return max(group.rms for group in self.groups)

    @property
    def diagnosis(self) -> Diagnosis:
        """How it ended."""
        names = ("residual", "noise", "ratio", "error", "cost")
        return Diagnosis(
            "noise-explains" if self.ok else "noise-exceeded", {name: getattr(self, name) for name in names}
        )

    def __str__(self) -> str:
        return str(self.diagnosis)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"ratio": self.ratio}


def examine_precision(
    oracle: Counting, network: ReLUNetwork, precision: Precision, rng: np.random.Generator, spent: int
) -> PrecisionCheck:
    """Ask fresh rows and compare their residuals with the noise. Cost: 320 rows and 9 a neuron."""
    domain = oracle.facts.domain
    sizes = [*POINTS_BY_SCALE.items()] + ([(FARTHEST_SCALE, FAR_POINTS)] if domain.is_space else [])
    groups = [random_group(scale, domain.sample(rng, count, oracle.dim, scale)) for scale, count in sizes]
    on = crease_points(network, domain, rng).points
    if len(on):
        ladder = _across_creases if network.depth == 2 else _across_deep_creases
        across = ladder(network, precision, domain, rng)
        groups += [PointGroup("on creases", on), PointGroup("across creases", across)]
    rows = np.concatenate([group.rows for group in groups])
    rows = domain.in_single(rows)  # a float32 target would round them, and a network of float64 would see other ones
    with oracle.stage("precision", expected=len(rows)):
        answers = oracle.query(rows)
    left = answers - network(rows)
    ends = np.cumsum([len(group.rows) for group in groups])
    ratios = tuple(
        NoiseRatio(group.name, len(part), float(np.sqrt(np.mean(part**2))), float(np.abs(part).max()))
        for group, part in zip(groups, np.split(left / precision.at(rows), ends[:-1]), strict=True)
    )
    ok = all(ratio.rms <= precision.most_ratio and ratio.largest <= LARGEST_DEVIATION for ratio in ratios)
    use = list(POINTS_BY_SCALE).index(1.0)
    at_use = slice(ends[use - 1], ends[use])
    errors = _errors(left[at_use], answers[at_use], precision.least_at(rows[at_use]))
    cost = (spent + len(rows)) * oracle.outputs / network.parameters
    return PrecisionCheck(ok, *errors, ratios, cost)


def rows_held_out(neurons: int) -> int:
    """Rows that this check asks of a target in all of space."""
    return sum(POINTS_BY_SCALE.values()) + FAR_POINTS + (1 + 2 * LADDER_STEPS) * neurons


def _across_creases(network: ReLUNetwork, precision: Precision, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """A ladder of points to both sides of every neuron's crease, near the scale of use."""
    normals, offsets = network.hyperplanes()
    bends = np.linalg.norm(network.weights[0], axis=1) * np.abs(network.weights[1])  # (m, h)
    with np.errstate(invalid="ignore"):
        feet = domain.sample(rng, len(offsets), network.dim)
        feet = feet - ((feet * normals).sum(axis=1) + offsets)[:, None] * normals
    inside = ((feet >= domain.low) & (feet <= domain.high)).all(axis=1) & bends.any(axis=0)
    feet, normals, bends = feet[inside], normals[inside], bends[:, inside].T
    return _ladder(feet, normals, bends / precision.at(feet), domain, rng)


def _across_deep_creases(
    network: ReLUNetwork, precision: Precision, domain: Domain, rng: np.random.Generator
) -> FloatArray:
    """Points across creases of every hidden layer: creases bend, so a step follows the normal at its crease point."""
    on = crease_points(network, domain, rng)
    each, patterns = np.arange(len(on.points)), network.patterns(on.points)
    normals, bends = np.zeros_like(on.points), np.zeros((len(each), network.outputs))
    into = np.broadcast_to(np.eye(network.dim), (len(each), network.dim, network.dim))
    for layer, active in enumerate(patterns):
        into = network.weights[layer] @ into  # (n, width, d): slopes of this layer's values
        out = np.broadcast_to(network.weights[-1], (len(each), *network.weights[-1].shape))
        for above in range(network.depth - 2, layer, -1):
            out = np.where(patterns[above][:, None], out, 0.0) @ network.weights[above]
        here = np.flatnonzero(on.neurons[:, 0] == layer)
        neurons = on.neurons[here, 1]
        normals[here], bends[here] = into[here, neurons], out[here, :, neurons]
        into = np.where(active[:, :, None], into, 0.0)
    lengths = np.linalg.norm(normals, axis=1)
    bent = (lengths > 0) & bends.any(axis=1)
    feet, normals = on.points[bent], normals[bent] / lengths[bent, None]
    return _ladder(feet, normals, np.abs(bends[bent]) * lengths[bent, None] / precision.at(feet), domain, rng)


def _ladder(
    feet: FloatArray, normals: FloatArray, bends: FloatArray, domain: Domain, rng: np.random.Generator
) -> FloatArray:
    """Steps along unit normals (n, d), to both sides of feet (n, d); bends (n, m) in deviations of an answer."""
    least, longest = LEAST_STEP / bends.max(axis=1, initial=0.0), np.sqrt(feet.shape[1])
    steps = np.outer(least, LONGER_STEP ** np.arange(LADDER_STEPS)) * rng.uniform(1, LONGER_STEP, (len(feet), 1))
    steps = np.minimum(steps, longest)
    both = np.concatenate([steps, -steps], axis=1)[:, :, None] * normals[:, None]
    return domain.nearest((feet[:, None] + both).reshape(-1, feet.shape[1]))


def _errors(left: FloatArray, answers: FloatArray, sd: FloatArray) -> tuple[float, float, float]:
    """Noise, residual and the network's error at most: the residual's square is the sum of the two others'."""
    unit = answers.std(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    noise, square = float(np.sqrt(np.mean((sd / unit) ** 2))), float(np.mean((left / unit) ** 2))
    uncertain = 2 * np.sqrt(2 / left.size) * square
    return noise, float(np.sqrt(square)), float(np.sqrt(max(square - noise**2, 0) + uncertain))
