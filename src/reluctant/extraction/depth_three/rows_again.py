"""Weak rows of the first layer, measured again where the whole network shows them best.

Of many random states of the other neurons the one is taken in which this neuron is seen over the longest steps,
with the same second-layer neurons active on both sides of its hyperplane: there the gradients differ by its row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise, Gradients, gradients
from reluctant.geometry.lines import IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

CHANGES, NEARBY = np.geomspace(0.5, 0.05, 12), 64  # of the values, in a search around the best; so many each time
ROW_AGREEMENT = 1e-6  # with the row that was known


@dataclass(frozen=True)
class TwoSidedPlaces:
    """Points on both sides of neurons' hyperplanes, steps of gradients there, and errors of rows to be expected."""

    neurons: IntArray
    inside: FloatArray  # (n, d)
    outside: FloatArray  # (n, d)
    steps: FloatArray  # (n,)
    errors: FloatArray  # (n,)

    def chosen(self, which: IntArray) -> TwoSidedPlaces:
        """Some of them."""
        return TwoSidedPlaces(
            self.neurons[which], self.inside[which], self.outside[which], self.steps[which], self.errors[which]
        )


def remeasure_rows(
    oracle: Counting,
    network: ReLUNetwork,
    errors: FloatArray,
    noise: DistanceNoise,
    rng: np.random.Generator,
    wanted: float,
) -> ReLUNetwork:
    """The network with better rows of the first layer, where errors (n,) are larger than wanted. Rows have norm one.

    Cost: 2 (d + 2) rows for each of these.
    """
    most_poor = 0.25  # of the neurons, the worst of them: it costs two gradients each
    worth_again = 0.5  # of the error there was: what a new place has to promise
    worst = np.argsort(-errors)[: int(np.ceil(most_poor * len(errors)))]
    poor = np.sort(worst[errors[worst] > wanted])
    if not len(poor) or network.depth != 3:
        return network
    places = best_places(network, poor, noise, rng)
    places = places.chosen(np.flatnonzero(places.errors < worth_again * errors[places.neurons]))
    if not len(places.neurons):
        return network
    with oracle.stage("rows again", expected=2 * len(places.neurons) * (oracle.dim + 2)):
        points, steps = np.concatenate([places.inside, places.outside]), np.tile(places.steps, 2)
        found = gradients(oracle.query, points, None, steps, noise, rng)
    return _with_rows(network, errors, places.neurons, found)


def _with_rows(network: ReLUNetwork, errors: FloatArray, neurons: IntArray, found: Gradients) -> ReLUNetwork:
    """The network with those rows that are better than before."""
    n = len(neurons)
    _, sizes, right = np.linalg.svd(found.slope[:n] - found.slope[n:], full_matrices=False)
    weights, rows = network.weights[0].copy(), right[:, 0]
    rows *= np.sign((rows * weights[neurons]).sum(axis=1))[:, None]
    new = np.hypot(found.shown_sd[:n], found.shown_sd[n:]) * np.sqrt(network.dim) / sizes[:, 0]
    better = found.good[:n] & found.good[n:] & (new < errors[neurons])
    off = float(np.linalg.norm((rows - weights[neurons])[better], axis=1).max(initial=0))
    if not off < ROW_AGREEMENT:
        raise StageFailed("rows again", "a row is not what it was", number=off, limit=ROW_AGREEMENT, partial=network)
    weights[neurons[better]] = rows[better]
    return ReLUNetwork([weights, *network.weights[1:]], network.biases)


def best_places(
    network: ReLUNetwork, neurons: IntArray, noise: DistanceNoise, rng: np.random.Generator
) -> TwoSidedPlaces:
    """For each of these neurons the best of many places. No queries."""
    inverse = np.asarray(np.linalg.pinv(network.weights[0]), dtype=np.float64)
    each = [_PlaceSearch(network, inverse, int(neuron), noise, rng).best() for neuron in neurons]
    inside, outside, steps, errors = (np.array(part) for part in zip(*each, strict=True))
    return TwoSidedPlaces(neurons, inside, outside, steps, errors)


