"""Neurons that a crowded line hides, found on a second line of the same frame.

Of thousands of creases on a line some all but meet: two neurons pass for one, or a weak one is lost beside a strong
one. On another line through the same few directions the same neurons are in another order, and what one line hides
the other shows. The known part says where every crease of the other line is and how much it bends the function;
those it does not explain are measured there, and those of neurons that are known badly. Then each line's creases
must be made of the other's. One output only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.csgraph import connected_components

from reluctant.extraction.depth_two.crowded_line import SIDE_STEP, STEEPER, frame_gradients, kept_along, sure_room
from reluctant.extraction.depth_two.scaffold import NoCrease, Regions, neurons_on_a_line
from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise, FramedNetwork
from reluctant.geometry.lines import NO_NUMBER, Batch, BoolArray, IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

AGREE_WITHIN = 5.0  # errors, in place and in bend, within which two creases may be the same
UNSURE = 1e-3  # error of a neuron's weights, of their length, and of its values where base points are


@dataclass(frozen=True)
class FrameLine:
    """A line of a frame, in its coordinates."""

    start: FloatArray  # (k,)
    along: FloatArray

    @classmethod
    def of(cls, found: FramedNetwork, known: FramedNetwork) -> FrameLine:
        """The line that one network was found on, in the frame of the other."""
        frame = known.frame
        return cls((found.frame.origin - frame.origin) @ frame.basis.T, found.frame.basis[0] @ frame.basis.T)

    def points(self, t: FloatArray) -> FloatArray:
        """Points (n, k) at these positions."""
        return self.start + t[:, None] * self.along

    @classmethod
    def first(cls, k: int) -> FrameLine:
        """The first line of the frame."""
        return cls(np.zeros(k), np.eye(k)[0])


@dataclass(frozen=True)
class Marks(Batch):
    """Creases of a line: where they are, by how much they bend the function, and the errors of both."""

    t: FloatArray
    t_sd: FloatArray
    bend: FloatArray
    bend_sd: FloatArray

    def near(self, other: Marks) -> BoolArray:
        """Which may be where the other is."""
        return np.asarray(np.abs(self.t - other.t) < AGREE_WITHIN * np.hypot(self.t_sd, other.t_sd))

    def bend_as(self, others: Marks) -> bool:
        """Whether all bend the function as all others do."""
        off = self.bend.sum() - others.bend.sum()
        return bool(abs(off) < AGREE_WITHIN * np.linalg.norm(np.concatenate([self.bend_sd, others.bend_sd])))


@dataclass(frozen=True)
class SeenNeurons(Batch):
    """Neurons in the coordinates of a frame, each as it was seen on a line."""

    weights: FloatArray  # (n, k)
    offsets: FloatArray
    outputs: FloatArray
    sd: FloatArray
    along_sd: FloatArray
    points: FloatArray  # (n, k)
    lines: FloatArray

    @classmethod
    def of(cls, known: FramedNetwork) -> SeenNeurons:
        """All of a network with one output."""
        (g, a), z = known.network.weights, known.network.biases[0]
        return cls(g, z, a[0], known.weight_sd, known.along_sd, known.points, known.lines)

    def without(self, which: IntArray) -> SeenNeurons:
        """All but these."""
        return self.chosen(np.setdiff1d(np.arange(len(self)), which))

    def on(self, line: FrameLine) -> Marks:
        """Their creases on a line."""
        slope = self.weights @ line.along
        t = -(self.weights @ line.start + self.offsets) / slope
        t_sd = self._sd_along(line.points(t) - self.points) / np.abs(slope)
        return Marks(
            t, t_sd, self.outputs * np.abs(slope), self._sd_along(np.broadcast_to(line.along, self.lines.shape))
        )

    def _sd_along(self, steps: FloatArray) -> FloatArray:
        """Noise of the change of each neuron's value along its own of these steps (n, k)."""
        along = (steps * self.lines).sum(axis=1)
        across = np.sqrt(np.maximum((steps**2).sum(axis=1) - along**2, 0))
        return np.hypot(self.along_sd * along, self.sd * across)

    def well_known(self) -> BoolArray:
        """Which are known well enough to say where their creases are."""
        return np.asarray(self.sd < UNSURE * np.linalg.norm(self.weights, axis=1))

    def may_be_nothing(self) -> BoolArray:
        """Which are not larger than their errors, or were not measured at all."""
        return ~(np.linalg.norm(self.weights, axis=1) >= AGREE_WITHIN * self.sd)

    def with_weights(self, which: IntArray, others: SeenNeurons) -> SeenNeurons:
        """With the weights that these are found to have; what their own lines show stays as it is."""
        weights, offsets, sd, along_sd = (part.copy() for part in (self.weights, self.offsets, self.sd, self.along_sd))
        off = np.abs(((weights[which] - others.weights) * self.lines[which]).sum(axis=1))
        kept = (along_sd[which] < others.sd) & (off < AGREE_WITHIN * np.hypot(along_sd[which], others.sd))
        weights[which] = kept_along(weights[which], others.weights, self.lines[which], kept)
        offsets[which] = -(weights[which] * self.points[which]).sum(axis=1)
        sd[which], along_sd[which] = others.sd, np.where(kept, along_sd[which], others.sd)
        return replace(self, weights=weights, offsets=offsets, sd=sd, along_sd=along_sd)

    def network(self, known: FramedNetwork) -> FramedNetwork:
        """As a network of the frame that `known` is one of; its skip term is where the first line begins."""
        network = ReLUNetwork(
            [self.weights, self.outputs[None]], [self.offsets, known.network.biases[1]], known.network.skip
        )
        return FramedNetwork(known.frame, network, self.sd, self.along_sd, self.points, self.lines)


