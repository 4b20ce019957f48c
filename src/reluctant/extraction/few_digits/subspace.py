"""Third stage: the line and what was grown from it, in one subspace: everything fitted together, then questioned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.failures import StageFailed
from reluctant.extraction.few_digits.growth import ask_in, line_points
from reluctant.extraction.few_digits.idle import without_idle_neurons
from reluctant.extraction.few_digits.line import OnLine
from reluctant.extraction.few_digits.missing import with_missing_neurons
from reluctant.extraction.few_digits.planes import grow_planes, in_frame
from reluctant.extraction.few_digits.subspace_fit import HUBER, Points, fit_network, misfit
from reluctant.extraction.few_digits.view import View
from reluctant.geometry import Frame, FramedNetwork
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Known", "grow_subspace", "questioned", "random_points"]

PER_UNKNOWN, COUNTED_OUTPUTS = 6, 3  # random points for each weight and bias; more outputs tell no more
SPREAD = (-1.0, 1.2)  # of their logarithmic size
ON_LINE, FEWEST_ON_LINE = 20, 1500  # samples of the line a neuron
GROWN = 12  # points a neuron and direction
TOO_FAR = 50.0  # sizes of an input: points that grew from far creases are left out
STEPS = 8
HELD_OUT = 200
DOUBTFUL_CHI, MOST_ADDED = 1.3, 4  # of all points: neurons weaker than planes can tell are looked for, so many
LARGEST_CHI, LARGEST_MISFIT = 1.5, 12.0  # of what is held out: missing neurons show as tens to thousands


@dataclass(frozen=True)
class Known:
    """The network in a subspace, and the points it was fitted to."""

    framed: FramedNetwork
    points: Points


def grow_subspace(line: OnLine, directions: int, rng: np.random.Generator) -> Known:
    """Grow the line into so many directions. Cost: about 35 rows a neuron and direction, and 30 a neuron in all."""
    frame = _frame(line, directions, rng)
    with line.view.oracle.stage("growth"):
        joined, grown = grow_planes(line, frame, rng)
    with line.view.oracle.stage("subspace"):
        return _fitted(line, frame, joined, grown, rng)


def _frame(line: OnLine, directions: int, rng: np.random.Generator) -> Frame:
    """The line, towards the origin, then random directions: what is off the subspace has mean zero at random inputs."""
    frame = Frame(line.origin, line.direction[None])
    if directions == 0:
        return frame
    inwards = -line.origin + (line.origin @ line.direction) * line.direction
    frame = frame.extended(inwards[None] / np.linalg.norm(inwards))
    return frame.extended(frame.new_directions(directions - 1, rng)) if directions > 1 else frame


def _fitted(line: OnLine, frame: Frame, network: ReLUNetwork, grown: list[Points], rng: np.random.Generator) -> Known:
    k, h, view = len(frame.basis), network.widths[1], line.view
    points = _known_points(line, grown, k, h, rng)
    network = fit_network(network, points, steps=STEPS, huber=HUBER)
    points += random_points(view, frame, h, rng)
    network = fit_network(network, points, steps=STEPS, huber=HUBER)
    if _chi(misfit(network, points)) > DOUBTFUL_CHI:
        network = with_missing_neurons(network, points, MOST_ADDED, rng)
    return questioned(view, frame, network, points, rng)


def random_points(view: View, frame: Frame, neurons: int, rng: np.random.Generator) -> Points:
    """Points of many sizes all over the subspace."""
    k, per_point = len(frame.basis), min(view.outputs, COUNTED_OUTPUTS)
    sizes = np.exp(rng.uniform(*SPREAD, (PER_UNKNOWN * neurons * (k + 1) // per_point, 1))) * view.size / np.sqrt(k)
    return ask_in(view, frame, view.pulled_in(frame, sizes * rng.standard_normal((len(sizes), k))))


def questioned(view: View, frame: Frame, network: ReLUNetwork, points: Points, rng: np.random.Generator) -> Known:
    """The network fitted to these points, if it explains others that are held out."""
    network = without_idle_neurons(fit_network(network, points, steps=STEPS), points)
    framed = FramedNetwork(frame, network, *np.zeros((2, network.widths[1])))
    return Known(framed, points + _held_out(view, framed, rng))


def _known_points(line: OnLine, grown: list[Points], k: int, h: int, rng: np.random.Generator) -> Points:
    """Some of the answers that were paid for already."""
    size = line.view.size
    points = _near(in_frame(line_points(line, max(ON_LINE * h, FEWEST_ON_LINE), rng), [0], k), size)
    for part in grown:
        near = _near(part, size)
        points += near.chosen(rng.permutation(len(near))[: GROWN * h])
    return points


def _held_out(view: View, framed: FramedNetwork, rng: np.random.Generator) -> Points:
    """New points, all of which must be explained."""
    k = len(framed.frame.basis)
    at_use = view.pulled_in(framed.frame, rng.standard_normal((HELD_OUT, k)) * view.size / np.sqrt(k))
    points = ask_in(view, framed.frame, at_use)
    left = misfit(framed.network, points)
    for number, limit in ((_chi(left), LARGEST_CHI), (left.max(), LARGEST_MISFIT)):
        if not number < limit:
            reason = "held-out points are not explained"
            raise StageFailed("subspace", reason, number=float(number), limit=limit, partial=framed)
    return points


def _chi(left: FloatArray) -> float:
    return float(np.sqrt(np.mean(left**2)))


def _near(points: Points, size: float) -> Points:
    return points.chosen(np.linalg.norm(points.y, axis=1) < TOO_FAR * size)
