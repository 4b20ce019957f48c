"""Sides of a layer's neurons: a neuron that is off has no part in a gradient.

Where the slopes of a layer's neurons are independent, a gradient is one combination of them, and its coefficients are
zero for neurons that are off. Points where the layers below are mostly on have such slopes. With all sides known the
output weights follow from gradients, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.features import KnownLayers
from reluctant.extraction.method import StageFailed
from reluctant.geometry.jumps import AskGradients
from reluctant.geometry.lines import BoolArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Explained

SIDES = "sides"
APART = 1e-6  # from 1, of a projector's diagonal: the coefficient of such a neuron is known
PART = 1e-6  # of a gradient: a neuron that is on has more of it
POOL = 300  # points that some are chosen from, without asking
ROWS_A_SIDE = 2  # for each neuron on each side
MOST_ROWS = 60  # that are asked for; and of those asked before
MOST_BEFORE = 200
WEAKEST = 1e-9  # singular value of slopes that counts, of the largest
ROWS_AN_OUTPUT = 4  # whose gradients the output weights are solved from, for each neuron of the last layer


@dataclass
class SideEvidence:
    """For each neuron the largest part (2, h) it had in a gradient where its value is negative, and positive."""

    part: FloatArray
    seen: FloatArray  # (2, h): at how many points

    @classmethod
    def none(cls, width: int) -> SideEvidence:
        """Nothing yet."""
        return cls(np.zeros((2, width)), np.zeros((2, width)))

    def take(self, known: KnownLayers, rows: FloatArray, found: Explained) -> None:
        """What gradients at these rows say of the neurons of the last layer."""
        for row, slopes in zip(rows, found.gradients, strict=True):
            values, own = _values_and_slopes(known, row)
            inverse = np.linalg.pinv(own, rcond=WEAKEST)
            clear = np.abs(np.diag(own @ inverse) - 1) < APART
            coefficients = slopes @ inverse
            part = np.abs(coefficients).max(axis=0) * np.linalg.norm(own, axis=1)
            size = np.linalg.norm(slopes, axis=1).max()
            if size == 0 or np.linalg.norm(slopes - coefficients @ own) > PART * size:  # a neuron is missing
                continue
            side = (values > 0).astype(int)
            which = np.flatnonzero(clear)
            self.part[side[which], which] = np.maximum(self.part[side[which], which], part[which] / size)
            self.seen[side[which], which] += 1

    @property
    def wrong(self) -> BoolArray:
        """Neurons that are on where their value is negative."""
        return np.asarray(self.part[0] > self.part[1])

    @property
    def doubtful(self) -> BoolArray:
        """Neurons of which no side, or each of them, has a part."""
        unclear = (self.part.max(axis=0) <= PART) | (self.part.min(axis=0) > PART)
        return np.asarray(unclear | (self.seen.min(axis=0) < 1))


def _values_and_slopes(known: KnownLayers, row: FloatArray) -> tuple[FloatArray, FloatArray]:
    local = known.local(row[None])
    width = len(known.layers[-1])
    return local.values[0][-width:], local.gradients[0][-width:]


def find_sides(
    known: KnownLayers, rows: FloatArray, found: Explained, ask: AskGradients, rng: np.random.Generator
) -> KnownLayers:
    """The same layers, their last one turned to the right sides; raises StageFailed where they do not show.

    Cost: a few rows where those that were asked do not say it.
    """
    evidence = SideEvidence.none(len(known.layers[-1]))
    few = rng.permutation(len(rows))[:MOST_BEFORE]
    evidence.take(known, rows[few], Explained(found.values[few], found.gradients[few]))
    if evidence.doubtful.any() or evidence.seen.min() < ROWS_A_SIDE:
        points = points_that_tell(known, evidence.seen, rng)
        if len(points):
            evidence.take(known, points, ask(points))
    if evidence.doubtful.any():
        reason = "gradients do not say on which side neurons are on"
        raise StageFailed(SIDES, reason, number=float(evidence.doubtful.sum()), limit=0.0)
    return known.with_sides(evidence.wrong)


def is_stray(known: KnownLayers, rows: FloatArray, found: Explained) -> BoolArray:
    """Rows (n,) whose gradients are no combination of the slopes of the last layer's neurons: one of it is missing.

    Where few neurons of the layers below are on, there is always such a combination, and nothing is seen.
    """
    stray = np.zeros(len(rows), dtype=bool)
    for i, (row, slopes) in enumerate(zip(rows, found.gradients, strict=True)):
        _, own = _values_and_slopes(known, row)
        left = slopes - (slopes @ np.linalg.pinv(own, rcond=WEAKEST)) @ own
        stray[i] = np.linalg.norm(left) > PART * np.linalg.norm(slopes, axis=1).max()
    return stray


def points_that_tell(known: KnownLayers, seen: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Points where coefficients of neurons are known that were not seen often enough on a side."""
    first = known.layers[0]
    size = np.sqrt(known.dim) * np.linalg.norm(first.weights, axis=1)
    values = size * np.exp(rng.standard_normal((POOL, len(first)))) * rng.choice([0.1, 1.0], (POOL, 1))
    back = np.linalg.pinv(first.weights)
    pool = (values - first.biases) @ back.T + rng.standard_normal((POOL, known.dim)) @ (
        np.eye(known.dim) - back @ first.weights
    )
    need, chosen = ROWS_A_SIDE - seen, []
    for number, row in enumerate(pool):
        value, own = _values_and_slopes(known, row)
        clear = np.abs(np.diag(own @ np.linalg.pinv(own, rcond=WEAKEST)) - 1) < APART
        side = (value > 0).astype(int)
        helps = clear & (need[side, np.arange(len(value))] > 0)
        if helps.any():
            chosen.append(number)
            which = np.flatnonzero(clear)
            need[side[which], which] -= 1
        if len(chosen) >= MOST_ROWS or (need <= 0).all():
            break
    return pool[chosen]


def with_outputs(known: KnownLayers, rows: FloatArray, found: Explained, rng: np.random.Generator) -> ReLUNetwork:
    """Layers whose sides are known, with the outputs that all gradients agree on; raises StageFailed where none do.

    A gradient is linear in the output weights: each input gives one equation for them at every row.
    """
    width = len(known.layers[-1])
    few = rng.permutation(len(rows))[: max(MOST_ROWS, ROWS_AN_OUTPUT * width)]
    few = few[~is_stray(known, rows[few], Explained(found.values[few], found.gradients[few]))]
    slopes = np.concatenate([known.local(rows[i : i + 1]).jacobian[0][:width].T for i in few])  # (n·d, width)
    wanted = np.concatenate([found.gradients[i].T for i in few])  # (n·d, m)
    outputs, _, rank, _ = np.linalg.lstsq(slopes, wanted, rcond=None)
    left = np.median(np.abs(slopes @ outputs - wanted))
    limit = PART * np.abs(wanted).max(initial=0.0)
    if rank < width or left > limit:
        raise StageFailed(SIDES, "gradients that no outputs explain", number=float(left), limit=float(limit))
    nearest = np.argsort(np.linalg.norm(rows, axis=1))[:MOST_ROWS]
    constant = np.median(found.values[nearest] - known.features(rows[nearest])[:, :width] @ outputs, axis=0)
    weights, biases = zip(*((layer.weights, layer.biases) for layer in known.layers), strict=True)
    return ReLUNetwork([*weights, outputs.T], [*biases, constant])
