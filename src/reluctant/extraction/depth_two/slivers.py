"""Two neurons that are nearly parallel differ only between their creases, in a sliver.

Outside of it they are seen together, and their sum is known as well as anything. Inside, steps along coordinates
are short and few digits are left of each. But along the sliver there is room: answers at points spread
through it give the crease of one neuron exactly, and that of the other follows from the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.extraction.depth_two.main_pass import BaseGradients
from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting

__all__ = ["check_digits", "close_pairs", "refine_slivers"]

CLEAR = 8.0  # deviations of a crease's place that a point keeps from it


def refine_slivers(
    oracle: Counting,
    network: ReLUNetwork,
    errors: FloatArray,
    pairs: list[tuple[int, int]],
    measured: BaseGradients,
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> tuple[ReLUNetwork, FloatArray]:
    """The network with its nearly parallel pairs told apart. Cost: two or three times 1.25 d rows a pair."""
    errors = errors.copy()
    for first, second in pairs:
        between = np.flatnonzero(measured.base.active[:, first] != measured.base.active[:, second])
        if not len(between):
            continue
        sliver = _Sliver(first, second, measured.points[between[0]], float(errors[first]))
        with oracle.stage("slivers"):
            network, error = _refined(oracle.query, network, sliver, noise, rng)
        errors[[first, second]] = error
    return network, errors


def check_digits(network: ReLUNetwork, errors: FloatArray, largest: float) -> None:
    """Raise StageFailed if some neuron is known with too few digits to be verified by a few points.

    largest: error of a weight that is allowed, of the typical length of all neurons' weights.
    """
    worst = float((errors / np.median(np.linalg.norm(network.weights[0], axis=1))).max())
    if not worst < largest:
        raise StageFailed(
            "slivers", "neurons too much alike to be told apart", number=worst, limit=largest, partial=network
        )


@dataclass(frozen=True)
class _Sliver:
    """A pair of neurons, a point between their creases, and the error of a weight of the first."""

    first: int
    second: int
    point: FloatArray
    error: float

    def length(self, network: ReLUNetwork) -> float:
        """Of the first neuron's weights."""
        return float(np.linalg.norm(network.weights[0][self.first]))


def close_pairs(network: ReLUNetwork, errors: FloatArray) -> list[tuple[int, int]]:
    """Neurons with few digits that are each other's nearest in direction."""
    imprecise = 100.0  # errors of a neuron's weights, in median ones, that no neuron has by bad luck
    parallel = 0.999  # cosine between two neurons that are one except in a sliver
    few = np.flatnonzero(errors > imprecise * np.median(errors))
    if len(few) < 2:
        return []
    normals = network.hyperplanes()[0][few]
    cosine = normals @ normals.T
    np.fill_diagonal(cosine, 0)
    nearest = cosine.argmax(axis=1)
    each = np.arange(len(few))
    pairs = each[(nearest[nearest] == each) & (each < nearest) & (cosine.max(axis=1) > parallel)]
    return [(int(few[i]), int(few[nearest[i]])) for i in pairs]


def _refined(
    ask: Callable[[FloatArray], FloatArray],
    network: ReLUNetwork,
    sliver: _Sliver,
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> tuple[ReLUNetwork, float]:
    """Fit the first neuron's crease at points spread wider and wider."""
    share, extra = 1.25, 10  # answers for each unknown, and more
    shorter = 8.0
    most_rounds = 8
    amplified = 8.0  # noise of a fit to few more answers than unknowns, over theirs
    unexplained = 1e-2  # of the depth of the sliver: less is the error of the other neurons
    unseen = 1e-10  # of the answers' deviation: a sliver that shallow may be anything
    error, most = sliver.error, float(np.sqrt(network.dim))
    count = int(share * (network.dim + 1)) + extra
    reach = _reach(network, sliver, error, most)
    for _ in range(most_rounds):
        rows, half = _points_between(network, sliver, reach, error, count, rng)
        if len(rows) < count:
            reach /= shorter
            continue
        answers = ask(rows)
        moved = _moved(network, sliver, *_fit(network, sliver, rows, half, answers, reach))
        left, depth = np.abs(answers - moved(rows)).max(), np.median(np.abs(half)) * sliver.length(network)
        sd = float(noise.at(np.linalg.norm(rows, axis=1)).max())
        if left > max(
            unexplained * depth, DOUBLE.in_line * sd, unseen * answers.std()
        ):  # a point fell out of the sliver
            reach /= shorter
            continue
        network, error = moved, amplified * max(left, sd) / reach
        if reach >= most:
            return network, error
        reach = _reach(network, sliver, error, most)
    raise StageFailed("slivers", "neurons too much alike to be told apart", number=reach, limit=most, partial=network)


def _reach(network: ReLUNetwork, sliver: _Sliver, error: float, most: float) -> float:
    """How far from its point the sliver can be followed."""
    _, half = _across(network, sliver, sliver.point[None])
    return min(most, float(np.abs(half[0])) * sliver.length(network) / (CLEAR * error))


def _across(network: ReLUNetwork, sliver: _Sliver, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distance from each row to the middle of the sliver, and half its width there, < 0 where the second is on."""
    normals, offsets = network.hyperplanes()
    pair = [sliver.first, sliver.second]
    distance = rows @ normals[pair].T + offsets[pair]
    return distance.mean(axis=1), (distance[:, 0] - distance[:, 1]) / 2


def _points_between(
    network: ReLUNetwork, sliver: _Sliver, reach: float, error: float, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Points in the middle of the sliver within reach of its point, and half its width there."""
    candidates = 4  # points drawn for each one used
    normal = network.hyperplanes()[0][sliver.first]
    steps = rng.standard_normal((candidates * count, network.dim)) / np.sqrt(network.dim)
    rows = sliver.point + reach * steps
    rows = rows - _across(network, sliver, rows)[0][:, None] * normal
    half = _across(network, sliver, rows)[1]
    clear = np.flatnonzero(np.abs(half) > CLEAR / 2 * error * reach / sliver.length(network))[:count]
    return rows[clear], half[clear]


def _fit(
    network: ReLUNetwork, sliver: _Sliver, rows: FloatArray, half: FloatArray, answers: FloatArray, reach: float
) -> tuple[FloatArray, float]:
    """Change of the first neuron's weights and bias that explains the answers.

    Where the first neuron alone is on such a change adds to the answers, where the second is it takes away.
    """
    rank = 1e-5  # across the sliver nothing is learnt
    off = (answers - network(rows)) @ network.weights[1][:, sliver.first]  # outputs are of norm one
    design = np.sign(half)[:, None] * np.column_stack([(rows - sliver.point) / reach, np.ones(len(rows))])
    change = np.linalg.lstsq(design, off, rcond=rank)[0]
    weights = change[:-1] / reach
    return weights, float(change[-1] - weights @ sliver.point)


def _moved(network: ReLUNetwork, sliver: _Sliver, weights: FloatArray, bias: float) -> ReLUNetwork:
    """Change the first neuron, and the second so that together they stay what they are."""
    (w, a), (b, c) = ([part.copy() for part in parts] for parts in (network.weights, network.biases))
    first, second = sliver.first, sliver.second
    share = a[:, first] @ a[:, second]
    w[first], b[first] = w[first] + weights, b[first] + bias
    w[second], b[second] = w[second] - share * weights, b[second] - share * bias
    return ReLUNetwork([w, a], [b, c], network.skip)
