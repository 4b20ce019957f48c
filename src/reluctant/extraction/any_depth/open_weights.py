"""Weights that creases leave open, chosen by what lines and answers say.

Inside bounds a crease does not visit every cell of the layers below, so some coefficients of its neuron stay open. Two
things tell of them without a query. On a line a neuron switches at its own kinks alone: its state is carried from
where it is determined through kinks that other neurons explain. And answers at the rows asked so far are fitted by the
open coefficients of all layers and the outputs together, with rows that are off counting less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from reluctant.extraction.any_depth.crease_equations import IncomingWeights
from reluctant.extraction.any_depth.features import KnownLayers
from reluctant.extraction.any_depth.kinks import KinkStore, passes_kinks
from reluctant.extraction.any_depth.output_layer import Readout
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles.ledger import check_time


def carried_states(store: KinkStore, known: KnownLayers, incoming: IncomingWeights, others: BoolArray) -> FloatArray:
    """State (p,) of a neuron in every piece of the stored lines: 1 on, -1 off, 0 where nothing tells.

    others: kinks that known layers or other neurons explain. Where pieces disagree, most of them decide.
    """
    features = known.features(store.middles)
    state = np.where(incoming.determined(features), np.sign(incoming.values(features)), 0.0)
    own = passes_kinks(store, known, incoming)
    before = store.piece_before(np.arange(len(own)))
    step = np.zeros(len(state))  # into each piece from the one before it; 0 begins a run
    step[before + 1] = np.where(own, -1.0, np.where(others, 1.0, 0.0))
    run = np.cumsum(step == 0) - 1
    flips = np.cumsum(step < 0)
    turned = np.where((flips - flips[np.flatnonzero(step == 0)][run]) % 2, -1.0, 1.0)
    votes = np.bincount(run, weights=state * turned)
    return np.sign(votes)[run] * turned


def with_fitted_weights(known: KnownLayers, readout: Readout, rows: FloatArray, answers: FloatArray) -> KnownLayers:
    """The layers with the open coefficients that suit most answers, starting from those they have; the rest stays.

    Gauss–Newton on open coefficients and outputs together, in which rows count less the farther they are off. States
    that lines show are kept.
    """
    rounds, highest_floor, lowest_floor = 30, 1e-1, 1e-9  # of residuals, in deviations of the answers
    explained, tries, first, least = 1e-10, 6, 1e-6, 1e-13  # damping, of columns of norm one
    gated_rounds, middle_floor = 3, 1e-3
    agrees, roaming, worse = 1e-7, 10, 3.0  # a step into other states of neurons may cost more before it costs less
    spread = float(answers.std(axis=0).max())
    now, damping = _Fit(known, readout.weights / spread, readout.constants / spread), first
    answers = answers / spread
    for _ in range(gated_rounds):
        gated = now.gated(rows, answers)
        if gated.cost(rows, answers, middle_floor) < now.cost(rows, answers, middle_floor):
            now = gated
    best, fewest = now, np.inf
    for k, floor in enumerate(np.geomspace(highest_floor, lowest_floor, rounds + 1)):
        check_time()
        off = answers - now(rows)
        wrong = int((np.abs(off).max(axis=1) > agrees).sum())
        best, fewest = (now, wrong) if wrong < fewest else (best, fewest)
        if np.abs(off).max() <= explained or k == rounds:
            break
        normal, target, size = now.equations(rows, off, floor)
        most = now.cost(rows, answers, floor) * (worse if k < roaming else 1.0)
        for _ in range(tries):
            step = scipy.linalg.solve(normal + damping * np.eye(len(normal)), target, assume_a="pos") / size
            moved = now.moved(step)
            if moved.cost(rows, answers, floor) < most:
                now, damping = moved, max(damping / 10, least)
                break
            damping *= 30
        else:
            damping = first
    return best.known


HARDLY_TOLD = 1e-6  # of the largest column: one so small is rounding, and stays as it is
MARGIN = 1e-3  # relative value before a ReLU from which on its state is as lines show it


@dataclass(frozen=True)
class _Fit:
    """Layers and outputs (m, F), (m,) on top of them."""

    known: KnownLayers
    outputs: FloatArray
    constants: FloatArray

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Answers (n, m)."""
        return self.known.features(rows) @ self.outputs.T + self.constants

    def cost(self, rows: FloatArray, answers: FloatArray, floor: float) -> float:
        """Sum of all deviations, and of all states by how far they are missed."""
        missed = [state.missed.sum() for state in self.states()]
        return float(np.hypot(np.abs(answers - self(rows)).max(axis=1), floor).sum() + sum(missed))

    def gated(self, rows: FloatArray, answers: FloatArray) -> _Fit:
        """With open coefficients of the last layer as a linear fit gives them, in the states that its neurons have now.

        There a neuron of no output weight has a say too. Parts that a lower layer may carry instead are left to that.
        """
        rounds, little, least = 20, 1e-13, 1e-9  # damping: of outputs, of open coefficients
        layer, below = self.known.layers[-1], self.known.lowest(len(self.known.layers) - 1)
        h = below.features(rows)
        z = h @ layer.weights.T + layer.biases
        plain = np.column_stack([np.maximum(z, 0), h @ layer.beside.T, np.ones(len(rows))])
        open_ = [
            (z[:, [part.neuron]] > 0) * ((h - below.features(part.point[None])) @ part.basis) for part in layer.open
        ]
        design = np.hstack([plain, *open_])
        size = np.linalg.norm(design, axis=0)
        size = np.maximum(size, HARDLY_TOLD * size.max())
        design /= size
        damping = np.diag(np.where(np.arange(design.shape[1]) < plain.shape[1], little, least))
        weight = np.ones(len(rows))
        for floor in np.geomspace(1e-1, 1e-8, rounds):
            left = design * weight[:, None]
            normal = left.T @ left
            found = scipy.linalg.solve(
                normal + damping * normal.trace(), left.T @ (answers * weight[:, None]), assume_a="pos"
            )
            weight = 1 / np.sqrt(np.maximum(np.abs(answers - design @ found).max(axis=1), floor))
        found /= size[:, None]
        weights, biases, at = layer.weights.copy(), layer.biases.copy(), plain.shape[1]
        for part in layer.open:
            width, u = part.basis.shape[1], found[part.neuron]
            square = float(u @ u)
            if square > 0:
                weights[part.neuron] += part.basis @ (found[at : at + width] @ u) / square
                biases[part.neuron] = -weights[part.neuron] @ below.features(part.point[None])[0]
            at += width
        known = below.extended(replace(layer, weights=weights, biases=biases))
        top = found[: plain.shape[1]]
        return _Fit(known, top[:-1].T, top[-1])

    def states(self) -> list[_States]:
        """Of each open neuron, layer by layer."""
        found = list[_States]()
        for number, layer in enumerate(self.known.layers):
            points = [rows for part in layer.open for rows in (part.off, part.on, part.point[None])]
            features = self.known.lowest(number).features(np.concatenate([np.empty((0, self.known.dim)), *points]))
            each = np.split(features, np.cumsum([len(rows) for rows in points]))
            for k, part in enumerate(layer.open):
                away = np.concatenate(each[3 * k : 3 * k + 2]) - each[3 * k + 2]
                away /= np.linalg.norm(away, axis=1, keepdims=True) + DOUBLE.tiny
                away[: len(part.off)] *= -1
                found.append(_States(away @ part.basis, np.maximum(MARGIN - away @ layer.weights[part.neuron], 0)))
        return found

    def equations(self, rows: FloatArray, off: FloatArray, floor: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Normal equations in columns of norm one, with these norms: answers, then states that are missed."""
        jacobian = self.jacobian(rows)
        weight = 1 / np.sqrt(np.maximum(np.abs(off).max(axis=1), floor))
        left = (jacobian * weight[:, None, None]).reshape(-1, jacobian.shape[2])
        right = (off * weight[:, None]).reshape(-1)
        normal, target, at = left.T @ left, left.T @ right, 0
        for state in self.states():
            own, stop = state.missed > 0, at + state.slopes.shape[1]
            weight = 1 / np.sqrt(np.maximum(state.missed[own], floor))
            part = state.slopes[own] * weight[:, None]
            normal[at:stop, at:stop] += part.T @ part
            target[at:stop] += part.T @ (state.missed[own] * weight)
            at = stop
        size = np.sqrt(normal.diagonal())
        size = np.maximum(size, HARDLY_TOLD * size.max())
        return normal / (size[:, None] * size), target / size, size

    def jacobian(self, rows: FloatArray) -> FloatArray:
        """Derivatives (n, m, p) of the outputs: by open coefficients layer by layer, then by output weights."""
        below, active, h = [], [], rows
        for layer in self.known.layers:
            below.append(h)
            z = h @ layer.weights.T + layer.biases
            active.append(z > 0)
            h = np.hstack([np.maximum(z, 0), h @ layer.beside.T])
        n, m = len(rows), len(self.outputs)
        columns = list[FloatArray]()
        slopes = np.broadcast_to(self.outputs, (n, *self.outputs.shape))
        for number in range(len(self.known.layers) - 1, -1, -1):
            layer, lower = self.known.layers[number], self.known.lowest(number)
            by_z, mine = slopes[:, :, : len(layer)] * active[number][:, None, :], [np.empty((n, m, 0))]
            for part in layer.open:
                away = (below[number] - lower.features(part.point[None])) @ part.basis
                mine.append(by_z[:, :, part.neuron, None] * away[:, None, :])
            columns.append(np.concatenate(mine, axis=2))
            slopes = by_z @ layer.weights + slopes[:, :, len(layer) :] @ layer.beside
        features = np.column_stack([h, np.ones(n)])
        top = np.zeros((n, m, m, features.shape[1]))
        top[:, np.arange(m), np.arange(m)] = features[:, None]
        return np.concatenate([*columns[::-1], top.reshape(n, m, -1)], axis=2)

    def moved(self, step: FloatArray) -> _Fit:
        """After a step (p,); creases with open coefficients still pass their first points."""
        known, at = self.known.lowest(0), 0
        for layer in self.known.layers:
            weights, biases = layer.weights.copy(), layer.biases.copy()
            for part in layer.open:
                weights[part.neuron] += part.basis @ step[at : at + part.basis.shape[1]]
                biases[part.neuron] = -weights[part.neuron] @ known.features(part.point[None])[0]
                at += part.basis.shape[1]
            known = known.extended(replace(layer, weights=weights, biases=biases))
        top = step[at:].reshape(len(self.outputs), -1)
        return _Fit(known, self.outputs + top[:, :-1], self.constants + top[:, -1])


@dataclass(frozen=True)
class _States:
    """Slopes (n, u) of values before a ReLU by its open weights, turned to their states, and by how much these lack."""

    slopes: FloatArray
    missed: FloatArray
