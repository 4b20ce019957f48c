"""Neurons that a fit lacks: answers that it leaves, and lines of residuals from there to explained ones.

Known creases cancel in the residual, so that it is zero up to the crease of the missing neuron and a ⊗ n beyond. A
normal in the span of the active rows is a neuron of the second layer, with its weights over these units; else it is
one of the first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.deep_few_digits.layers_fit import Layers, Weighed
from reluctant.extraction.few_digits.answer_store import Asked, central_gradients, steps_both_ways
from reluctant.extraction.few_digits.incomplete_lines import LineReading, rank_one, read_incomplete_line
from reluctant.geometry import Frame
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import FloatArray

UNEXPLAINED, EXPLAINED = 12.0, 4.0  # deviations: float32 has heavy tails, of 3600 answers up to 8
FEW_LEFT = 0.02  # of the answers: so few are a crease that is placed badly, or a rare neuron
LINES = 10


class _Residual(Asked):
    """What a network leaves of the answers; everything asked is kept with the others."""

    def __init__(self, asked: Asked, frame: Frame, network: Layers) -> None:
        self.__dict__.update(asked.__dict__)
        self.frame, self.network = frame, network

    def ask(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Residuals (n, m) in units of noise, with the deviation (n,) of noise."""
        rounded, answers = self.fresh(rows)
        self.keep(rounded, answers)
        y = (rounded - self.frame.origin) @ self.frame.basis.T
        return answers / self.unit - self.network(y), self.sd(rounded)


@dataclass(frozen=True)
class MissingKink:
    """A crease that the network lacks, at y: normal n times bend, output direction a, active units of the first layer.

    weights: (h,) of the normal over the active rows, NaN for others. outside: part of the normal outside their span.
    """

    y: FloatArray
    beyond: FloatArray
    normal: FloatArray
    a: FloatArray
    active: BoolArray
    weights: FloatArray
    outside: float
    error: float

    @property
    def is_last(self) -> bool:
        """True if it is a neuron of the last hidden layer."""
        return self.outside < max(0.02, 8 * self.error) and self.active.sum() < len(self.y)


def find_missing(asked: Asked, frame: Frame, network: Layers, answers: Weighed) -> list[MissingKink]:
    """Kinks on lines of residuals. Cost: about 40 rows a line, 2k a kink."""
    left, rng = np.abs(answers.left_by(network)).max(axis=1), asked.rng
    bad, good = np.flatnonzero(left > UNEXPLAINED), np.flatnonzero(left < EXPLAINED)
    if not len(bad) or not len(good):
        return []
    sizes = np.minimum(left[bad], np.quantile(left[bad], 0.9))
    chosen = rng.choice(bad, min(LINES, len(bad)), replace=False, p=sizes / sizes.sum())
    residual = _Residual(asked, frame, network)
    found = []
    with asked.view.oracle.stage("completion"):
        for i in chosen:
            stop = answers.y[i]
            start = _near_explained(answers.y, good, stop, rng)
            found.append(_first_kink(residual, start, stop))
        kinks = [kink for kink in found if kink is not None]
        return _with_normals(residual, kinks)


def _near_explained(y: FloatArray, good: np.ndarray, stop: FloatArray, rng: np.random.Generator) -> FloatArray:
    """One of the three nearest of some explained points, relative to the sizes of both."""
    among, nearest = 400, 3
    some = y[rng.permutation(good)[:among]]
    apart = np.linalg.norm(some - stop, axis=1) / (np.linalg.norm(stop) + np.linalg.norm(some, axis=1))
    return np.asarray(some[np.argsort(apart)[rng.integers(min(nearest, len(some)))]])


@dataclass(frozen=True)
class _Departure:
    """Where the residual departs from zero: the point, the way on, and the middle and length of the piece beyond."""

    y: FloatArray
    way: FloatArray
    beyond: FloatArray
    length: float


