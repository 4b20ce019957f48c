"""Neurons of a crowded line that are unknown beside it, looked for on short lines there.

Between two creases that are closer than a step can use nothing can be measured, and only what the two neurons give
together is known; a weak neuron may be lost between others in the same way. A little beside the line, along any
direction of the frame, a crease has moved by its neuron's own weight in that direction: a short line there shows where
it is, and tells it from others by how much it bends the function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from math import perm

import numpy as np

from reluctant.geometry import DistanceNoise, FramedNetwork, Lines, Scan, scan_lines
from reluctant.geometry.samples import TOLERANCE, BoolArray, IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["kept_along", "replaced", "tell_close_creases_apart"]

UNKNOWN = 0.05  # error of a neuron's weights, of their length: from here on nothing is known beside the line
MOST_TOGETHER = 3  # neurons whose creases meet in one place
MOST_ORDERS = 120  # in which creases of a short line may belong to neurons: with more, too many others have come in
AROUND = 4  # creases on either side of one that is looked for alone
BESIDE = (0.05, 0.005, 0.0005)  # how far from the line, in the room around the place; nearer where that is too far
HALF_LENGTH = 0.5  # of a short line, in that room
APART = 30.0  # how far from the line at least, in distances between the creases
LEVER = 30.0  # noises of an answer in where two pieces of a short line meet: they are short for how far apart


def tell_close_creases_apart(
    oracle: Counting, known: FramedNetwork, noise: DistanceNoise, rng: np.random.Generator
) -> FramedNetwork:
    """The network with such neurons measured anew.

    Neurons are in the order of their creases along the line, and the function has one output. Cost: about 40 rows for
    each direction of the frame and place.
    """
    for places in (_close_ones, _single_ones):
        for place in list(places(known)):
            known = _looked_at(oracle, known, place, noise, rng)
    return known


def _looked_at(
    oracle: Counting, known: FramedNetwork, place: _Place, noise: DistanceNoise, rng: np.random.Generator
) -> FramedNetwork:
    """The network with the neurons of one place measured anew, if short lines tell them in one way."""
    for distance in place.room * np.array(BESIDE):
        if distance < APART * place.width:
            break
        with oracle.stage("close creases"):
            lines, scan = _short_lines(oracle, known, place, distance, noise, rng)
        weights = place.told_apart(lines, scan, distance)
        if weights is not None:
            sd = LEVER * _noise(known, place, noise).near / distance
            return replaced(known, place.neurons, weights, np.full(len(weights), sd), along_too=True)
    return known


@dataclass(frozen=True)
class _Place:
    """A place of the line where creases all but meet: of which neurons, where, and how far the next crease is.

    together: what the neurons' weights give together in each direction of the frame. slopes: their weights along the
    line.
    """

    neurons: IntArray
    positions: FloatArray
    room: float
    together: FloatArray  # (k,)
    together_sd: float
    outputs: FloatArray
    slopes: FloatArray
    slope_sd: FloatArray

    def told_apart(self, lines: Lines, scan: Scan, distance: float) -> FloatArray | None:
        """Weights (n, k) of the neurons in the frame, if every short line tells them in one way."""
        place, columns = self, []
        for line in range(len(lines)):
            own = np.flatnonzero(scan.creases.line == line)
            fits = [order for order in _orders(own, self.neurons) if place.fits(scan, order, line, distance)]
            if len(fits) != 1:
                return None
            (order,) = fits
            slopes = self.outputs * scan.creases.jump[order, 0]
            columns.append(-slopes * self.moved(scan, order) / distance)
            place = replace(place, slopes=slopes, slope_sd=scan.creases.jump_sd[order])
        return np.column_stack([place.slopes, *columns])

    def fits(self, scan: Scan, order: IntArray, line: int, distance: float) -> bool:
        """Whether these creases of a short line can be those of the neurons: each its bend, and all what they give."""
        jump, sd = scan.creases.jump[order, 0], scan.creases.jump_sd[order]
        if np.any(np.abs(jump - self.outputs * self.slopes) > TOLERANCE * np.hypot(sd, self.slope_sd)):
            return False
        found = -(jump * self.moved(scan, order)).sum() / distance
        return bool(abs(found - self.together[1 + line]) < TOLERANCE * self.together_sd)

    def moved(self, scan: Scan, order: IntArray) -> FloatArray:
        """How far these creases of a short line are from where they meet the line itself, along it."""
        return scan.creases.t[order] - (self.positions - self.start)

    @property
    def start(self) -> float:
        """Where short lines begin, along the line."""
        return float(self.positions.mean()) - HALF_LENGTH * self.room

    @property
    def width(self) -> float:
        """From the first crease to the last."""
        return float(np.ptp(self.positions))


def _orders(creases: IntArray, neurons: IntArray) -> Iterator[IntArray]:
    """The ways in which creases may belong to neurons."""
    if len(neurons) <= len(creases) and perm(len(creases), len(neurons)) <= MOST_ORDERS:
        yield from map(np.array, permutations(creases, len(neurons)))


def _unknown(known: FramedNetwork) -> IntArray:
    return np.flatnonzero(known.weight_sd > UNKNOWN * np.linalg.norm(known.network.weights[0], axis=1))


def _close_ones(known: FramedNetwork) -> Iterator[_Place]:
    """Places where neighbouring neurons are unknown: what they give together is not."""
    g, a = known.network.weights
    t, last = -known.network.biases[0] / g[:, 0], known.neurons - 1
    unknown = _unknown(known)
    unknown = np.union1d(unknown, _nearest(t, unknown))
    for neurons in np.split(unknown, np.flatnonzero(np.diff(unknown) > 1) + 1):
        if not 2 <= len(neurons) <= MOST_TOGETHER or neurons[0] == 0 or neurons[-1] == last:
            continue
        before, after = neurons[0] - 1, neurons[-1] + 1
        outputs, room = a[0, neurons], min(t[neurons[0]] - t[before], t[after] - t[neurons[-1]])
        yield _Place(
            neurons, t[neurons], float(room), outputs @ g[neurons],
            float(np.hypot(known.weight_sd[before], known.weight_sd[after])),
            outputs, g[neurons, 0], known.along_sd[neurons],
        )  # fmt: skip


def _single_ones(known: FramedNetwork) -> Iterator[_Place]:
    """Places of single neurons, with the creases of a few others around."""
    g, a = known.network.weights
    t, unknown = -known.network.biases[0] / g[:, 0], _unknown(known)
    for neuron in unknown[(unknown >= AROUND) & (unknown < len(t) - AROUND)]:
        own = np.array([neuron])
        room = float(min(t[neuron + AROUND] - t[neuron], t[neuron] - t[neuron - AROUND]))
        yield _Place(own, t[own], room, g[neuron], np.inf, a[0, own], g[own, 0], known.along_sd[own])


def _nearest(t: FloatArray, which: IntArray) -> IntArray:
    """For each of these positions, in rising order, the one that is nearest."""
    gaps = np.concatenate([[np.inf], np.diff(t), [np.inf]])
    return np.where(gaps[which] < gaps[which + 1], which - 1, which + 1)


def _short_lines(
    oracle: Counting,
    known: FramedNetwork,
    place: _Place,
    distance: float,
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> tuple[Lines, Scan]:
    """Lines along the first, each this far from it in one direction of the frame, and what they show."""
    directions = len(known.frame.basis) - 1
    start = np.column_stack([np.zeros(directions), distance * np.eye(directions)])
    start[:, 0] = place.start
    stop = start.copy()
    stop[:, 0] += 2 * HALF_LENGTH * place.room
    lines = Lines.between(known.frame.points(start), known.frame.points(stop), HALF_LENGTH * place.room)
    return lines, scan_lines(oracle.query, lines, _noise(known, place, noise), rng, close=True)


def _noise(known: FramedNetwork, place: _Place, noise: DistanceNoise) -> DistanceNoise:
    """Noise of answers at the place: on a short line it is the same everywhere."""
    point = known.frame.points(np.append(place.start, np.zeros(len(known.frame.basis) - 1))[None])
    return DistanceNoise(float(noise.at(np.linalg.norm(point, axis=1))[0]), 0.0)


def kept_along(own: FloatArray, new: FloatArray, lines: FloatArray, kept: BoolArray) -> FloatArray:
    """New weights (n, k), some of them as they were along a line of each."""
    return new + (kept * ((own - new) * lines).sum(axis=1))[:, None] * lines


def replaced(
    known: FramedNetwork, neurons: IntArray, weights: FloatArray, sd: FloatArray, *, along_too: bool = False
) -> FramedNetwork:
    """The network with these weights of neurons; their creases stay where they are known.

    So do weights along the lines on which neurons were seen, if they are known better there, unless these are new too.
    """
    (g, a), (z, c), points = known.network.weights, known.network.biases, known.points
    g, z, weight_sd, along_sd = g.copy(), z.copy(), known.weight_sd.copy(), known.along_sd.copy()
    kept = (along_sd[neurons] < sd) & (not along_too)
    weights = kept_along(g[neurons], weights, known.lines[neurons], kept)
    g[neurons], z[neurons] = weights, -(weights * points[neurons]).sum(axis=1)
    weight_sd[neurons], along_sd[neurons] = sd, np.where(kept, along_sd[neurons], sd)
    network = ReLUNetwork([g, a], [z, c], known.network.skip)
    return replace(known, network=network, weight_sd=weight_sd, along_sd=along_sd)
