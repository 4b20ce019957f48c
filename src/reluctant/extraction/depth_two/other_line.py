"""Neurons that a crowded line hides, seen from another line of the same frame.

Of thousands of creases on a line some all but meet: two neurons pass for one, a weak one is lost beside a strong one,
or there is no room between them to measure anything. On another line through the same few directions the same neurons
are in another order, and what is hidden there is something else. What is known says where every crease of the other
line is and how much it bends the function; those it does not explain are measured there, and those of neurons that are
known badly. Then each line's creases must be made of the other's.
"""

from __future__ import annotations

import numpy as np

from reluctant.extraction.depth_two.climbing import reach_of
from reluctant.extraction.depth_two.line import NoCrease, Regions, neurons_on_a_line
from reluctant.extraction.depth_two.matching import Other, put_together, same_creases
from reluctant.extraction.depth_two.second_look import STEEPER, STEP, gradients, sure_room
from reluctant.extraction.depth_two.seen_neurons import AGREE, UNSURE, Line, Marks, Neurons
from reluctant.extraction.failures import StageFailed
from reluctant.geometry import DistanceNoise, FramedNetwork
from reluctant.geometry.samples import NONE, IntArray
from reluctant.oracles import Counting

__all__ = ["seen_from_another_line"]

OTHER_LINE = "other line"
MOST_OPEN = 0.02  # of the creases: with more, what is known is not of this function
STEEPEST, ROUNDS = 100.0, 3  # how often as steep as along the line a neuron may be, until more is known
EACH = 2.0  # noises of an answer in the difference of two gradients, each of two answers
NARROW = 10.0  # noises of an answer in where two pieces of a line meet


def seen_from_another_line(
    oracle: Counting, known: FramedNetwork, noise: DistanceNoise, rng: np.random.Generator
) -> FramedNetwork:
    """The network with the neurons of both lines.

    The function has one output. Cost: about five rows a neuron, and two for each direction of the frame at each crease
    that is measured.
    """
    try:
        found, regions = neurons_on_a_line(oracle, noise, rng, known.frame)
    except NoCrease as error:
        raise StageFailed(OTHER_LINE, "no crease on another line", number=0, limit=known.neurons) from error
    other = Line.of(found, known)
    here, marks = Neurons.of(known), _marks(found, noise, regions.scale)
    same = same_creases(here.on(other), marks)
    open_here, open_there = np.flatnonzero(same == NONE), np.setdiff1d(np.arange(len(marks)), same)
    most = MOST_OPEN * known.neurons
    if len(open_there) > most:
        reason = "creases of another line that are not explained"
        raise StageFailed(OTHER_LINE, reason, number=len(open_there), limit=most, partial=known)
    badly = np.setdiff1d(_unsure(known, reach_of(known, regions.scale)), open_here)
    which = np.concatenate([same[badly], open_there])
    if not len(which):
        return known
    there = _measured(oracle, here.without(open_here).network(known), found, regions, which, noise)
    better = there.sd[: len(badly)] < here.sd[badly]
    here = here.with_weights(badly[better], there.chosen(np.flatnonzero(better)))
    there = there.chosen(np.arange(len(badly), len(which)))
    both = put_together(here, open_here, there, marks.chosen(open_there), Other(other, marks))
    return both.network(known)


def _unsure(known: FramedNetwork, reach: float) -> IntArray:
    """Neurons whose side is unsure at a good part of all points."""
    return np.flatnonzero(known.sd_within(reach) > UNSURE * reach * np.linalg.norm(known.network.weights[0], axis=1))


def _marks(found: FramedNetwork, noise: DistanceNoise, scale: float) -> Marks:
    """What was found on a line."""
    (slopes, outputs), t = found.network.weights, found.positions
    t_sd = NARROW * noise.at(np.hypot(t, scale)) / slopes[:, 0]
    return Marks(t, t_sd, outputs[0] * slopes[:, 0], found.weight_sd)


def _measured(
    oracle: Counting,
    known: FramedNetwork,
    found: FramedNetwork,
    regions: Regions,
    which: IntArray,
    noise: DistanceNoise,
) -> Neurons:
    """Neurons of the other line, from gradients in the regions on both sides of their creases.

    Steps go up to the creases of `known`, and up to their own as far as these are known by then.
    """
    other, beside = Line.of(found, known), np.stack([which, which + 1])
    middles, points = other.points(regions.middle[beside].reshape(-1)), other.points(found.positions[which])
    outputs, along = found.network.weights[1][0, which], found.network.weights[0][:, 0]
    room = sure_room(known, middles, oracle.arrays).reshape(2, -1)
    rounding = EACH * noise.at(np.linalg.norm(known.frame.points(points), axis=1))
    steepness = np.zeros(found.neurons + 2)  # of each crease, and of none at both ends
    steepness[1 + which] = STEEPEST
    for _ in range(ROUNDS):
        own = np.maximum(steepness[beside], steepness[beside + 1])  # region i lies between creases i - 1 and i
        steps = STEP * np.minimum(room, regions.width[beside] / (2 * own)).min(axis=0)
        with oracle.stage(OTHER_LINE):
            slopes = gradients(oracle, known.frame.points(middles), np.tile(steps, 2), known.frame.basis)
        weights = outputs[:, None] * (slopes[len(which) :] - slopes[: len(which)])
        off = along[which] - weights @ other.along
        weights += off[:, None] * other.along  # which the line itself tells better
        sd = np.maximum(rounding / steps, found.weight_sd[which])
        sd[np.abs(off) > AGREE * sd] = np.inf  # a step has crossed a crease
        most = np.linalg.norm(weights, axis=1) + STEEPER * sd
        steepness[1 + which] = np.minimum(steepness[1 + which], most / along[which])
    weights *= np.sign(weights[:, :1])  # on where the first line ends, as all are
    lines = np.tile(other.along, (len(which), 1))
    return Neurons(weights, -(weights * points).sum(axis=1), outputs, sd, found.weight_sd[which], points, lines)
