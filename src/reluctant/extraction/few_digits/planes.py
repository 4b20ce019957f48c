"""From a line into the planes of it and one more direction each, and these joined to one network.

A neuron is known from plane to plane by its crease on the line. One that a plane had to add is in no plane before
it, so those are grown anew.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from reluctant.extraction.failures import StageFailed
from reluctant.extraction.few_digits.growth import grow
from reluctant.extraction.few_digits.line import OnLine
from reluctant.extraction.few_digits.subspace_fit import Points
from reluctant.geometry import Frame
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["grow_planes", "in_frame"]

MOST_PLANES = 3  # times each direction is grown into, should later ones show more neurons
PLACE = 1e-3  # angle on the line by which neurons differ as much as if one had no bend


def grow_planes(line: OnLine, frame: Frame, rng: np.random.Generator) -> tuple[ReLUNetwork, list[Points]]:
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
    return _joined(start, planes), [in_frame(points, [0, k], len(frame.basis)) for k, (_, points) in planes.items()]


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


def _skip(network: ReLUNetwork) -> FloatArray:
    assert network.skip is not None
    return network.skip


def _on_line(plane: ReLUNetwork) -> ReLUNetwork:
    """What a network in a plane is on the line it grew from."""
    w, a = plane.weights
    return ReLUNetwork([w[:, :1], a], plane.biases, _skip(plane)[:, :1])


def in_frame(points: Points, axes: list[int], k: int) -> Points:
    """Points of a line or plane by these axes of a frame of k directions."""
    y = np.zeros((len(points), k))
    y[:, axes] = points.y
    return Points(y, points.f, points.weight)
