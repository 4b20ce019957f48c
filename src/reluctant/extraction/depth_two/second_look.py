"""Neurons of a crowded line that a narrow region shows badly, looked at again beside the line.

Where two creases of the line are very close there is hardly room for a step, and the weights of the two neurons are
known badly in the other directions. A little way off the line, along such a neuron's own crease, there is room: the
gradients on the two sides of the crease there differ by the neuron alone. A neuron that is not known well enough to
tell where its crease goes is looked at from the line first, with steps as long as what is known allows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from reluctant.arrays import Arrays
from reluctant.extraction.depth_two.close_creases import replaced
from reluctant.geometry import DistanceNoise, FramedNetwork
from reluctant.geometry.samples import TOLERANCE, IntArray
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.moves import Fans

__all__ = ["STEEPER", "STEP", "gradients", "look_again", "sure_room"]

BADLY_KNOWN = 0.05  # error of a neuron's value where base points are, of its usual margin there
DRAWS = 64  # points of a neuron's crease that are looked at for one with room
NEAREST, FARTHEST = 0.1, 0.1  # distance from the line, of that at which the crease could be anywhere in its room
CLEAR = 6.0  # rooms must hold the error of a crease's place so often: half of one is left on each side
STEP = 0.1  # of the room
STEEPER = 2.0  # errors by which a neuron may be steeper than it is known to be
NEAREST_REGIONS = 3  # of the line, on each side of a neuron's crease
WELL_KNOWN = 0.1  # of a neuron's error, that of others that are taken as they are
VAGUE = 0.2  # error of a neuron's weights, of their length: with more its crease cannot be followed
MOST_ROUNDS = 8  # what is still known badly is looked at from farther out


def look_again(
    oracle: Counting,
    known: FramedNetwork,
    reach: float,
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> FramedNetwork:
    """The network with badly known neurons measured anew.

    Cost: 2 (k + 1) rows for each, k directions of the frame.
    """
    for _ in range(MOST_ROUNDS):
        badly = _badly_known(known, reach)
        if not len(badly):
            return known
        vague = known.weight_sd[badly] > VAGUE * np.linalg.norm(known.network.weights[0][badly], axis=1)
        views = _views(known, badly[~vague], reach, rng, oracle.arrays)
        views += _from_the_line(known, badly[vague], oracle.arrays)
        if not len(views.neurons):
            return known
        with oracle.stage("second look"):
            known = _measured(oracle, known, views, noise)
    return known


def _badly_known(known: FramedNetwork, reach: float) -> IntArray:
    """Neurons whose values at base points are not sure: there the margin is about the reach over their number."""
    g = known.network.weights[0]
    margin = np.linalg.norm(g, axis=1) * reach / len(g)
    return np.flatnonzero(known.weight_sd * reach > BADLY_KNOWN * margin)


@dataclass(frozen=True)
class _Views:
    """For each neuron a point of the frame on either side of its crease, and how long steps from there may be."""

    neurons: IntArray
    on: FloatArray  # where it is on
    off: FloatArray
    steps: FloatArray

    def __add__(self, other: _Views) -> _Views:
        return _Views(*(np.concatenate([getattr(side, part.name) for side in (self, other)]) for part in fields(self)))


def _views(known: FramedNetwork, neurons: IntArray, reach: float, rng: np.random.Generator, arrays: Arrays) -> _Views:
    """For each neuron the roomiest of random points along its crease, as far from where it is known as it is sure."""
    g, start = known.network.weights[0], known.points[neurons]
    lengths, own = np.linalg.norm(g, axis=1), g[neurons]
    tilt, normals = known.weight_sd[neurons] / lengths[neurons], own / lengths[neurons, None]
    along = rng.standard_normal((len(neurons), DRAWS, g.shape[1]))
    along -= np.einsum("ndk,nk->nd", along, normals)[:, :, None] * normals[:, None]
    along /= np.linalg.norm(along, axis=2, keepdims=True)
    most = np.maximum(reach, np.linalg.norm(start, axis=1))
    farthest = np.minimum(FARTHEST * most / (len(g) * tilt), most)
    distance = farthest[:, None] * rng.uniform(NEAREST, 1.0, (len(neurons), DRAWS))
    points = start[:, None] + distance[:, :, None] * along
    room = _room(known, points.reshape(-1, g.shape[1]), np.repeat(neurons, DRAWS), arrays).reshape(distance.shape)
    room[room < CLEAR * tilt[:, None] * distance] = 0
    best, each = room.argmax(axis=1), np.arange(len(neurons))
    points, room = points[each, best], room[each, best]
    aside = 0.5 * (room / lengths[neurons])[:, None] * own
    seen = np.flatnonzero(room > 0)
    return _Views(neurons[seen], (points + aside)[seen], (points - aside)[seen], STEP * room[seen])


def _from_the_line(known: FramedNetwork, neurons: IntArray, arrays: Arrays) -> _Views:
    """For each neuron the roomiest of the line's nearest regions on its two sides, well known neurons in between."""
    at = known.positions
    neurons = neurons[(neurons >= NEAREST_REGIONS) & (neurons < len(at) - NEAREST_REGIONS)]
    neurons = neurons[~known.points[neurons, 1:].any(axis=1)]
    beyond = np.arange(NEAREST_REGIONS)
    on, on_room = _roomiest(known, neurons, at, neurons[:, None] + beyond, arrays)
    off, off_room = _roomiest(known, neurons, at, neurons[:, None] - 1 - beyond, arrays)
    return _Views(neurons, on, off, STEP * np.minimum(on_room, off_room))


