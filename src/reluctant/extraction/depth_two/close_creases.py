"""Neurons of a crowded line whose creases all but meet there, told apart on short lines beside it.

Between two creases that are closer than a step can use nothing can be measured, and only what the two neurons give
together is known. A little beside the line, along any direction of the frame, the creases have moved apart, each by its
neuron's own weight in that direction: a short line there shows where they are, and by how much each bends the function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from reluctant.geometry import DistanceNoise, FramedNetwork, Lines, Scan, scan_lines
from reluctant.geometry.samples import TOLERANCE, IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["replaced", "tell_close_creases_apart"]

UNKNOWN = 0.05  # error of a neuron's weights, of their length: from here on nothing is known beside the line
MOST_TOGETHER = 3  # neurons whose creases meet in one place
MOST_CREASES = 6  # on a short line: with more, those of other neurons have come in
BESIDE = (0.05, 0.005, 0.0005)  # how far from the line, in the room around the place; nearer where that is too far
HALF_LENGTH = 0.5  # of a short line, in that room
APART = 30.0  # how far from the line at least, in distances between the creases
ROUNDINGS = 4.0  # noises of an answer in where two pieces of a short line meet


def tell_close_creases_apart(
    oracle: Counting, known: FramedNetwork, slope_sd: FloatArray, noise: DistanceNoise, rng: np.random.Generator
) -> FramedNetwork:
    """The network with such neurons measured anew; `slope_sd` (h,) is the noise of weights along the line.

    Neurons are in the order of their creases along the line, and the function has one output. Cost: about 40 rows for
    each direction of the frame and place.
    """
    for place in _places(known, slope_sd):
        for share in BESIDE:
            distance = share * place.room
            if distance < APART * place.width:
                break
            with oracle.stage("close creases"):
                lines, scan = _short_lines(oracle, known, place, distance, noise, rng)
            weights = place.told_apart(lines, scan, distance)
            if weights is not None:
                sd = ROUNDINGS * float(_noise(known, place, noise).near) / distance
                known = replaced(known, place.neurons, weights, np.full(len(weights), sd))
                break
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
    if len(neurons) <= len(creases) <= MOST_CREASES:
        yield from map(np.array, permutations(creases, len(neurons)))


def _places(known: FramedNetwork, slope_sd: FloatArray) -> Iterator[_Place]:
    """Places of the line where neighbouring neurons are unknown beside it."""
    g, a = known.network.weights
    t, last = -known.network.biases[0] / g[:, 0], known.neurons - 1
    unknown = np.flatnonzero(known.weight_sd > UNKNOWN * np.linalg.norm(g, axis=1))
    unknown = np.union1d(unknown, _nearest(t, unknown))
    for neurons in np.split(unknown, np.flatnonzero(np.diff(unknown) > 1) + 1):
        if not 2 <= len(neurons) <= MOST_TOGETHER or neurons[0] == 0 or neurons[-1] == last:
            continue
        before, after = neurons[0] - 1, neurons[-1] + 1
        outputs, room = a[0, neurons], min(t[neurons[0]] - t[before], t[after] - t[neurons[-1]])
        yield _Place(
            neurons, t[neurons], float(room), outputs @ g[neurons],
            float(np.hypot(known.weight_sd[before], known.weight_sd[after])), outputs, g[neurons, 0], slope_sd[neurons],
        )  # fmt: skip


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


def replaced(known: FramedNetwork, neurons: IntArray, weights: FloatArray, sd: FloatArray) -> FramedNetwork:
    """The network with these weights of neurons; where their creases meet the line stays what it is."""
    (g, a), (z, c) = known.network.weights, known.network.biases
    g, z, weight_sd = g.copy(), z.copy(), known.weight_sd.copy()
    z[neurons] *= weights[:, 0] / g[neurons, 0]
    g[neurons] = weights
    weight_sd[neurons] = sd
    return replace(known, network=ReLUNetwork([g, a], [z, c], known.network.skip), weight_sd=weight_sd)
