"""Weights of the first layer in the directions outside the frame, many directions at a time.

A step from a base point of the frame along a new direction changes the values of the first layer by its weights
there, and answers by their sensitivities. Steps end before the nearest crease.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from reluctant.extraction.deep_few_digits.frame_fit import FittedFrame, random_coordinates
from reluctant.extraction.deep_few_digits.layers_fit import Layers
from reluctant.extraction.few_digits.answer_store import Asked
from reluctant.extraction.method import StageFailed
from reluctant.geometry.lines import IntArray
from reluctant.numerics import DOUBLE, FloatArray

DIRECTIONS_AT_ONCE = 32
DIRECTION_CHI = 30.0  # of the worst direction: 2 when right, hundreds when base points are wrong
STEPS_SHORTER = (1.0, 0.25, 0.06)  # in directions that are not explained
STEP_SHARE, STEP_SPARE = 1.25, 6  # steps in a direction, for each neuron; and more


def extend_to_all(asked: Asked, fitted: FittedFrame) -> FittedFrame:
    """Weights of the first layer in all directions, as a function of inputs. Cost: 1.25 h + 6 rows a direction."""
    frame, network, k, d = fitted.frame, fitted.network, len(fitted.frame.basis), asked.view.dim
    if k == d:
        return fitted.of_inputs()
    directions = frame.new_directions(d - k, asked.rng)
    with asked.view.oracle.stage("extension"):
        short = _base_steps(asked, fitted).inside(asked, fitted, directions)
        columns, chi = np.zeros((d - k, len(network.b))), np.full(d - k, np.inf)
        for shorter in STEPS_SHORTER:  # some direction may have a large weight, and steps that cross creases
            for some in _blocks(np.flatnonzero(~(chi < DIRECTION_CHI))):
                columns[some], chi[some] = _measured(asked, fitted, short.times(shorter), directions[some])
        if not chi.max() < DIRECTION_CHI:
            raise StageFailed("extension", "steps are not explained", number=float(chi.max()), limit=DIRECTION_CHI)
    everywhere = replace(network, w=np.column_stack([network.w, columns.T]))
    return FittedFrame(frame.extended(directions), everywhere, fitted.noise).of_inputs()


def _blocks(directions: IntArray) -> list[IntArray]:
    return [
        part
        for part in np.split(directions, range(DIRECTIONS_AT_ONCE, len(directions), DIRECTIONS_AT_ONCE))
        if len(part)
    ]


@dataclass(frozen=True)
class _Steps:
    """Points (n, k) of the frame, how far steps from them go (n,), and the noise (n, m) of answers at their ends."""

    y: FloatArray
    far: FloatArray
    sd: FloatArray

    def times(self, shorter: float) -> _Steps:
        """Steps so many times as long."""
        return replace(self, far=shorter * self.far)

    def inside(self, asked: Asked, fitted: FittedFrame, directions: FloatArray) -> _Steps:
        """Steps that may be made in each of these directions."""
        moves = zip(fitted.frame.points(self.y), np.sign(self.far), strict=True)
        room = np.array([asked.view.room(point, sign * directions).min() for point, sign in moves])
        return replace(self, far=np.clip(self.far, -room, room))


def _base_steps(asked: Asked, fitted: FittedFrame) -> _Steps:
    """Steps from points of the frame that tell all weights: sensitive, and far from creases."""
    drawn, pool, explained = 6000, 3000, 6.0
    network, rng = fitted.network, asked.rng
    h, k, wanted = len(network.b), len(fitted.frame.basis), int(np.ceil(STEP_SHARE * len(network.b))) + STEP_SPARE
    y = asked.view.roomy * random_coordinates(asked, fitted.frame, drawn)
    states = network.states(y)
    slopes, room = network.sensitivities(states), _room(network, states)
    rows = fitted.frame.points(y)
    steps = 0.35 * room * np.sqrt(k)
    sd = fitted.noise.at(asked, network, y, rows)
    largest = sd.max(axis=1)
    chosen: list[int] = []
    while len(chosen) < wanted:
        along = np.einsum("nmh,m->nh", slopes * (steps / largest)[:, None, None], rng.standard_normal(len(network.e)))
        best = np.setdiff1d(np.argsort(-np.linalg.norm(along, axis=1))[:pool], chosen)
        order = scipy.linalg.qr(along[best].T, mode="economic", pivoting=True)[2]
        chosen += list(best[order[: min(h, wanted - len(chosen))]])
    f, _ = asked.ask(rows[chosen])
    right = np.abs((f - network(y[chosen])) / largest[chosen, None]).max(axis=1) < explained
    kept = np.array(chosen)[right]
    if len(kept) < h:
        raise StageFailed("extension", "base points are not explained", number=len(kept), limit=h)
    return _Steps(y[kept], steps[kept] * rng.choice([-1.0, 1.0], len(kept)), sd[kept])


def _room(network: Layers, states: list[FloatArray]) -> FloatArray:
    """Distance (n,) to the nearest crease."""
    room = (np.abs(states[0]) / np.linalg.norm(network.w, axis=1)).min(axis=1)
    gram = network.w @ network.w.T
    for layer, (rows, _) in enumerate(network.hidden[1:], 1):
        for row, values in zip(rows, states[layer].T, strict=True):
            on = (states[layer - 1] > 0) * row
            for below in reversed(range(layer - 1)):
                on = (on @ network.hidden[below + 1][0]) * (states[below] > 0)
            lengths = np.sqrt(np.maximum(np.einsum("nh,nh->n", on @ gram, on), 1e-24))
            room = np.minimum(room, np.abs(values) / lengths)
    return np.asarray(room)


def _measured(
    asked: Asked, fitted: FittedFrame, steps: _Steps, directions: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weights (D, h) in these directions (D, d), and what they leave (D,)."""
    rows = fitted.frame.points(steps.y) + steps.far[:, None] * directions[:, None]
    answers = asked.ask(rows.reshape(-1, asked.view.dim))[0]
    columns = _Columns(fitted.network, steps, answers.reshape(len(directions), len(steps.far), -1))
    return columns.settled(columns.first())