def same_creases(expected: Marks, seen: Marks) -> IntArray:
    """For each expected crease the one that was seen there, if exactly one agrees; no crease serves twice."""
    window = 20  # creases compared on either side of the place where one is expected
    around = np.searchsorted(seen.t, expected.t)[:, None] + np.arange(-window, window)
    inside = (around >= 0) & (around < len(seen))
    around = np.clip(around, 0, len(seen) - 1)
    place = np.abs(seen.t[around] - expected.t[:, None]) / np.hypot(seen.t_sd[around], expected.t_sd[:, None])
    bend = np.abs(seen.bend[around] - expected.bend[:, None]) / np.hypot(
        seen.bend_sd[around], expected.bend_sd[:, None]
    )
    agree = inside & (place < AGREE_WITHIN) & (bend < AGREE_WITHIN)
    same = np.where(agree.sum(axis=1) == 1, around[np.arange(len(expected)), agree.argmax(axis=1)], NO_NUMBER)
    number, often = np.unique(same, return_counts=True)
    return np.where(np.isin(same, number[often > 1]), NO_NUMBER, same)


@dataclass(frozen=True)
class OtherLine:
    """The other line, and all creases that were seen on it."""

    line: FrameLine
    marks: Marks

    def lacks(self, expected: Marks) -> BoolArray:
        """Which creases would have been seen if they were there: they bend the function by more than noise hides."""
        creases_beside = 2  # creases on either side of a place that say how much noise there is
        at = np.searchsorted(self.marks.t, expected.t)[:, None] + np.arange(-creases_beside, creases_beside)
        around = self.marks.bend_sd[np.clip(at, 0, len(self.marks) - 1)].max(axis=1)
        return np.asarray(np.abs(expected.bend) > AGREE_WITHIN * np.hypot(expected.bend_sd, around))


def put_together(
    here: SeenNeurons, open_here: IntArray, there: SeenNeurons, marks: Marks, other: OtherLine
) -> SeenNeurons:
    """All neurons, in the order of their creases along the first line; `marks` are those of `there` on the other.

    Most are seen from both lines. Of the others, neurons here that are known well may explain a crease there which is
    that of several. Then neurons that were measured there take the place of those here whose creases are where theirs
    are, if all bend the function alike. What may be nothing here is nothing, and so is a well-known neuron that would
    have been seen there: if it is anything, yet another line will show it.
    """
    old, new = _seen_twice(here, open_here, there)
    better = there.sd[new] < here.sd[old]
    here = here.with_weights(old[better], there.chosen(new[better]))
    left_there = np.setdiff1d(np.arange(len(there)), new)
    open_here, left_there = _unexplained(here, np.setdiff1d(open_here, old), marks, left_there, other.line)
    nothing = open_here[here.may_be_nothing()[open_here]]
    left_there = left_there[~there.may_be_nothing()[left_there]]
    return _in_their_places(here, np.setdiff1d(open_here, nothing), there, left_there, nothing, other)