def _first_kink(residual: _Residual, start: FloatArray, stop: FloatArray) -> _Departure | None:
    way = stop - start

    def ask(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        return residual.ask(residual.frame.points(start + t[:, None] * way))

    reading = read_incomplete_line(ask, np.linspace(0, 1, 21), least_gap=1e-4, rounds=9)
    for kink in reading.kinks:
        zero_left, zero_right = _is_zero(reading, kink.left), _is_zero(reading, kink.right)
        if zero_left == zero_right:
            continue
        run, sign = reading.runs[kink.right if zero_left else kink.left], 1.0 if zero_left else -1.0
        length = run.length * float(np.linalg.norm(way))
        return _Departure(start + kink.t * way, sign * way, start + run.middle * way, length)
    return None


def _is_zero(reading: LineReading, number: int) -> bool:
    run = reading.runs[number]
    return bool(np.abs(run.slope).max() < 8 * run.slope_sd and np.abs(run.value).max() < 12 * run.value_sd)


def _with_normals(residual: _Residual, kinks: list[_Departure]) -> list[MissingKink]:
    most_error, most_left = 0.1, 0.2
    if not kinks:
        return []
    frame, network, found = residual.frame, residual.network, []
    beyond, steps = np.array([kink.beyond for kink in kinks]), 0.35 * np.array([kink.length for kink in kinks])
    rows = frame.points(beyond)
    steps = steps_both_ways(residual.view, rows, frame.basis, steps[:, None])
    slopes, sds = central_gradients(residual.ask, rows, frame.basis, steps)
    for kink, slope, sd in zip(kinks, slopes, sds, strict=True):
        normal, a, left = rank_one(slope.T)
        size = float(np.linalg.norm(a))
        error = float(np.linalg.norm(sd)) / size if size else np.inf
        if not error < most_error or left > most_left * size:
            continue
        if normal @ kink.way < 0:
            normal, a = -normal, -a
        active = network.states(kink.beyond[None])[-2][0] > 0
        rows = network.slopes(kink.beyond, len(network.hidden) - 2)[active]
        some = np.linalg.lstsq(rows.T, normal, rcond=1e-9)[0]
        weights = np.full(len(active), np.nan)
        weights[active] = size * some
        outside = float(np.linalg.norm(rows.T @ some - normal))
        found.append(MissingKink(kink.y, kink.beyond, size * normal, a / size, active, weights, outside, error))
    return found


def outstanding_size(left: FloatArray) -> float:
    """What a missing neuron leaves at least: far more than what the others leave (n,) because it is missing."""
    return float(np.sqrt(UNEXPLAINED * max(UNEXPLAINED, left.max())))


CONSENSUS_TRIES = 30


def last_from_left(network: Layers, answers: Weighed, rng: np.random.Generator) -> Layers | None:
    """The network with a neuron of the last layer that most unexplained answers agree on, or None. Cost: no rows.

    Where the missing neuron is on, the residual is a (v · z + c), linear in the values z of the layer below, whatever
    state this is in. Answers near one of them begin; those that agree join.
    """
    digits, fewest_share, much_beyond, rank_one_left = 1e-2, 0.2, 4, 0.05  # a start for the fit needs two digits
    digits_left, most_spoilt = 0.1, 0.01  # of what was left, where the neuron explains it; and of explained answers
    left = -answers.left_by(network)
    sizes = np.abs(left).max(axis=1)
    good = sizes < EXPLAINED
    outstanding = outstanding_size(sizes)
    bad = np.flatnonzero(sizes > outstanding)
    hidden = np.maximum(network.states(answers.y)[-2], 0)
    known = np.flatnonzero((hidden[bad] > 0).sum(axis=0) >= 2)
    columns = np.column_stack([hidden[bad][:, known], np.ones(len(bad))])
    unknown = columns.shape[1]
    if len(bad) < 2 * unknown:
        return None
    f, sd = (left * answers.sd)[bad], answers.sd[bad]
    scale = np.maximum(columns.std(axis=0), 1e-12 * np.abs(columns).max(initial=1.0))
    scale[-1] = 1.0
    best, joined, most = None, bad, max(int(fewest_share * len(bad)), unknown + much_beyond)
    for first in rng.choice(bad.size, min(CONSENSUS_TRIES, len(bad)), replace=False):
        apart = np.linalg.norm((columns - columns[first]) / scale, axis=1)
        inside = np.argsort(apart)[: unknown + much_beyond]
        row: FloatArray = np.zeros((unknown, f.shape[1]))
        for _ in range(6):
            row = _weighted_solution(columns[inside] / scale, f[inside], sd[inside]) / scale[:, None]
            now = np.flatnonzero(np.abs(columns @ row - f).max(axis=1) < digits * np.abs(f).max(axis=1))
            if len(now) < unknown or np.array_equal(now, inside):
                break
            inside = now
        if len(now) > most:
            best, joined, most = row, now, len(now)
    if best is None or not good.any():
        return None
    direction, a, outside = rank_one(best.T * 1.0)
    if outside > rank_one_left * np.linalg.norm(a):
        return None
    if np.median(columns @ direction) < 0:
        direction, a = -direction, -a
    shown = np.append((columns[joined, :-1] > 0).sum(axis=0) >= 2, True)
    v, open_ = np.zeros(hidden.shape[1]), np.ones(hidden.shape[1], dtype=bool)
    v[known[shown[:-1]]], open_[known[shown[:-1]]] = direction[:-1][shown[:-1]], False
    found = _with_row(network, v, float(direction[-1]), a, open_, hidden[good])
    now_left = np.abs(answers.left_by(found)).max(axis=1)
    still, spoilt = now_left[bad] > digits_left * sizes[bad], now_left[good] > outstanding
    return found if still.mean() < 1 - fewest_share and spoilt.mean() < most_spoilt else None


def _weighted_solution(columns: FloatArray, f: FloatArray, sd: FloatArray) -> FloatArray:
    """Least squares (k, m) of each output by its own noise, the same for all: the largest."""
    weight = 1 / sd.max(axis=1)[:, None]
    return np.asarray(np.linalg.lstsq(columns * weight, f * weight, rcond=1e-12)[0])


def with_missing(network: Layers, kinks: list[MissingKink], explained: FloatArray) -> Layers:
    """The network with a neuron for each group of kinks; explained: coordinates where it needs none."""
    groups: list[list[MissingKink]] = []
    for kink in sorted(kinks, key=lambda kink: kink.error):
        group = next((group for group in groups if _belongs(kink, group)), None)
        if group is None:
            groups.append([kink])
        else:
            group.append(kink)
    # Gradients have shown the whole first layer of three: what looks like a neuron of it is one of the second.
    first = [] if network.between else [group for group in groups if not group[0].is_last]
    second = [group for group in groups if group[0].is_last]
    if first:  # a missing row of the first layer makes chance rows of the second look right
        second = [group for group in second if len(group) >= 2]
    added = network
    for group in second:
        added = _with_last(added, network, group, explained)
    for group in first:
        added = _with_first(added, group[0])
    return added


def _belongs(kink: MissingKink, group: list[MissingKink]) -> bool:
    """True if the kink can be of the group's neuron: outputs, and weights that both have, agree."""
    outputs, weights, angle = 0.1, 0.15, 0.99
    if group[0].is_last != kink.is_last or np.linalg.norm(group[0].a - kink.a) > outputs:
        return False
    if not kink.is_last:
        sizes = np.linalg.norm(group[0].normal) * np.linalg.norm(kink.normal)
        return bool(abs(group[0].normal @ kink.normal) > angle * sizes)
    known = _group_weights(group)
    both = kink.active & ~np.isnan(known)
    apart = np.linalg.norm(kink.weights[both] - known[both])
    return bool(both.any() and apart < weights * np.linalg.norm(kink.weights[both]))


def _group_weights(group: list[MissingKink]) -> FloatArray:
    weights = group[0].weights.copy()
    for kink in group[1:]:
        weights = np.where(np.isnan(weights), kink.weights, weights)
    return weights


def _with_last(added: Layers, network: Layers, group: list[MissingKink], explained: FloatArray) -> Layers:
    """One more neuron of the last hidden layer."""
    v = _group_weights(group)
    open_ = np.isnan(v)
    v = np.where(open_, 0.0, v)
    c = -float(v @ np.maximum(network.states(group[0].y[None])[-2][0], 0))
    hidden = np.maximum(network.states(explained)[-2], 0)
    one_more = _with_row(added, v, c, group[0].a, open_, hidden)
    values = hidden @ one_more.v[-1, : hidden.shape[1]] + c
    lower = max(float(np.quantile(values, 0.99)), 0.0) if len(values) else 0.0
    return replace(one_more, c=np.append(added.c, c - lower))


def _with_row(added: Layers, v: FloatArray, c: float, a: FloatArray, open_: BoolArray, hidden: FloatArray) -> Layers:
    """One more neuron of the last hidden layer. Weights that are open keep it off where nothing is missing.

    hidden: values (n, h) of the layer below at explained answers.
    """
    often = 0.02  # of explained answers: a neuron that is on for more of them cannot be right
    values, room = hidden @ v + c, hidden[:, open_].sum(axis=1)
    wrong = (values > 0) & (room > 1e-9)
    if wrong.any() and (values > 0).mean() > often:
        v[open_] = -np.quantile(values[wrong] / room[wrong], 0.999)
        values = hidden @ v + c
    a = np.column_stack([added.a, a])
    return replace(added, v=np.concatenate([added.v, v[None]]), c=np.append(added.c, c), a=a)


def _with_first(added: Layers, kink: MissingKink) -> Layers:
    """One more neuron of the first layer, into those of the second that are on beyond the kink."""
    size = np.linalg.norm(kink.normal)
    w = kink.normal / size
    states = added.states(kink.beyond[None])
    on = states[1][0] > 0
    column = np.zeros(len(on))
    column[on] = np.linalg.lstsq(added.sensitivities(states, 1)[0][:, on], kink.a * size, rcond=1e-6)[0]
    return added.with_first(w, -float(w @ kink.y), column)
