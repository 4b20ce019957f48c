"""First stages inside a box: several lines through one point, and the neurons that they show.

A line that is bounded does not meet every crease, but of several lines nearly always one does. A neuron
a max(w·y + b, 0) with outputs of norm one bends a line through the origin at t = -b / w·u by a |w·u|: bend times
distance is a |b|, the same on every line, so that it tells which bends belong to one neuron.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.few_digits.inside import InsideView
from reluctant.extraction.few_digits.line import OnLine, read_stretch
from reluctant.extraction.few_digits.subspace_fit import Points
from reluctant.geometry import Frame
from reluctant.geometry.samples import IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Star", "read_star"]

OFF_CENTRE = 0.1  # of the box: neurons without a bias all meet in its middle
SAME = 30.0  # deviations within which two products of bend and distance are one
POSITIONS = 3.0  # deviations of an answer by which a crease, times its bend, may be off


@dataclass(frozen=True)
class Star:
    """Lines along the axes of a frame, and the network that they show on its axes."""

    view: InsideView
    frame: Frame
    lines: list[OnLine]
    network: ReLUNetwork

    @property
    def points(self) -> Points:
        """All samples of the lines, in coordinates of the frame."""
        parts = [_on_axis(line, axis, len(self.frame.basis)) for axis, line in enumerate(self.lines)]
        points = parts[0]
        for part in parts[1:]:
            points += part
        return Points(points.y, points.f, 1 / self.view.noise.at(np.linalg.norm(points.y, axis=1)))


def read_star(view: InsideView, directions: int, rng: np.random.Generator) -> Star:
    """Scan so many lines through a point near the middle. Cost: 50 to 100 rows a neuron and line."""
    frame = Frame(OFF_CENTRE * view.sample(rng, 1)[0], _long_directions(view.dim, directions, rng))
    lines = [read_stretch(view, frame.origin, u, view.reach(frame.origin, u), rng) for u in frame.basis]
    noise = float(np.mean([line.view.noise.near for line in lines]))
    return Star(view.with_noise(noise / view.noise.near), frame, lines, _joined(lines, noise))


def _long_directions(dim: int, count: int, rng: np.random.Generator) -> FloatArray:
    """Orthonormal directions (count, d), nearly towards corners: there a box is longest."""
    corners = rng.choice([-1.0, 1.0], (dim, count)) + 0.1 * rng.standard_normal((dim, count))
    return np.asarray(np.linalg.qr(corners)[0].T)


def _on_axis(line: OnLine, axis: int, k: int) -> Points:
    y = np.zeros((len(line.data), k))
    y[:, axis] = line.data.t
    return Points(y, line.data.f, line.data.weight)


@dataclass(frozen=True)
class _Bends:
    """Creases of one line: positions (n,), bends (n, m), and bend times distance with its deviation."""

    t: FloatArray
    bend: FloatArray
    product: FloatArray
    sd: FloatArray

    @classmethod
    def of(cls, line: OnLine, noise: float) -> _Bends:
        (w, a), b = line.network.weights, line.network.biases[0]
        t, bend = -b / w[:, 0], (a * w[:, 0]).T
        gaps = np.diff(np.concatenate([[line.data.t[0]], t, [line.data.t[-1]]]))
        slopes = noise / np.minimum(gaps[:-1], gaps[1:])
        return cls(t, bend, np.abs(t)[:, None] * bend, POSITIONS * noise + np.abs(t) * slopes)


def _joined(lines: list[OnLine], noise: float) -> ReLUNetwork:
    """The neurons of all lines, each off at the common point; a weight along a line that does not show it is 0."""
    bends = [_Bends.of(line, noise) for line in lines]
    neurons = _matched(bends)
    weights = np.zeros((len(neurons), len(lines)))
    outputs, sizes = np.zeros((bends[0].bend.shape[1], len(neurons))), np.zeros(len(neurons))
    for j, places in enumerate(neurons):
        seen = np.flatnonzero(places >= 0)
        total = np.sum([bends[i].bend[places[i]] for i in seen], axis=0)
        outputs[:, j] = total / np.linalg.norm(total)
        sizes[j] = np.mean([np.linalg.norm(bends[i].product[places[i]]) for i in seen])
        weights[j, seen] = [np.sign(bends[i].t[places[i]]) * np.linalg.norm(bends[i].bend[places[i]]) for i in seen]
    at_origin = [line.network for line in lines]
    skip = np.column_stack([_slope_at_origin(network) for network in at_origin])
    return ReLUNetwork([weights, outputs], [-sizes, at_origin[0](np.zeros((1, 1)))[0]], skip)


def _slope_at_origin(network: ReLUNetwork) -> FloatArray:
    (w, a), b = network.weights, network.biases[0]
    assert network.skip is not None
    return np.asarray(network.skip[:, 0] + (a * w[:, 0]) @ (b > 0))


def _matched(bends: list[_Bends]) -> list[IntArray]:
    """For each neuron its place on every line, -1 where that line does not show it."""
    neurons: list[IntArray] = []
    for axis, found in enumerate(bends):
        for k in range(len(found.t)):
            off = [_unlike(bends, neuron, found, k) if neuron[axis] < 0 else np.inf for neuron in neurons]
            best = int(np.argmin(off)) if off else -1
            if off and off[best] < SAME:
                neurons[best][axis] = k
            else:
                fresh = np.full(len(bends), -1, dtype=np.intp)
                fresh[axis] = k
                neurons.append(fresh)
    return neurons


def _unlike(bends: list[_Bends], neuron: IntArray, found: _Bends, k: int) -> float:
    """How far a bend is from those of a neuron, in deviations."""
    others = [(bends[axis].product[place], bends[axis].sd[place]) for axis, place in enumerate(neuron) if place >= 0]
    return max(float(np.linalg.norm(product - found.product[k]) / np.hypot(sd, found.sd[k])) for product, sd in others)