class _Columns:
    """Weights of the first layer in several directions at once, from answers (D, n, m) at the ends of steps."""

    def __init__(self, network: Layers, steps: _Steps, f: FloatArray) -> None:
        self.network, self.f, self.weight = network, f, 1 / steps.sd
        self.z, self.far = network.states(steps.y)[0], steps.far[:, None]

    def first(self) -> FloatArray:
        """A robust solution as if no step crossed a crease."""
        rounds, close = 6, 3.0
        nothing = np.zeros((1, len(self.network.b)))
        left, slopes = self._linearised(nothing)
        share, w = np.ones_like(left), nothing
        for _ in range(rounds):
            w = self._solved(slopes, left, share)
            sizes = np.abs(left - np.einsum("dnmh,dh->dnm", np.broadcast_to(slopes, (len(left), *slopes.shape[1:])), w))
            usual = np.maximum(1.0, 1.5 * np.median(sizes, axis=(1, 2), keepdims=True))
            share = np.sqrt(np.minimum(1.0, close * usual / np.maximum(sizes, 1e-9)))
        return w

    def settled(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gauss–Newton with the states that steps reach, and the root mean square it leaves."""
        rounds, closer, small = 6, 5.0, 1e-7
        for _ in range(rounds):
            left, slopes = self._linearised(w)
            change = self._solved(slopes, left, np.sqrt(np.minimum(1.0, closer / np.maximum(np.abs(left), 1e-9))))
            w = w + change
            if np.abs(change).max() < small * np.abs(w).max():
                break
        left = self._linearised(w)[0]
        return w, np.sqrt(np.mean(left**2, axis=(1, 2)))

    def _linearised(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What weights (D, h) leave (D, n, m), and slopes (D, n, m, h) by them, both over the noise."""
        network = self.network
        states = network.states_above(self.z + self.far * w[:, None])
        shape = (*states[0].shape[:2], network.outputs, states[0].shape[2])
        slopes = network.sensitivities([each.reshape(-1, each.shape[2]) for each in states]).reshape(shape)
        return (self.f - network.answers(states)) * self.weight, slopes * (self.far * self.weight)[:, :, None]

    def _solved(self, slopes: FloatArray, left: FloatArray, share: FloatArray) -> FloatArray:
        """Least-squares steps (D, h), each equation with its share."""
        ridge = 1e-12  # of columns of norm one
        d, h = len(left), slopes.shape[3]
        columns = (slopes * share[:, :, :, None]).reshape(d, -1, h)
        across = np.swapaxes(columns, 1, 2)
        normal, wanted = across @ columns, across @ (left * share).reshape(d, -1, 1)
        scale = 1 / np.sqrt(np.maximum(np.diagonal(normal, axis1=1, axis2=2), DOUBLE.tiny))
        normal = normal * scale[:, :, None] * scale[:, None]
        normal[:, np.arange(h), np.arange(h)] = 1 + ridge
        return np.asarray(scale * np.linalg.solve(normal, scale[:, :, None] * wanted)[:, :, 0])
