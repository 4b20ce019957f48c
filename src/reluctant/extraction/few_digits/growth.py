"""Second stage: from the line into one more direction, a little farther from it with every pass.

After each pass everything is fitted anew, positions, slopes and output weights; a pass that the fit does not explain
is undone and the next one goes half as far. A line that missed a neuron, or took two for one, gets stuck here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.failures import StageFailed
from reluctant.extraction.few_digits.line import OnLine
from reluctant.extraction.few_digits.subspace_fit import Points, fit_network, misfit
from reluctant.extraction.few_digits.view import View
from reluctant.geometry import Frame
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["ask_in", "grow", "line_points"]

FIRST_OFFSET, LAST_OFFSET, FASTER = 0.004, 12.0, 2.0  # offsets from the line, in distances to the nearest crease
LARGEST_OFFSET = 0.5  # of the distance from the origin
OVERALL = (0.02, 0.06, 0.2, 0.6, 1.2)  # then offsets whatever the creases, of the size of an input
PER_PIECE, PER_UNKNOWN = 2, 2  # points
STEEPEST_ANGLE = 1.45  # of points along the line
INSIDE = 0.1  # of a piece: points keep this far from its ends
OUTERMOST = 2.0  # how far beyond the outermost crease, in its distance or the size of an input
MISFIT, MISFITS = 6.0, 0.03  # deviations, and share of the points of a pass that may have more
MOST_BAD_PASSES, MOST_PASSES = 3, 45
STEPS, HUBER, DAMPING, ENOUGH = 6, 5.0, 1e-8, 3e-2
KEPT_ON_LINE, FEWEST_ON_LINE = 12, 600  # samples a neuron
KEPT_OFF_LINE = 14  # points a neuron; the oldest, nearest to the line, are let go


def ask_in(view: View, frame: Frame, y: FloatArray) -> Points:
    """Answers at coordinates of a frame; the coordinates are those of the rows that were really asked."""
    rows, answers = view.ask(frame.points(y))
    y = (rows - frame.origin) @ frame.basis.T
    return Points(y, answers, 1 / view.noise.at(np.linalg.norm(y, axis=1)))


def line_points(line: OnLine, count: int, rng: np.random.Generator) -> Points:
    """Some of the line's samples, as points of a frame of one direction."""
    chosen = rng.permutation(len(line.data))[:count]
    return Points(line.data.t[chosen, None], line.data.f[chosen], line.data.weight[chosen])


@dataclass(frozen=True)
class _State:
    network: ReLUNetwork
    points: Points


def grow(
    line: OnLine, start: ReLUNetwork, direction: FloatArray, rng: np.random.Generator
) -> tuple[ReLUNetwork, Points]:
    """The network in the plane of the line and one more direction, and the points off the line it was fitted to.

    start: network of one input, the line as it is known by now. Cost: about 35 rows a neuron.
    """
    h, view = start.widths[1], line.view
    on_line = line_points(line, max(KEPT_ON_LINE * h, FEWEST_ON_LINE), rng)
    on_line = Points(_beside(on_line.y), on_line.f, on_line.weight)
    (w, a), (b, c), skip = start.weights, start.biases, start.skip
    state = _State(ReLUNetwork([_beside(w), a], [b, c], None if skip is None else _beside(skip)), on_line)
    frame = Frame(line.origin, np.stack([line.direction, direction]))
    offset, overall, bad = FIRST_OFFSET, 0, 0
    for _ in range(MOST_PASSES):
        near = offset < LAST_OFFSET
        y = _near_line(state.network, offset, view, rng) if near else _anywhere(h, OVERALL[overall], view, rng)
        after, misfits = _with_pass(state, ask_in(view, frame, y), len(on_line))
        good = misfits < MISFITS
        state, bad = (after, 0) if good else (state, bad + 1)
        if near:
            offset *= FASTER if good else 1 / FASTER
        else:
            overall += good
        if overall == len(OVERALL):
            return state.network, state.points.chosen(slice(len(on_line), None))
        if bad == MOST_BAD_PASSES:
            break
    raise StageFailed("growth", "points off the line are not explained", number=misfits, limit=MISFITS)


def _with_pass(state: _State, new: Points, on_line: int) -> tuple[_State, float]:
    """Everything fitted anew with these points, and the share of them that misfit all the same."""
    points = state.points + new
    most = KEPT_OFF_LINE * state.network.widths[1]
    if len(points) - on_line > most:
        points = points.chosen(slice(None, on_line)) + points.chosen(slice(len(points) - most, None))
    network = fit_network(state.network, points, steps=STEPS, damping=DAMPING, huber=HUBER, enough=ENOUGH)
    return _State(network, points), float(np.mean(misfit(network, new) > MISFIT))


def _beside(column: FloatArray) -> FloatArray:
    return np.column_stack([column, np.zeros(len(column))])


def _near_line(network: ReLUNetwork, offset: float, view: View, rng: np.random.Generator) -> FloatArray:
    """Points in every piece of the line, beside it by a share of the distance to the nearest crease."""
    t = np.sort(-network.biases[0] / network.weights[0][:, 0])
    first, last = (OUTERMOST * (view.size + abs(end)) for end in (t[0], t[-1]))
    ends = np.concatenate([[t[0] - first], t, [t[-1] + last]])
    low, gap = np.repeat(ends[:-1], PER_PIECE), np.repeat(np.diff(ends), PER_PIECE)
    share = rng.uniform(INSIDE, 1 - INSIDE, len(low))
    along = low + share * gap
    room = np.minimum(share, 1 - share) * gap
    most = LARGEST_OFFSET * min(1.0, offset) * (view.size + np.abs(along))
    across = np.minimum(offset * room, most) * rng.uniform(0.5, 1, len(low)) * rng.choice([-1, 1], len(low))
    return np.column_stack([along, across])


def _anywhere(h: int, offset: float, view: View, rng: np.random.Generator) -> FloatArray:
    n = PER_UNKNOWN * (h + view.outputs)
    along = view.size * np.tan(rng.uniform(-STEEPEST_ANGLE, STEEPEST_ANGLE, n))
    return np.column_stack([along, offset * np.hypot(view.size, along) * rng.standard_normal(n)])