def _in_their_places(
    here: SeenNeurons,
    open_here: IntArray,
    there: SeenNeurons,
    open_there: IntArray,
    nothing: IntArray,
    other: OtherLine,
) -> SeenNeurons:
    """The neurons of the other line in place of the same ones here, or added; without neurons that do nothing."""
    first = FrameLine.first(here.weights.shape[1])
    own, theirs = here.on(first), there.on(first)
    absent = open_here[(here.well_known() & other.lacks(here.on(other.line)))[open_here]]
    gone, added = nothing.tolist(), list[int]()
    for old, new in _meetings(own, open_here, theirs, open_there):
        absent = np.setdiff1d(absent, old)
        if len(old) and not own.chosen(old).bend_as(theirs.chosen(new)):
            continue
        if len(old) == len(new) == 1:
            here = here.with_weights(old, there.chosen(new))
        else:
            gone.extend(old)
            added.extend(new)
    both = here.without(np.array([*gone, *absent], dtype=np.intp)) + there.chosen(np.array(added, dtype=np.intp))
    return both.chosen(np.argsort(both.on(first).t, kind="stable"))


def _seen_twice(here: SeenNeurons, open_here: IntArray, there: SeenNeurons) -> tuple[IntArray, IntArray]:
    """Neurons here and there with the same weights: each the one that is most like the other."""
    ours, theirs = open_here[~here.may_be_nothing()[open_here]], np.flatnonzero(~there.may_be_nothing())
    if not len(ours) or not len(theirs):
        return ours[:0], theirs[:0]
    off = np.abs(here.weights[ours][:, None] - there.weights[theirs]).max(axis=2)
    off /= np.hypot(here.sd[ours][:, None], there.sd[theirs])
    off[here.outputs[ours][:, None] != there.outputs[theirs]] = np.inf
    nearest, each = off.argmin(axis=1), np.arange(len(ours))
    same = (off.argmin(axis=0)[nearest] == each) & (off[each, nearest] < AGREE_WITHIN)
    return ours[same], theirs[nearest[same]]


def _unexplained(
    here: SeenNeurons, open_here: IntArray, marks: Marks, there: IntArray, other: FrameLine
) -> tuple[IntArray, IntArray]:
    """What neurons that are known leave open on the other line: neurons here, and creases there."""
    expected = here.on(other)
    for old, new in _meetings(expected, open_here[~here.may_be_nothing()[open_here]], marks, there):
        if len(old) and expected.chosen(old).bend_as(marks.chosen(new)):
            open_here, there = np.setdiff1d(open_here, old), np.setdiff1d(there, new)
    return open_here, there


def _meetings(
    ours: Marks, open_ours: IntArray, theirs: Marks, open_theirs: IntArray
) -> Iterator[tuple[IntArray, IntArray]]:
    """Place by place, open creases of the one kind, or none, and of the other that may be there."""
    n, candidates = len(open_ours), theirs.chosen(open_theirs)
    linked = np.zeros((n + len(open_theirs),) * 2, dtype=bool)
    for row, one in enumerate(open_ours):
        linked[row, n:] = candidates.near(ours.chosen(np.array([one])))
    number, place = connected_components(linked, directed=False)
    for each in range(number):
        old, new = open_ours[place[:n] == each], open_theirs[place[n:] == each]
        if len(new):
            yield old, new


OTHER_LINE = "other line"


