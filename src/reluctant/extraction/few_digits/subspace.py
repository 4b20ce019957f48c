"""Third stage: the line and what was grown from it, in one subspace: everything fitted together, then questioned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from reluctant.extraction.failures import StageFailed
from reluctant.extraction.few_digits.growth import ask_in, grow, line_points
from reluctant.extraction.few_digits.idle import without_idle_neurons
from reluctant.extraction.few_digits.line import OnLine
from reluctant.extraction.few_digits.subspace_fit import HUBER, Points, fit_network, misfit
from reluctant.geometry import Frame, FramedNetwork
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Known", "grow_subspace"]

PER_UNKNOWN, COUNTED_OUTPUTS = 6, 3  # random points for each weight and bias; more outputs tell no more
SPREAD = (-1.0, 1.2)  # of their logarithmic size
ON_LINE, FEWEST_ON_LINE = 20, 1500  # samples of the line a neuron
GROWN = 12  # points a neuron and direction
TOO_FAR = 50.0  # sizes of an input: points that grew from far creases are left out
MOST_PLANES = 3  # times each direction is grown into, should later ones show more neurons
PLACE = 1e-3  # angle on the line by which neurons differ as much as if one had no bend
STEPS = 8
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
    with line.view.oracle.stage("growth"):
        joined, grown = _planes(line, frame, rng)
    with line.view.oracle.stage("subspace"):
        return _fitted(line, frame, joined, grown, rng)


def _planes(line: OnLine, frame: Frame, rng: np.random.Generator) -> tuple[ReLUNetwork, list[Points]]:
    """The planes of the line and each direction, joined; anew where one shows neurons that others did not."""
    start, directions = line.network, range(1, len(frame.basis))
    planes: dict[int, tuple[ReLUNetwork, Points]] = {}
    for _ in range(MOST_PLANES * len(directions)):
        if len(planes) == len(directions):
            break
        k = next(k for k in directions if k not in planes)
        plane, points = grow(line, start, frame.basis[k], rng)
        if plane.widths[1] != start.widths[1]:
            planes.clear()
        else:
            plane = _in_order(plane, start, line.view.size)
        planes[k], start = (plane, points), _on_line(plane)
    else:
        raise StageFailed("growth", "planes that do not agree", number=len(planes), limit=len(directions))
    return _joined(start, planes), [_in_frame(points, [0, k], len(frame.basis)) for k, (_, points) in planes.items()]


def _in_order(plane: ReLUNetwork, start: ReLUNetwork, size: float) -> ReLUNetwork:
    """The neurons in the order of those they grew from: one that was lost and found again comes last."""
    bends, places, outputs = (np.stack(pair) for pair in zip(_marks(plane, size), _marks(start, size), strict=True))
    cost = np.abs(bends[0][:, None] - bends[1]) / np.maximum(bends[0][:, None], bends[1])
    cost += np.abs(places[0][:, None] - places[1]) / PLACE
    cost += 1 - outputs[0] @ outputs[1].T
    order = np.argsort(linear_sum_assignment(cost)[1])
    (w, a), (b, c) = plane.weights, plane.biases
    return ReLUNetwork([w[order], a[:, order]], [b[order], c], plane.skip)


def _marks(network: ReLUNetwork, size: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What a neuron is known by on the line: how much it bends (h,), where as an angle (h,), outputs (h, m)."""
    along = network.weights[0][:, 0]
    return np.abs(along), np.arctan2(-network.biases[0] / size * np.sign(along), np.abs(along)), network.weights[1].T


def _joined(start: ReLUNetwork, planes: dict[int, tuple[ReLUNetwork, Points]]) -> ReLUNetwork:
    """One network in all directions: the latest on the line, and of each plane what is across.

    Outputs have norm one in all of them, so weights can be taken as they are; slopes could not where a neuron is
    hardly seen on the line.
    """
    across = [planes[k][0] for k in sorted(planes)]
    w = np.column_stack([start.weights[0], *(plane.weights[0][:, 1] for plane in across)])
    skip = np.column_stack([_skip(start), *(_skip(plane)[:, 1] for plane in across)])
    return ReLUNetwork([w, start.weights[1]], start.biases, skip)


def _frame(line: OnLine, directions: int, rng: np.random.Generator) -> Frame:
    """The line, towards the origin, then random directions: what is off the subspace has mean zero at random inputs."""
    frame = Frame(line.origin, line.direction[None])
    if directions == 0:
        return frame
    inwards = -line.origin + (line.origin @ line.direction) * line.direction
    frame = frame.extended(inwards[None] / np.linalg.norm(inwards))
    return frame.extended(frame.new_directions(directions - 1, rng)) if directions > 1 else frame


def _fitted(line: OnLine, frame: Frame, network: ReLUNetwork, grown: list[Points], rng: np.random.Generator) -> Known:
    k, view = len(frame.basis), line.view
    h, per_point = network.widths[1], min(view.outputs, COUNTED_OUTPUTS)
    points = _near(_in_frame(line_points(line, max(ON_LINE * h, FEWEST_ON_LINE), rng), [0], k), view.size)
    for part in grown:
        near = _near(part, view.size)
        points += near.chosen(rng.permutation(len(near))[: GROWN * h])
    network = fit_network(network, points, steps=STEPS, huber=HUBER)
    sizes = np.exp(rng.uniform(*SPREAD, (PER_UNKNOWN * h * (k + 1) // per_point, 1))) * view.size / np.sqrt(k)
    points += ask_in(view, frame, sizes * rng.standard_normal((len(sizes), k)))
    network = fit_network(network, points, steps=STEPS, huber=HUBER)
    network = without_idle_neurons(fit_network(network, points, steps=STEPS), points)
    h = network.widths[1]
    held_out = ask_in(view, frame, rng.standard_normal((HELD_OUT, k)) * view.size / np.sqrt(k))
    left = misfit(network, held_out)
    framed = FramedNetwork(frame, network, np.zeros(h))
    for number, limit in ((np.sqrt(np.mean(left**2)), LARGEST_CHI), (left.max(), LARGEST_MISFIT)):
        if not number < limit:
            reason = "held-out points are not explained"
            raise StageFailed("subspace", reason, number=float(number), limit=limit, partial=framed.lifted())
    return Known(framed, points + held_out)


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
