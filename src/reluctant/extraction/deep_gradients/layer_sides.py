"""Sides of a layer's neurons: a neuron that is off has no part in a gradient.

Where the slopes of a layer's neurons are independent, a gradient is one combination of them, and its coefficients are
zero for neurons that are off. Points where the layers below are mostly on have such slopes. With all sides known the
output weights follow from gradients, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.features import KnownLayers
from reluctant.extraction.any_depth.output_layer import Readout, without_outputs
from reluctant.extraction.deep_gradients.crease_normals import ON_CREASE, units, values_and_slopes
from reluctant.extraction.method import StageFailed
from reluctant.geometry.jumps import AskGradients
from reluctant.geometry.lines import BoolArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Explained
from reluctant.verification.cells import sparse_points

SIDES = "sides"
APART = 1e-6  # from 1, of a projector's diagonal: the coefficient of such a neuron is known
PART = 1e-6  # of a gradient: a neuron that is on has more of it
LITTLE = 1e-2  # of its part on the other side: a neuron has no part, but for rows that rounding puts there
POOL = 300  # points that some are chosen from, without asking
ROWS_A_SIDE = 2  # for each neuron on each side
MOST_ROWS = 60  # that are asked for; and of those asked before
MOST_BEFORE = 200
WEAKEST = 1e-9  # singular value of slopes that counts, of the largest
ROUNDS, MOST_AGREE = 4, 0.5  # of the solution for outputs; rows that must agree on them
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
            if on_crease(known, row):
                continue
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

    def off(self, *, last: bool) -> BoolArray:
        """Sides (2, h) on which neurons are off: they have no part there, and one on the other side.

        last: nothing hides a neuron of the last layer, so that it is on where it was not seen, if it is off elsewhere.
        """
        none = self.part <= np.maximum(PART, LITTLE * self.part[::-1])
        some = ~none
        return none & (some | (last & (self.seen == 0)))[::-1] & ((self.seen > 0) | some[::-1])

    def wrong(self, *, last: bool) -> BoolArray:
        """Neurons that are on where their value is negative."""
        return self.off(last=last)[1]

    def doubtful(self, *, last: bool) -> BoolArray:
        """Neurons of which no side, or each of them, has a part."""
        return np.asarray(~self.off(last=last).any(axis=0))


def on_crease(known: KnownLayers, row: FloatArray) -> bool:
    """True if rounding decides which side of a known neuron's crease a row is on."""
    values, slopes = values_and_slopes(known, row[None])
    unit = ON_CREASE * units(row[None])
    pairs = zip(values, slopes, strict=True)
    return any(bool((np.abs(z[0]) <= unit * np.linalg.norm(g[0], axis=1)).any()) for z, g in pairs)


