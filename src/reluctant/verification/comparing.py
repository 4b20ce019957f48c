"""Answers beside what a network gives: the units of errors, the errors, and how large they may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluctant.health.behind import Behind
from reluctant.networks import ReLUNetwork
from reluctant.networks.evaluation import evaluate
from reluctant.numerics import FloatArray, Noise, unit_roundoff
from reluctant.oracles.counting import Counting
from reluctant.oracles.link import link_of
from reluctant.oracles.lost_digits import lost_digits
from reluctant.verification.tolerances import EXACT_TOLERANCE, NOISE_FACTOR

__all__ = ["AT_USE", "SCALES", "Compared", "compare_answers", "lost_behind"]

SCALES = (0.1, 1.0, 10.0)
AT_USE = SCALES.index(1.0)


@dataclass(frozen=True)
class Compared:
    """Answers (n, m), the units of their errors, and the errors in these; groups (n,) are numbers of names.

    lost (n, m): what is not known of values for the digits that probabilities have lost; 0 of other answers.
    """

    answers: FloatArray
    unit: FloatArray
    errors: FloatArray
    groups: NDArray[np.intp]
    names: Sequence[str]
    lost: FloatArray

    @property
    def at_use(self) -> NDArray[np.bool_]:
        """Which rows (n,) are of the scale of use."""
        return np.asarray(self.groups == AT_USE)

    def largest(self) -> dict[str, FloatArray]:
        """The largest error of each row, by group."""
        return {name: self.errors[self.groups == k].max(axis=1) for k, name in enumerate(self.names)}

    def limits(self, noise: Noise) -> FloatArray:
        """Largest errors (n, m) accepted: more where the answers, and so their noise, are larger.

        An answer near zero has the noise of the sums it is made of: that of the answers around it.
        """
        sd = np.hypot(noise.absolute, noise.relative * np.maximum(np.abs(self.answers), self.unit)) + self.lost
        return np.asarray(np.maximum(EXACT_TOLERANCE, NOISE_FACTOR * sd / self.unit))


def compare_answers(
    network: ReLUNetwork,
    oracle: Counting,
    named: Sequence[tuple[str, FloatArray]],
    answers: FloatArray,
    told: Sequence[FloatArray] = (),
) -> Compared:
    """Of the rows by name, the scales first; told: what the target answered behind its link, if that is known."""
    predicted = evaluate(network, np.concatenate([rows for _, rows in named]), oracle.arrays)
    groups = np.repeat(np.arange(len(named)), [len(rows) for _, rows in named])
    unit = _units(answers, groups)
    behind = Behind.of(np.concatenate(told), link_of(oracle), ratios=oracle.facts.reference) if len(told) else None
    errors, lost = np.abs(answers - predicted) / unit, lost_behind(answers, oracle, behind)
    return Compared(answers, unit, errors, groups, [name for name, _ in named], lost)


def lost_behind(values: FloatArray, oracle: Counting, behind: Behind | None) -> FloatArray:
    """What (n, m) is not known of values, by the digits in which their probabilities were told."""
    if behind is None:
        return lost_digits(values, oracle)
    made_of_others = link_of(oracle) == "top-k"  # the one that is not told is what the others leave of 1
    return lost_digits(values, oracle, behind.number_format, grid=behind.on_a_grid or made_of_others)


def _units(answers: FloatArray, groups: NDArray[np.intp], at_use: int = AT_USE) -> FloatArray:
    """Units (n, m) of the errors: the output's deviation at the scale of use, or in the row's own group."""
    spread = np.array([answers[groups == k].std(axis=0) for k in range(groups.max() + 1)])
    # A bump shows on its creases alone: what random points see of it is rounding, and no unit.
    largest = spread.max(axis=0)
    spread[at_use] = np.where(spread[at_use] > EXACT_TOLERANCE * largest, spread[at_use], largest)
    size = np.abs(answers[groups == at_use]).max() or 1.0
    constant = spread[at_use] <= unit_roundoff(np.float64) * size
    spread[at_use, constant] = size  # a constant output is measured by the size of the answers
    return np.asarray(np.maximum(spread, spread[at_use])[groups])
