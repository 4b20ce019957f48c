"""Sections of a network by a line or a plane: where its creases cross them."""

from __future__ import annotations

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

ON_A_LINE = 4001  # points on which changes of side are looked for: more than a page has across


def crossings(network: ReLUNetwork, low: float, high: float, samples: int = ON_A_LINE) -> FloatArray:
    """Positions in which a network of one input has a neuron that changes side, all layers."""
    t = np.linspace(low, high, samples)
    found = []
    for values in network.preactivations(t[:, None]):
        i, j = np.nonzero((values[:-1] > 0) != (values[1:] > 0))
        a, b = values[i, j], values[i + 1, j]
        found.append(t[i] + (t[1] - t[0]) * a / (a - b))
    return np.sort(np.concatenate([*found, np.empty(0)]))


def polylines(network: ReLUNetwork, size: float) -> list[tuple[int, FloatArray]]:
    """Creases of a network of two inputs in the square of this half width: (layer, points (n, 2)) of each."""
    fine = 121  # points a side of the grid on which deeper creases are followed
    axis = np.linspace(-size, size, fine)
    x, y = np.meshgrid(axis, axis)
    layers = network.preactivations(np.column_stack([x.ravel(), y.ravel()]))
    return [
        (layer, _straightened(points))
        for layer, values in enumerate(layers)
        for neuron in values.T
        for points in _chains(*_segments(neuron.reshape(fine, fine), axis))
    ]


def _segments(values: FloatArray, axis: FloatArray) -> tuple[dict[int, FloatArray], list[tuple[int, int]]]:
    """Where the zero set crosses the edges of the grid (by number), and which crossings each square joins."""
    n, active = len(axis), values > 0
    points: dict[int, FloatArray] = {}
    squares: dict[int, list[int]] = {}
    for across in (True, False):  # edges to the right, then edges upward
        a, b = (values[:, :-1], values[:, 1:]) if across else (values[:-1], values[1:])
        on_a, on_b = (active[:, :-1], active[:, 1:]) if across else (active[:-1], active[1:])
        for i, j in np.argwhere(on_a != on_b).tolist():
            share = float(a[i, j] / (a[i, j] - b[i, j]))
            edge, step = 2 * (i * n + j) + (not across), axis[1] - axis[0]
            points[edge] = np.array([axis[j] + share * step * across, axis[i] + share * step * (not across)])
            beside = ((i, j), (i - 1, j)) if across else ((i, j), (i, j - 1))
            for row, column in beside:
                if 0 <= row < n - 1 and 0 <= column < n - 1:
                    squares.setdefault(row * n + column, []).append(edge)
    pairs = [(edges[k], edges[k + 1]) for edges in squares.values() for k in range(0, len(edges) - 1, 2)]
    return points, pairs


def _chains(points: dict[int, FloatArray], pairs: list[tuple[int, int]]) -> list[FloatArray]:
    """Join the pairs into as few lines as there are."""
    beside: dict[int, list[int]] = {}
    for a, b in pairs:
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    ends = sorted(beside, key=lambda edge: len(beside[edge]))  # open ends first, then closed curves
    chains = []
    for start in ends:
        chain = [start]
        while beside[chain[-1]]:
            following = beside[chain[-1]].pop()
            beside[following].remove(chain[-1])
            chain.append(following)
        if len(chain) > 1:
            chains.append(np.array([points[edge] for edge in chain]))
    return chains


def _straightened(points: FloatArray) -> FloatArray:
    """The same line with the points left out in which it does not bend."""
    straight = 1e-3  # sine of the angle below which a crease has not bent
    if len(points) < 3:
        return points
    before, after = points[1:-1] - points[:-2], points[2:] - points[1:-1]
    turn = np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0])
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    return points[np.concatenate([[True], turn > straight * lengths, [True]])]
