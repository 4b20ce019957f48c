"""Third stage: the line and what was grown from it, in one subspace: everything fitted together, then questioned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.failures import StageFailed
from reluctant.extraction.few_digits.growth import ask_in, grow, line_points
from reluctant.extraction.few_digits.line import OnLine
from reluctant.extraction.few_digits.subspace_fit import Points, fit_network, misfit
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
IDLE, IDLE_SQUARES = 0.003, 60.0  # of the sum of squares, and squares: a neuron whose loss leaves no more is none
HELD_OUT = 200
LARGEST_CHI, LARGEST_MISFIT = 1.5, 12.0  # of what is held out: missing neurons show as tens to thousands


@dataclass(frozen=True)
class Known:
    """The network in a subspace, and the points it was fitted to."""

    framed: FramedNetwork
    points: Points


def grow_subspace(line: OnLine, directions: int, rng: np.random.Generator) -> Known:
    """Grow the line into so many directions. Cost: about 35 rows a neuron and direction, and 30 a neuron in all."""
    frame = _frame(line, directions, rng)
    start, slopes, grown = line.network, [np.ones(start_width(line))], []
    skips = [_skip(start)[:, 0]]
    with line.view.oracle.stage("growth"):
        for k in range(1, directions + 1):
            plane, points = grow(line, start, frame.basis[k], rng)
            grown.append(_in_frame(points, [0, k], directions + 1))
            slopes.append(plane.weights[0][:, 1] / plane.weights[0][:, 0])
            skips.append(_skip(plane)[:, 1])
            start = _on_line(plane)
    weights = start.weights[0] * np.stack(slopes, axis=1)
    joined = ReLUNetwork([weights, start.weights[1]], start.biases, np.stack(skips, axis=1))
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


def start_width(line: OnLine) -> int:
    """Number of neurons the line shows."""
    return line.network.widths[1]


def _fitted(line: OnLine, frame: Frame, network: ReLUNetwork, grown: list[Points], rng: np.random.Generator) -> Known:
    k, h, view = len(frame.basis), network.widths[1], line.view
    points = random_points(view, frame, h, rng)
    points += _near(_in_frame(line_points(line, max(ON_LINE * h, FEWEST_ON_LINE), rng), [0], k), view.size)
    for part in grown:
        near = _near(part, view.size)
        points += near.chosen(rng.permutation(len(near))[: GROWN * h])
    return questioned(view, frame, network, points, rng)


def random_points(view: View, frame: Frame, neurons: int, rng: np.random.Generator) -> Points:
    """Points of many sizes all over the subspace."""
    k, per_point = len(frame.basis), min(view.outputs, COUNTED_OUTPUTS)
    sizes = np.exp(rng.uniform(*SPREAD, (PER_UNKNOWN * neurons * (k + 1) // per_point, 1))) * view.size / np.sqrt(k)
    return ask_in(view, frame, view.pulled_in(frame, sizes * rng.standard_normal((len(sizes), k))))


def questioned(view: View, frame: Frame, network: ReLUNetwork, points: Points, rng: np.random.Generator) -> Known:
    """The network fitted to these points, if it explains others that are held out."""
    k = len(frame.basis)
    network = _without_idle_neurons(fit_network(network, points, steps=STEPS), points)
    h = network.widths[1]
    at_use = view.pulled_in(frame, rng.standard_normal((HELD_OUT, k)) * view.size / np.sqrt(k))
    held_out = ask_in(view, frame, at_use)
    left = misfit(network, held_out)
    framed = FramedNetwork(frame, network, np.zeros(h))
    for number, limit in ((np.sqrt(np.mean(left**2)), LARGEST_CHI), (left.max(), LARGEST_MISFIT)):
        if not number < limit:
            reason = "held-out points are not explained"
            raise StageFailed("subspace", reason, number=float(number), limit=limit, partial=framed.lifted())
    return Known(framed, points + held_out)


def _without_idle_neurons(network: ReLUNetwork, points: Points) -> ReLUNetwork:
    """The fit without neurons that explain nothing: knots that were noise, or two for one neuron."""
    square = float((misfit(network, points) ** 2).sum())
    while network.widths[1] > 1:
        fewer = fit_network(_without_weakest(network, points), points, steps=STEPS)
        after = float((misfit(fewer, points) ** 2).sum())
        if after > (1 + max(IDLE, IDLE_SQUARES / points.f.size)) * square:
            break
        network, square = fewer, after
    return network


def _without_weakest(network: ReLUNetwork, points: Points) -> ReLUNetwork:
    """Without the neuron whose loss the others make up for best, as far as linear outputs can."""
    (w, a), (b, c) = network.weights, network.biases
    columns = np.column_stack([np.maximum(points.y @ w.T + b, 0), points.y, np.ones(len(points))])
    columns = columns * points.weight[:, None]
    inverse = np.linalg.pinv(columns.T @ columns, hermitian=True)
    loss = (a**2).sum(axis=0) / np.maximum(np.diag(inverse)[: len(b)], np.finfo(np.float64).tiny)
    weakest = int(np.argmin(loss))
    weights = [np.delete(w, weakest, axis=0), np.delete(a, weakest, axis=1)]
    return ReLUNetwork(weights, [np.delete(b, weakest), c], network.skip)


def _skip(network: ReLUNetwork) -> FloatArray:
    assert network.skip is not None
    return network.skip


def _on_line(plane: ReLUNetwork) -> ReLUNetwork:
    """What a network in a plane is on the line it grew from."""
    w, a = plane.weights
    return ReLUNetwork([w[:, :1], a], plane.biases, _skip(plane)[:, :1])


def _in_frame(points: Points, axes: list[int], k: int) -> Points:
    y = np.zeros((len(points), k))
    y[:, axes] = points.y
    return Points(y, points.f, points.weight)


def _near(points: Points, size: float) -> Points:
    return points.chosen(np.linalg.norm(points.y, axis=1) < TOO_FAR * size)