def seen_from_another_line(
    oracle: Counting, known: FramedNetwork, noise: DistanceNoise, rng: np.random.Generator, *, lines: int
) -> FramedNetwork:
    """The network with the neurons of both lines.

    The function has one output. Cost: about five rows a neuron, and two for each direction of the frame at each crease
    that is measured.
    """
    most_open = 0.02  # of the creases: with more, the known part is not of this function
    try:
        found, regions = neurons_on_a_line(oracle, noise, rng, known.frame, lines=lines)
    except NoCrease as error:
        raise StageFailed(OTHER_LINE, "no crease on another line", number=0, limit=known.neurons) from error
    other = FrameLine.of(found, known)
    here, marks = SeenNeurons.of(known), _line_marks(found, noise, regions.scale)
    same = same_creases(here.on(other), marks)
    open_here, open_there = np.flatnonzero(same == NO_NUMBER), np.setdiff1d(np.arange(len(marks)), same)
    most = most_open * known.neurons
    if len(open_there) > most:
        reason = "creases of another line that are not explained"
        raise StageFailed(OTHER_LINE, reason, number=len(open_there), limit=most, partial=known)
    badly = np.setdiff1d(_unsure_neurons(known, known.reach(regions.scale)), open_here)
    which = np.concatenate([same[badly], open_there])
    if not len(which):
        return known
    there = _measured_there(oracle, here.without(open_here).network(known), found, regions, which, noise)
    better = there.sd[: len(badly)] < here.sd[badly]
    here = here.with_weights(badly[better], there.chosen(np.flatnonzero(better)))
    there = there.chosen(np.arange(len(badly), len(which)))
    both = put_together(here, open_here, there, marks.chosen(open_there), OtherLine(other, marks))
    return both.network(known)


def _unsure_neurons(known: FramedNetwork, reach: float) -> IntArray:
    """Neurons whose side is unsure at a good part of all points."""
    return np.flatnonzero(known.sd_within(reach) > UNSURE * reach * np.linalg.norm(known.network.weights[0], axis=1))


def _line_marks(found: FramedNetwork, noise: DistanceNoise, scale: float) -> Marks:
    """What was found on a line."""
    position_noises = 10.0  # noises of an answer in where two pieces of a line meet
    (slopes, outputs), t = found.network.weights, found.positions
    t_sd = position_noises * noise.at(np.hypot(t, scale)) / slopes[:, 0]
    return Marks(t, t_sd, outputs[0] * slopes[:, 0], found.weight_sd)


def _measured_there(
    oracle: Counting,
    known: FramedNetwork,
    found: FramedNetwork,
    regions: Regions,
    which: IntArray,
    noise: DistanceNoise,
) -> SeenNeurons:
    """Neurons of the other line, from gradients in the regions on both sides of their creases.

    Steps go up to the creases of `known`, and up to their own as far as these are known by then.
    """
    steepest, measure_rounds = 100.0, 3  # how often as steep as along the line a neuron may be, until more is known
    gradient_noises = 2.0  # noises of an answer in the difference of two gradients, each of two answers
    other, beside = FrameLine.of(found, known), np.stack([which, which + 1])
    middles, points = other.points(regions.middle[beside].reshape(-1)), other.points(found.positions[which])
    room = sure_room(known, middles, oracle.arrays).reshape(2, -1)
    rounding = gradient_noises * noise.at(np.linalg.norm(known.frame.points(points), axis=1))
    steepness = np.zeros(found.neurons + 2)  # of each crease, and of none at both ends
    steepness[1 + which] = steepest
    for _ in range(measure_rounds):
        own = np.maximum(steepness[beside], steepness[beside + 1])  # region i lies between creases i - 1 and i
        steps = SIDE_STEP * np.minimum(room, regions.width[beside] / (2 * own)).min(axis=0)
        with oracle.stage(OTHER_LINE):
            slopes = frame_gradients(oracle, known.frame.points(middles), np.tile(steps, 2), known.frame.basis)
        weights, sd = _weights_across(found, which, slopes, other.along, rounding / steps)
        most = np.linalg.norm(weights, axis=1) + STEEPER * sd
        steepness[1 + which] = np.minimum(steepness[1 + which], most / found.network.weights[0][which, 0])
    weights *= np.sign(weights[:, :1])  # on where the first line ends, as all are
    lines, outputs = np.tile(other.along, (len(which), 1)), found.network.weights[1][0, which]
    return SeenNeurons(weights, -(weights * points).sum(axis=1), outputs, sd, found.weight_sd[which], points, lines)


def _weights_across(
    found: FramedNetwork, which: IntArray, slopes: FloatArray, along: FloatArray, rounding: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weights of neurons and their errors, from slopes before all of their creases and behind them."""
    before, behind = np.split(slopes, 2)
    weights = found.network.weights[1][0, which][:, None] * (behind - before)
    off = found.network.weights[0][which, 0] - weights @ along
    weights += off[:, None] * along  # which the line itself tells better
    sd = np.maximum(rounding, found.weight_sd[which])
    sd[np.abs(off) > AGREE_WITHIN * sd] = np.inf  # a step has crossed a crease
    return weights, sd
