"""Second stage: from the line into one more direction, a little farther from it with every pass.

After each pass everything is fitted anew, positions, slopes and output weights; a pass that the fit does not explain
is undone and the next one goes half as far. A line that missed a neuron, or took two for one, gets stuck here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.failures import StageFailed
from reluctant.extraction.few_digits.idle import without_idle_neurons
from reluctant.extraction.few_digits.line import OnLine
from reluctant.extraction.few_digits.missing import WORTH, with_missing_neurons
from reluctant.extraction.few_digits.subspace_fit import HUBER, Points, fit_network, misfit, settled
from reluctant.extraction.few_digits.view import View
from reluctant.geometry import Frame
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["ask_in", "grow", "line_points"]

FIRST_OFFSET, LAST_OFFSET, FASTER = 0.004, 12.0, 2.0  # offsets from the line, in distances to the nearest crease
LARGEST_OFFSET = 0.5  # of the distance from the origin
ANYWHERE, FASTER_ANYWHERE = 0.02, 2.8  # then offsets whatever the creases, of the size of an input
PASSES_ANYWHERE, BACK = 5.0, -0.5  # and how far back one goes that was not explained
PER_PIECE, PER_UNKNOWN = 2, 2  # points
STEEPEST_ANGLE = 1.45  # of points along the line
INSIDE = 0.1  # of a piece: points keep this far from its ends
OUTERMOST = 2.0  # how far beyond the outermost crease, in its distance or the size of an input
MISFIT, MISFITS = 6.0, 0.03  # deviations, and share of the points of a pass that may have more
GRAVE, GRAVE_MISFITS = 15.0, 0.01  # the same: what a fit that has not settled yet does not leave
MOST_BAD_PASSES, MOST_BAD_IN_ALL = 3, 10  # in a row, and in all
STEPS, DAMPING, ENOUGH = 6, 1e-8, 3e-2
DOUBTFUL = 0.25  # of the misfits that may be: the fit is given more steps
TRUSTED = 1  # bad passes that are taken for too long a step; the next is taken for a missing neuron
MOST_ADDED, MORE_TIMES = 4, 3  # neurons in one pass, and how many times as many points are asked to find them
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


@dataclass(frozen=True)
class _Pace:
    """How far the next pass goes: beside the line in distances to the nearest crease, then so many passes anywhere."""

    offset: float = FIRST_OFFSET
    anywhere: float = 0.0

    @property
    def near(self) -> bool:
        return self.offset < LAST_OFFSET

    @property
    def done(self) -> bool:
        return self.anywhere >= PASSES_ANYWHERE

    def after(self, good: bool) -> _Pace:
        if self.near:
            return _Pace(self.offset * (FASTER if good else 1 / FASTER))
        return _Pace(self.offset, self.anywhere + (1.0 if good else BACK))


def grow(
    line: OnLine, start: ReLUNetwork, direction: FloatArray, rng: np.random.Generator
) -> tuple[ReLUNetwork, Points]:
    """The network in the plane of the line and one more direction, and the points off the line it was fitted to.

    start: network of one input, the line as it is known by now; neurons it lacks are added. Cost: about 35 rows a
    neuron, more where some are missing.
    """
    state, pace, bad = _State(_beside_line(start), _on_line(line, start, rng)), _Pace(), [0, 0]
    kept, fewest = len(state.points), start.widths[1]
    frame = Frame(line.origin, np.stack([line.direction, direction]))
    while not pace.done:
        new = _ask_pass(line.view, frame, state.network, pace, 1, rng)
        after, misfits = _with_pass(state, new, kept)
        if misfits >= 1 and bad[1] >= TRUSTED:
            new += _ask_pass(line.view, frame, state.network, pace, MORE_TIMES, rng)
            after, misfits = _with_neurons(after, new, fewest, rng)
        good = misfits < 1
        state, bad = (after, [0, bad[1]]) if good else (state, [bad[0] + 1, bad[1] + 1])
        if bad[0] == MOST_BAD_PASSES or bad[1] == MOST_BAD_IN_ALL:
            raise StageFailed("growth", "points off the line are not explained", number=misfits, limit=1)
        pace = pace.after(good)
    return _needed(state, fewest), state.points.chosen(slice(kept, None))


def _ask_pass(
    view: View, frame: Frame, network: ReLUNetwork, pace: _Pace, times: int, rng: np.random.Generator
) -> Points:
    if pace.near:
        y = [_near_line(network, pace.offset, view, rng) for _ in range(times)]
    else:
        y = [_anywhere(network.widths[1], pace.anywhere, view, rng) for _ in range(times)]
    return ask_in(view, frame, np.concatenate(y))


def _on_line(line: OnLine, start: ReLUNetwork, rng: np.random.Generator) -> Points:
    points = line_points(line, max(KEPT_ON_LINE * start.widths[1], FEWEST_ON_LINE), rng)
    return Points(_beside(points.y), points.f, points.weight)


def _beside_line(start: ReLUNetwork) -> ReLUNetwork:
    (w, a), biases, skip = start.weights, start.biases, start.skip
    return ReLUNetwork([_beside(w), a], biases, None if skip is None else _beside(skip))


def _with_pass(state: _State, new: Points, on_line: int) -> tuple[_State, float]:
    """Everything fitted anew with these points, and the share of them that misfit all the same."""
    points = state.points + new
    most = KEPT_OFF_LINE * state.network.widths[1]
    if len(points) - on_line > most:
        points = points.chosen(slice(None, on_line)) + points.chosen(slice(len(points) - most, None))
    network = fit_network(state.network, points, steps=STEPS, damping=DAMPING, huber=HUBER, enough=ENOUGH)
    misfits = _misfits(network, new)
    if misfits > DOUBTFUL:
        network = settled(network, points)
        misfits = _misfits(network, new)
    return _State(network, points), misfits


def _with_neurons(state: _State, new: Points, fewest: int, rng: np.random.Generator) -> tuple[_State, float]:
    """The same with more points, and with neurons that explain what is left of them."""
    points = state.points + new
    network = with_missing_neurons(state.network, points, MOST_ADDED, rng)
    state = _State(_needed(_State(network, points), fewest), points)
    return state, _misfits(state.network, new)


def _needed(state: _State, fewest: int) -> ReLUNetwork:
    """Without neurons that were added and are no longer needed."""
    return without_idle_neurons(state.network, state.points, huber=HUBER, least=WORTH, fewest=fewest)


def _misfits(network: ReLUNetwork, points: Points) -> float:
    """Points that are not explained, in units of how many may be."""
    size = misfit(network, points)
    return float(max(np.mean(size > MISFIT) / MISFITS, np.mean(size > GRAVE) / GRAVE_MISFITS))


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


def _anywhere(h: int, passes: float, view: View, rng: np.random.Generator) -> FloatArray:
    offset, n = ANYWHERE * FASTER_ANYWHERE**passes, PER_UNKNOWN * (h + view.outputs)
    along = view.size * np.tan(rng.uniform(-STEEPEST_ANGLE, STEEPEST_ANGLE, n))
    return np.column_stack([along, offset * np.hypot(view.size, along) * rng.standard_normal(n)])
