"""What answers look like besides values: labels, probabilities of classes, all or the largest few, or of sigmoids.

Probabilities may be told in percent. Then everything here is said of their hundredths. Answers t of a tanh are no
probabilities; they are known by the halves (1 + t) / 2, which are those of a sigmoid of twice the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from reluctant.health.answers import answer_kind, in_unit, is_one_hot
from reluctant.health.lines import ShortLines
from reluctant.health.log_odds import are_sigmoids, are_surely_sigmoids, curved_as_odds, may_be_sigmoids, saturated
from reluctant.health.told import Told, largest_told
from reluctant.health.whole import all_whole
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Kind
from reluctant.oracles.links import PERCENT

__all__ = ["Likeness"]

Far = Mapping[float, ShortLines]
TO_HALVES = (2.0, -1.0)  # of t: (1 + t) / 2


@dataclass(frozen=True)
class Likeness:
    """Fields of `Health` that say what the answers look like."""

    answers: Kind
    unit: bool
    sigmoids: bool
    like_sigmoids: bool
    curved_odds: bool
    saturated: bool
    told: Told | None
    percent: bool = False
    tanh: bool = False

    @classmethod
    def of(
        cls, near: ShortLines, far: Far, sd: float | None, off: float, *, linked: bool, curved: bool,
        scores: bool = False,
    ) -> Self:  # fmt: skip
        """Of answers near and far out with this noise, which are off by no more than so much.

        linked: they are values that were read from probabilities; curved: they are no values of a ReLU network; scores:
        they are whole numbers, and no labels.
        """
        no_labels = scores or not all(all_whole(lines.answers) for lines in far.values())
        plain = cls._as_they_are(near, far, sd, off, linked, curved)._unless(no_labels)
        if linked or plain.explained:
            return plain
        if sd is not None and _about_zero(near, far, off):
            halves = {scale: lines.divided(*TO_HALVES) for scale, lines in far.items()}
            tanh = are_surely_sigmoids(near.divided(*TO_HALVES), halves, sd / 2)
            return replace(plain, tanh=True, saturated=saturated(halves, sd / 2)) if tanh else plain
        if not _up_to_a_hundred(near, far, off):
            return plain
        scaled = {scale: lines.divided(PERCENT) for scale, lines in far.items()}
        hundredths = cls._as_they_are(
            near.divided(PERCENT), scaled, None if sd is None else sd / PERCENT, off / PERCENT, linked, curved
        )._unless(no_labels)
        return replace(hundredths, percent=True) if hundredths.explained else plain

    @classmethod
    def _as_they_are(cls, near: ShortLines, far: Far, sd: float | None, off: float, linked: bool, curved: bool) -> Self:
        no_values = curved or bool(far)  # far out values would not stay below 1
        told = None if linked else largest_told(_everywhere(near, far), off, no_values=no_values)
        known = None if told is None else Kind.PROBABILITIES
        one_hot = is_one_hot(near.answers)
        return cls(
            answers=Kind.LABELS if one_hot else known or answer_kind(near.answers, off),
            unit=in_unit(near.finite_answers, off),
            sigmoids=sd is not None and not linked and are_sigmoids(near, far, sd),
            like_sigmoids=sd is not None and not linked and may_be_sigmoids(near, far, sd),
            curved_odds=sd is not None and curved_as_odds(near, sd),
            saturated=sd is not None and saturated(far, sd),
            told=None if one_hot else told,
        )

    def _unless(self, no_labels: bool) -> Self:
        """The same, or values where it is known that they are no labels."""
        return replace(self, answers=Kind.VALUES) if no_labels and self.answers is Kind.LABELS else self

    @property
    def explained(self) -> bool:
        """True if they look like something else than values."""
        return self.answers is not Kind.VALUES or self.sigmoids or self.like_sigmoids


def _everywhere(near: ShortLines, far: Far) -> FloatArray:
    return np.concatenate([near.answers, *(lines.answers for lines in far.values())])


def _about_zero(near: ShortLines, far: Far, off: float) -> bool:
    """True if all answers lie between -1 and 1, some below 0."""
    answers = _everywhere(near, far)
    return bool(np.all(np.abs(answers) <= 1 + off) and np.any(answers < -off))


def _up_to_a_hundred(near: ShortLines, far: Far, off: float) -> bool:
    """True if all answers lie between 0 and 100, and some beyond 1."""
    answers = _everywhere(near, far)
    told = answers[~np.isnan(answers)]
    return in_unit(told / PERCENT, off / PERCENT) and not in_unit(told, off)