@dataclass(frozen=True)
class _PlaceSearch:
    """The search for one neuron's place; it goes on around the best of random places."""

    network: ReLUNetwork
    inverse: FloatArray
    neuron: int
    noise: DistanceNoise
    rng: np.random.Generator

    def best(self) -> tuple[FloatArray, FloatArray, float, float]:
        """Points inside and outside, the step and the error at the best place."""
        values = self.anywhere()
        best = values[np.argmin(self.judge(values)[3])]
        for change in CHANGES:
            values = self.around(best, change)
            best = values[np.argmin(self.judge(values)[3])]
        inside, outside, steps, errors = self.judge(best[None])
        return inside[0], outside[0], float(steps[0]), float(errors[0])

    def anywhere(self) -> FloatArray:
        """What the neurons sum up (candidates, n): this one is on, the others in random states."""
        candidates = 512  # states of the other neurons that are compared
        share_on = (0.1, 0.7)  # of the other neurons
        sum_sizes = (1.0, 100.0)  # what neurons sum up, in typical inputs of one coordinate
        uneven = (0.5, 1.5)  # and of that, each
        n, rng = len(self.inverse.T), self.rng
        on = rng.random((candidates, n)) < rng.uniform(*share_on, (candidates, 1))
        on[:, self.neuron] = True
        least, most = np.log(sum_sizes)
        sizes = np.exp(rng.uniform(least, most, (candidates, 1))) * rng.uniform(*uneven, (candidates, n))
        return np.where(on, sizes, -sizes)

    def around(self, values: FloatArray, change: float) -> FloatArray:
        """These values first, then others nearby."""
        factors = np.exp(change * self.rng.standard_normal((NEARBY, len(values))))
        flipped = self.rng.random(factors.shape) < 1 / len(values)
        flipped[:, self.neuron] = False
        return np.concatenate([values[None], np.where(flipped, -1, 1) * factors * values])

    def judge(self, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Points inside and outside, steps, and errors of the row, by what the neurons sum up inside."""
        step_share = 0.4  # of the way to the nearest crease
        network, opposite = self.network, values.copy()
        opposite[:, self.neuron] *= -1
        inside, outside = ((side - network.biases[0]) @ self.inverse.T for side in (values, opposite))
        second, second_outside = (self.second(side) for side in (values, opposite))
        same = ((second > 0) == (second_outside > 0)).all(axis=1)
        seen = np.linalg.norm((second > 0) * network.weights[1][:, self.neuron] @ network.weights[2].T, axis=1)
        steps = step_share * np.minimum(
            _room_of_steps(network, values, second), _room_of_steps(network, opposite, second_outside)
        )
        sd = self.noise.at(np.maximum(*(np.linalg.norm(side, axis=1) for side in (inside, outside))))
        with np.errstate(divide="ignore"):
            errors = np.where(same, 2 * sd * np.sqrt(network.dim) / (steps * seen), np.inf)
        return inside, outside, steps, errors

    def second(self, values: FloatArray) -> FloatArray:
        """What second-layer neurons sum up, by what first-layer ones do."""
        return np.maximum(values, 0) @ self.network.weights[1].T + self.network.biases[1]


def _room_of_steps(network: ReLUNetwork, values: FloatArray, second: FloatArray) -> FloatArray:
    """How far (candidates,) steps along coordinates may go before a neuron of either layer changes its state."""
    peak_weight = 4.0  # largest weight of a row along a coordinate, in typical ones
    w, v = network.weights[:2]
    first = np.abs(values) / np.abs(w).max(axis=1)
    through = (values > 0)[:, None, :] * v  # (candidates, second, n)
    slopes = np.sqrt(np.einsum("ckn,nl,ckl->ck", through, w @ w.T, through, optimize=True) / network.dim)
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.where(slopes > 0, np.abs(second) / (peak_weight * slopes), np.inf)
    return np.minimum(first.min(axis=1), above.min(axis=1, initial=np.inf))