def _values_and_slopes(known: KnownLayers, row: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, slopes = values_and_slopes(known, row[None])
    return values[-1][0], slopes[-1][0]


def find_sides(
    known: KnownLayers, rows: FloatArray, found: Explained, ask: AskGradients, rng: np.random.Generator, *,
    last: bool = False,
) -> KnownLayers:  # fmt: skip
    """The same layers, their last one turned to the right sides; raises StageFailed where they do not show.

    last: there is no layer above. Cost: a few rows where those that were asked do not say it.
    """
    evidence = SideEvidence.none(len(known.layers[-1]))
    few = rng.permutation(len(rows))[:MOST_BEFORE]
    evidence.take(known, rows[few], Explained(found.values[few], found.gradients[few]))
    if evidence.doubtful(last=last).any() or evidence.seen.min() < ROWS_A_SIDE:
        points = points_that_tell(known, evidence.seen, rng)
        if len(points):
            evidence.take(known, points, ask(points))
    doubtful = evidence.doubtful(last=last)
    if doubtful.any():
        reason = "gradients do not say on which side neurons are on"
        raise StageFailed(SIDES, reason, number=float(doubtful.sum()), limit=0.0)
    return known.with_sides(evidence.wrong(last=last))


def stray_and_clean(known: KnownLayers, rows: FloatArray, found: Explained) -> tuple[BoolArray, BoolArray]:
    """Rows (n,) whose gradients are no combination of the slopes of the last layer's neurons, and rows where they are.

    A stray row lacks a neuron. Where few neurons of the layers below are on, there is always a combination: such rows
    are neither.
    """
    stray, clean = np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    width, below = len(known.layers[-1]), KnownLayers(known.dim, known.layers[:-1])
    before = len(below.layers[-1]) if below.layers else known.dim
    for i, (row, slopes) in enumerate(zip(rows, found.gradients, strict=True)):
        on = before if not below.layers else int((below.features(row[None])[0, :before] > 0).sum())
        if on <= width or on_crease(known, row):
            continue
        _, own = _values_and_slopes(known, row)
        left = slopes - (slopes @ np.linalg.pinv(own, rcond=WEAKEST)) @ own
        stray[i] = np.linalg.norm(left) > PART * np.linalg.norm(slopes, axis=1).max()
        clean[i] = not stray[i]
    return stray, clean


def points_that_tell(known: KnownLayers, seen: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Points where coefficients of neurons are known that were not seen often enough on a side."""
    first = known.layers[0]
    size = np.sqrt(known.dim) * np.linalg.norm(first.weights, axis=1)
    values = size * np.exp(rng.standard_normal((POOL, len(first)))) * rng.choice([0.1, 1.0], (POOL, 1))
    if len(known.layers) == 1:
        values *= rng.choice([-1.0, 1.0], values.shape)
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


def with_outputs(
    known: KnownLayers, rows: FloatArray, found: Explained, ask: AskGradients, rng: np.random.Generator
) -> ReLUNetwork:
    """Layers whose sides are known, with the outputs that most gradients agree on; raises StageFailed where none are.

    A gradient is linear in the output weights: each input gives one equation for them at every row. Cost: two rows for
    each neuron that is on at no row asked before.
    """
    width = len(known.layers[-1])
    free = np.array([i for i in rng.permutation(len(rows)) if not on_crease(known, rows[i])], dtype=np.intp)
    rows, found = rows[free], Explained(found.values[free], found.gradients[free])
    never = ~(known.features(rows)[:, :width] > 0).any(axis=0)
    if never.any():
        pool = sparse_points(without_outputs(known, found.values.shape[1]), POOL, rng)
        on = known.features(pool)[:, :width] > 0
        fresh = pool[np.unique([i for k in np.flatnonzero(never) for i in np.flatnonzero(on[:, k])[:ROWS_A_SIDE]])]
        if len(fresh):
            more = ask(fresh)
            rows = np.concatenate([fresh, rows])
            pairs = zip((more.values, more.gradients), (found.values, found.gradients), strict=True)
            found = Explained(*(np.concatenate(pair) for pair in pairs))
    few = _covering(known.features(rows)[:, :width] > 0, max(MOST_ROWS, ROWS_AN_OUTPUT * width))
    each = [_values_and_slopes(known, rows[i]) for i in few]
    slopes = np.stack([np.where(values[:, None] > 0, own, 0.0).T for values, own in each])  # (n, d, width)
    wanted = np.stack([found.gradients[i].T for i in few])  # (n, d, m)
    limit = PART * float(np.abs(wanted).max(initial=0.0))
    kept = np.ones(len(few), dtype=bool)
    for _ in range(ROUNDS):  # without rows where a neuron is on that is missing
        outputs, _, rank, _ = np.linalg.lstsq(
            slopes[kept].reshape(-1, width), wanted[kept].reshape(-1, wanted.shape[2]), rcond=None
        )
        left = np.abs(slopes @ outputs - wanted).max(axis=(1, 2))
        if rank < width or left[kept].max() <= limit:
            break
        kept = left <= max(limit, float(np.median(left[kept])))
    agreeing = float((left <= limit).mean())
    if rank < width or agreeing < MOST_AGREE:
        raise StageFailed(SIDES, "gradients that no outputs explain", number=agreeing, limit=MOST_AGREE)
    nearest = np.argsort(np.linalg.norm(rows, axis=1))[:MOST_ROWS]
    constant = np.median(found.values[nearest] - known.features(rows[nearest])[:, :width] @ outputs, axis=0)
    weights, biases = zip(*((layer.weights, layer.biases) for layer in known.layers), strict=True)
    return ReLUNetwork([*weights, outputs.T], [*biases, constant])


def readout_from_gradients(known: KnownLayers, rows: FloatArray, found: Explained) -> Readout:
    """Output weights of all features, also of the layer below, by the gradients of rows that lie on no crease.

    A neuron of the last layer that is always on has no crease; its part is linear in the layer below.
    """
    free = np.array([i for i in range(len(rows)) if not on_crease(known, rows[i])], dtype=np.intp)
    width = len(known.layers[-1])
    on = known.features(rows[free])[:, :width] > 0
    few = free[_covering(on, max(MOST_ROWS, ROWS_AN_OUTPUT * width))]
    slopes = known.local(rows[few]).jacobian  # (n, F, d)
    features = slopes.shape[1]
    columns = slopes.transpose(0, 2, 1).reshape(-1, features)
    sizes = np.linalg.norm(columns, axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    wanted = found.gradients[few].transpose(0, 2, 1).reshape(len(columns), -1)
    solved = np.linalg.lstsq(columns / sizes, wanted, rcond=WEAKEST)[0]
    weights = (solved / sizes[:, None]).T
    near = few[np.argsort(np.linalg.norm(rows[few], axis=1))[:MOST_ROWS]]
    constants = np.median(found.values[near] - known.features(rows[near]) @ weights.T, axis=0)
    return Readout(weights, constants, float(np.std(found.values[near])) or 1.0)


def _covering(on: BoolArray, count: int) -> list[int]:
    """So many rows, or more: some at which each neuron is on, of patterns on (n, h), then the first ones."""
    chosen = {int(i) for k in range(on.shape[1]) for i in np.flatnonzero(on[:, k])[:ROWS_AN_OUTPUT]}
    return sorted(chosen | set(range(min(count, len(on)))))
