"""Rows of the second layer from kinks of lines that no known neuron explains.

Where the first layer is on as a whole not all second-layer neurons have a crease. Elsewhere the jump of the gradient
is a combination of the rows that are on there, so that a kink tells the weights of these units. Kinks that agree on
the units they share, up to a sign, are of one neuron, and tell its weights together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.deep_few_digits.first_hyperplanes import FirstLayer, KinkGradients
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


@dataclass(frozen=True)
class _Jump:
    """The values z (h,) of the first layer at a kink, and the jump there: weights (h,) of the units that are on."""

    z: FloatArray
    weights: FloatArray
    output: FloatArray
    error: float

    @property
    def on(self) -> BoolArray:
        """Units (h,) that are on."""
        return np.asarray(self.z > 0)


@dataclass
class _Neuron:
    """Jumps of one neuron, the first as it is, others with the sign that agrees with it."""

    jumps: list[_Jump]
    weights: FloatArray  # (h,), NaN where no jump tells

    def takes(self, jump: _Jump) -> bool:
        """Join a jump that agrees; False if it does not."""
        fewest = 2
        both = jump.on & ~np.isnan(self.weights)
        mine, other = self.weights[both], jump.weights[both]
        sign = np.sign(mine @ other)
        if both.sum() < fewest or np.linalg.norm(mine - sign * other) > SAME * np.linalg.norm(other):
            return False
        first = self.jumps[0].output
        if len(first) > 1 and 1 - abs(first @ jump.output) > SAME**2 / 2:
            return False
        self.jumps.append(jump)
        self.weights = np.where(np.isnan(self.weights) & jump.on, sign * jump.weights, self.weights)
        return True

    def row(self) -> SecondRow:
        """As a row of norm one; what no jump tells is 0."""
        first, v = self.jumps[0], np.nan_to_num(self.weights)
        size = float(np.linalg.norm(v))
        c = -float(v @ np.maximum(first.z, 0)) / size
        return SecondRow(v / size, c, first.error, np.full(len(v), first.error))

    @property
    def known(self) -> float:
        """Share of the weights."""
        return float(np.mean(~np.isnan(self.weights)))


def rows_of_kinks(
    asked: Asked, small: SmallFrame, layer: FirstLayer, gradients: KinkGradients, rows: list[SecondRow]
) -> list[SecondRow]:
    """Rows besides those that are known. Cost: a gradient on both sides of each kink that they do not explain."""
    neurons: list[_Neuron] = []
    tried: set[NormalKink] = set()
    with asked.view.oracle.stage("second layer"):
        for _ in range(ROUNDS):
            known = [*rows, *(neuron.row() for neuron in neurons if neuron.known == 1)]
            kinks = [kink for kink in small.kinks if kink not in tried and not _explained(asked, layer, kink, known)]
            kinks = sorted(kinks, key=lambda kink: kink.error)[:KINKS_A_ROUND]
            if not kinks:
                break
            tried.update(kinks)
            gradients.measure(kinks)
            for kink in kinks:
                jump = _jump(layer, gradients, kink)
                if jump is not None and not any(neuron.takes(jump) for neuron in neurons):
                    neurons.append(_Neuron([jump], np.where(jump.on, jump.weights, np.nan)))
    return [neuron.row() for neuron in neurons if len(neuron.jumps) > 1 and neuron.known >= KNOWN_SHARE]


def _values(layer: FirstLayer, kink: NormalKink) -> FloatArray:
    """Of the first layer (h,) at a kink, whose coordinates are the first ones of the frame."""
    return np.asarray(layer.w[:, : len(kink.y)] @ kink.y + layer.b)


def is_of_first(asked: Asked, w: FloatArray, b: FloatArray, y: FloatArray, place: float) -> bool:
    """True if a neuron of the first layer has its crease at y (k,), give or take `place` and a little."""
    place, w = place + PLACE * asked.view.size, w[:, : len(y)]
    return bool((np.abs(w @ y + b) < place * np.linalg.norm(w, axis=1)).any())


def _explained(asked: Asked, layer: FirstLayer, kink: NormalKink, rows: list[SecondRow]) -> bool:
    """True if a neuron of either layer is known to have its crease there."""
    k, z = len(kink.y), _values(layer, kink)
    place = 6 * kink.sd + PLACE * asked.view.size
    if is_of_first(asked, layer.w, layer.b, kink.y, 6 * kink.sd):
        return True
    hidden = np.maximum(z, 0)
    for row in rows:
        slope = np.linalg.norm((row.v * (z > 0)) @ layer.w[:, :k])
        if abs(row.v @ hidden + row.c) < place * slope + 8 * row.error * np.linalg.norm(hidden):
            return True
    return False


def _jump(layer: FirstLayer, gradients: KinkGradients, kink: NormalKink) -> _Jump | None:
    """None where no step was straight, or another neuron bends there."""
    measured, most_error = gradients.known[kink], 0.05
    if measured is None or not measured.error < most_error:
        return None
    normal, amount, _ = rank_one(measured.gradients[1] - measured.gradients[0])
    z, size = _values(layer, kink), float(np.linalg.norm(amount))
    on = z > 0
    weights = np.zeros(len(z))
    weights[on] = np.linalg.lstsq(layer.w[on].T, normal, rcond=1e-9)[0]
    outside = np.linalg.norm(weights @ layer.w - normal)
    if outside > max(MOST_OUTSIDE, 8 * measured.error):
        return None
    return _Jump(z, size * weights, amount / size, measured.error)
