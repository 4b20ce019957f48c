"""Rows of the last hidden layer from kinks of lines that no known neuron explains.

Where the layers below are on as a whole not all of its neurons have a crease. Elsewhere the jump of the gradient is a
combination of the rows of the layer below that are on there, so that a kink tells the weights of these units. Kinks
that agree on the units they share, up to a sign, are of one neuron, and tell its weights together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.deep_few_digits.first_hyperplanes import KinkGradients
from reluctant.extraction.deep_few_digits.layers_fit import Layer
from reluctant.extraction.deep_few_digits.orthant import SecondRow
from reluctant.extraction.few_digits.answer_store import Asked
from reluctant.extraction.few_digits.incomplete_lines import rank_one
from reluctant.extraction.few_digits.shared_hyperplanes import NormalKink, SmallFrame
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import FloatArray

ROUNDS, KINKS_A_ROUND = 8, 12
PLACE = 1e-4  # of an input, within which a kink is where a neuron is known to have one
MOST_OUTSIDE = 0.02  # part of a jump outside the span of the rows that are on
SAME = 0.1  # of the weights that two kinks share, and of their output directions: the fit needs two digits
KNOWN_SHARE = 0.7  # of the weights of a row
TOLD = 0.05  # error of a weight that a jump tells, of all its weights


@dataclass(frozen=True)
class Jump:
    """The values z (h,) of the layer below at a kink, and the jump there: weights (h,) of the units that are on."""

    z: FloatArray
    weights: FloatArray
    output: FloatArray
    error: float
    uncertain: BoolArray

    @property
    def told(self) -> BoolArray:
        """Units (h,) whose weights it tells."""
        return self.on & ~self.uncertain

    @property
    def on(self) -> BoolArray:
        """Units (h,) that are on."""
        return np.asarray(self.z > 0)


@dataclass
class _Neuron:
    """Jumps of one neuron, the first as it is, others with the sign that agrees with it."""

    jumps: list[Jump]
    weights: FloatArray  # (h,), NaN where no jump tells

    def sign(self, weights: FloatArray, output: FloatArray, same: float) -> float:
        """The sign with which these weights (h,), NaN where unknown, and outputs agree with its own; 0 if none does."""
        fewest = 2
        both = ~np.isnan(weights) & ~np.isnan(self.weights)
        mine, other = self.weights[both], weights[both]
        sign = float(np.sign(mine @ other))
        if both.sum() < fewest or np.linalg.norm(mine - sign * other) > same * np.linalg.norm(other):
            return 0.0
        first = self.jumps[0].output
        return 0.0 if len(first) > 1 and 1 - abs(first @ output) > same**2 / 2 else sign

    def join(self, jumps: list[Jump], weights: FloatArray) -> None:
        """More jumps, and what they tell."""
        self.jumps += jumps
        self.weights = np.where(np.isnan(self.weights), weights, self.weights)

    def row(self) -> SecondRow:
        """As a row of norm one; what no jump tells is 0."""
        whole = (jump for jump in self.jumps if not np.isnan(self.weights[jump.on]).any())
        first, v = next(whole, self.jumps[0]), np.nan_to_num(self.weights)
        size = float(np.linalg.norm(v))
        c = -float(v @ np.maximum(first.z, 0)) / size
        return SecondRow(v / size, c, first.error, np.full(len(v), first.error))

    @property
    def known(self) -> float:
        """Share of the weights."""
        return float(np.mean(~np.isnan(self.weights)))


class Neurons:
    """Neurons of a layer, from jumps: each jump joins the first neuron that it agrees with, or is of a new one.

    same: part of the weights that two share, by which they may differ.
    """

    def __init__(self, same: float = SAME) -> None:
        self.same = same
        self._found: list[_Neuron] = []

    def take(self, jump: Jump) -> None:
        """One more jump."""
        weights = np.where(jump.told, jump.weights, np.nan)
        for neuron in self._found:
            if sign := neuron.sign(weights, jump.output, self.same):
                neuron.join([jump], sign * weights)
                return
        self._found.append(_Neuron([jump], weights))

    def merge(self) -> None:
        """Make one of two neurons that agree on weights that other jumps have shown since."""
        apart: list[_Neuron] = []
        for neuron in sorted(self._found, key=lambda neuron: -len(neuron.jumps)):
            signs = [other.sign(neuron.weights, neuron.jumps[0].output, self.same) for other in apart]
            which = next((i for i, sign in enumerate(signs) if sign), None)
            if which is None:
                apart.append(neuron)
            else:
                apart[which].join(neuron.jumps, signs[which] * neuron.weights)
        self._found = apart

    def rows(self, least_known: float = KNOWN_SHARE, *, fewest: int = 2) -> list[SecondRow]:
        """Of neurons with so many jumps that tell this share of the weights."""
        enough = (each for each in self._found if len(each.jumps) >= fewest and each.known >= least_known)
        return [neuron.row() for neuron in enough]


def rows_of_kinks(
    asked: Asked,
    small: SmallFrame,
    below: list[Layer],
    gradients: KinkGradients,
    rows: list[SecondRow],
    neurons: Neurons | None = None,
) -> list[SecondRow]:
    """Rows besides those that are known. Cost: a gradient on both sides of each kink that they do not explain.

    below: layers below theirs, in the frame of the gradients. neurons: that other jumps have shown, and that count too.
    """
    neurons = Neurons() if neurons is None else neurons
    tried: set[NormalKink] = set()
    with asked.view.oracle.stage("second layer"):
        for _ in range(ROUNDS):
            known = [*rows, *neurons.rows(1.0, fewest=1)]
            kinks = [kink for kink in small.kinks if kink not in tried and not _explained(asked, below, kink, known)]
            kinks = sorted(kinks, key=lambda kink: kink.error)[:KINKS_A_ROUND]
            if not kinks:
                break
            tried.update(kinks)
            gradients.measure(kinks)
            for kink in kinks:
                jump = _jump(below, gradients, kink)
                if jump is not None:
                    neurons.take(jump)
    return neurons.rows()


def _values(below: list[Layer], y: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
    """Values (h,) of each layer at y (k,), the first coordinates of a frame, and their slopes (h, K) there."""
    (w, b), *others = below
    values, slopes = [np.asarray(w[:, : len(y)] @ y + b)], [w]
    for v, c in others:
        slopes.append(v @ (slopes[-1] * (values[-1] > 0)[:, None]))
        values.append(v @ np.maximum(values[-1], 0) + c)
    return values, slopes


def is_of_first(asked: Asked, w: FloatArray, b: FloatArray, y: FloatArray, place: float) -> bool:
    """True if a neuron of the first layer has its crease at y (k,), give or take `place` and a little."""
    place, w = place + PLACE * asked.view.size, w[:, : len(y)]
    return bool((np.abs(w @ y + b) < place * np.linalg.norm(w, axis=1)).any())


def _explained(asked: Asked, below: list[Layer], kink: NormalKink, rows: list[SecondRow]) -> bool:
    """True if a neuron of one of the layers is known to have its crease there."""
    k, place = len(kink.y), 6 * kink.sd + PLACE * asked.view.size
    if is_of_first(asked, *below[0], kink.y, 6 * kink.sd):
        return True
    values, slopes = _values(below, kink.y)
    for z, slope in zip(values[1:], slopes[1:], strict=True):
        if (np.abs(z) < place * np.linalg.norm(slope[:, :k], axis=1) + PLACE * np.linalg.norm(z)).any():
            return True
    z, hidden = values[-1], np.maximum(values[-1], 0)
    for row in rows:
        size = np.linalg.norm((row.v * (z > 0)) @ slopes[-1][:, :k])
        if abs(row.v @ hidden + row.c) < place * size + 8 * row.error * np.linalg.norm(hidden):
            return True
    return False


def _jump(below: list[Layer], gradients: KinkGradients, kink: NormalKink) -> Jump | None:
    """None where no step was straight, or another neuron bends there."""
    measured, most_error = gradients.known[kink], 0.05
    if measured is None or not measured.error < most_error:
        return None
    normal, amount, _ = rank_one(measured.gradients[1] - measured.gradients[0])
    values, slopes = _values(below, kink.y)
    return jump_of(values[-1], slopes[-1], normal, amount, measured.error)


def jump_of(z: FloatArray, slopes: FloatArray, normal: FloatArray, amount: FloatArray, error: float) -> Jump | None:
    """In weights of the layer below, with these values (h,) and slopes (h, k); None if they do not explain it."""
    on, size = z > 0, float(np.linalg.norm(amount))
    weights, errors = np.zeros((2, len(z)))
    weights[on] = np.linalg.lstsq(slopes[on].T, normal, rcond=1e-9)[0]
    if np.linalg.norm(weights @ slopes - normal) > max(MOST_OUTSIDE, 8 * error):
        return None
    errors[on] = error * np.linalg.norm(np.linalg.pinv(slopes[on].T, rcond=1e-9), axis=1)
    uncertain = errors > TOLD * np.linalg.norm(weights)
    return Jump(z, size * weights, amount / size, error, uncertain)