def _roomiest(
    known: FramedNetwork, neurons: IntArray, at: FloatArray, regions: IntArray, arrays: Arrays
) -> tuple[FloatArray, FloatArray]:
    """For each neuron the middle of one of these regions (n, r), nearest first; region i is after crease i.

    A region is only as good as the neurons before it are known.
    """
    points = np.zeros((regions.size, known.network.dim))
    points[:, 0] = ((at[regions] + at[regions + 1]) / 2).reshape(-1)
    room = sure_room(known, points, arrays).reshape(regions.shape)
    between = np.where(regions >= neurons[:, None], regions, regions + 1)
    passed = np.maximum.accumulate(known.weight_sd[between], axis=1)
    room[:, 1:][passed[:, 1:] > WELL_KNOWN * known.weight_sd[neurons, None]] = 0
    best, each = room.argmax(axis=1), np.arange(len(neurons))
    return points.reshape(*regions.shape, known.network.dim)[each, best], room[each, best]


def sure_room(known: FramedNetwork, points: FloatArray, arrays: Arrays) -> FloatArray:
    """Distance from points of the frame to the nearest crease, each neuron as steep as it may well be."""
    g, z = known.network.weights[0], known.network.biases[0]
    lengths, found = arrays.put(np.linalg.norm(g, axis=1) + STEEPER * known.weight_sd), []
    normals, offsets, size = arrays.put(g.T), arrays.put(z), max(1, arrays.cells // len(z))
    for start in range(0, len(points), size):
        values = arrays.xp.abs(arrays.put(points[start : start + size]) @ normals + offsets) / lengths
        found.append(arrays.get(arrays.xp.amin(values, axis=1)))
    return np.concatenate(found) if found else np.empty(0)


def _room(known: FramedNetwork, points: FloatArray, neurons: IntArray, arrays: Arrays) -> FloatArray:
    """Distance from each point to the nearest place where the crease of another neuron than its own may be.

    A crease may be off by more the farther from where it is known.
    """
    g, z = known.network.weights[0], known.network.biases[0]
    lengths, found = np.linalg.norm(g, axis=1), []
    normals, offsets = arrays.put((g / lengths[:, None]).T), arrays.put(z / lengths)
    clear = arrays.put(CLEAR / lengths)
    size = max(1, arrays.cells // len(z))
    for start in range(0, len(points), size):
        part = slice(start, start + size)
        values = arrays.xp.abs(arrays.put(points[part]) @ normals + offsets)
        values -= known.sd_at(points[part], arrays) * clear
        own = neurons[part]
        values[arrays.put(np.arange(len(own))), arrays.put(own)] = np.inf
        found.append(arrays.get(arrays.xp.amin(values, axis=1)))
    return np.concatenate(found) if found else np.empty(0)


def _measured(oracle: Counting, known: FramedNetwork, views: _Views, noise: DistanceNoise) -> FramedNetwork:
    """Gradients on both sides of each crease; their difference is the neuron, if it agrees with what is sure."""
    (g, a), frame = known.network.weights, known.frame
    own, steps, n = g[views.neurons], views.steps, len(views.neurons)
    found = gradients(oracle, frame.points(np.concatenate([views.on, views.off])), np.tile(steps, 2), frame.basis)
    others = _changed(known, views)
    weights = a[0, views.neurons][:, None] * (found[:n] - found[n:] - (others * a[0]) @ g)
    sd = 2 * noise.at(np.linalg.norm(frame.points(views.on), axis=1)) / steps
    sd = np.hypot(sd, np.linalg.norm(others * known.weight_sd, axis=1))
    surer = np.abs(weights - own).max(axis=1) < TOLERANCE * np.hypot(known.weight_sd[views.neurons], sd)
    along = np.abs(((weights - own) * known.lines[views.neurons]).sum(axis=1))
    surer &= along < TOLERANCE * np.hypot(known.along_sd[views.neurons], sd)
    surer &= sd < known.weight_sd[views.neurons]
    neurons = views.neurons[surer]
    return replaced(known, neurons, weights[surer], sd[surer])


def _changed(known: FramedNetwork, views: _Views) -> FloatArray:
    """Which other neurons (n, h) are on at the one point of a view and off at the other: 1, or -1 the other way."""
    on, off = (known.network.patterns(points)[0].astype(float) for points in (views.on, views.off))
    changed = on - off
    changed[np.arange(len(views.neurons)), views.neurons] = 0
    return changed


def gradients(oracle: Counting, points: FloatArray, steps: FloatArray, directions: FloatArray) -> FloatArray:
    """Gradients (n, k) of the one output along the directions."""
    moves = Fans(points, steps, np.arange(len(directions)), directions)
    answers = oracle.query_moves(moves).reshape(len(points), -1)
    return np.asarray((answers - oracle.query(points)) / steps[:, None])
