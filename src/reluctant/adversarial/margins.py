"""What has to change sign: the output itself, the margin of the winning class over each of the others; or the label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from reluctant.numerics import FloatArray

__all__ = ["Margins", "SameLabel", "Sides", "Toward"]


class Sides(Protocol):
    """Which side of a boundary answers are on."""

    def smallest(self, values: FloatArray) -> FloatArray:
        """One number (n,) for each row of answers, negative on the other side."""

    def change(self, values: FloatArray) -> tuple[int, int] | None:
        """The classes before and at these answers (m,); None where a sign is looked at."""


@dataclass(frozen=True)
class SameLabel:
    """The side of answers that are labels: that of one label, and that of all others."""

    label: float

    def smallest(self, values: FloatArray) -> FloatArray:
        """1 for this label, -1 for any other one."""
        return np.where(values[:, 0] == self.label, 1.0, -1.0)

    def change(self, values: FloatArray) -> tuple[int, int]:
        """The two labels."""
        return int(self.label), int(values[0])


@dataclass(frozen=True)
class Toward:
    """The margin (m,) that a linear target would flip first, its gradient (d,), and the change (d,) that does it."""

    form: FloatArray
    slope: FloatArray
    change: FloatArray


@dataclass(frozen=True)
class Margins:
    """Linear forms (r, m) of the answers, all positive at an input; it is flipped where one of them is negative.

    One output: its own sign, or on which side of a threshold it is. Several: the winner minus each other one.

    Arguments:
        forms: one row a rival.
        classes: (classes, m) takes answers to one value a class; None for a sign.
        winner: the class that is ahead at the input; of a sign, 1 above the threshold and 0 below.
        threshold: at which one output changes side.
    """

    forms: FloatArray
    classes: FloatArray | None
    winner: int
    threshold: float = 0.0

    @classmethod
    def at(cls, values: FloatArray, reference: bool = False, threshold: float = 0.0) -> Margins:
        """The margins at an input with these answers (m,).

        With a reference the answers are log-ratios to a class in front of them whose own value is zero.
        """
        outputs = len(values)
        if outputs == 1 and not reference:
            above = bool(values[0] >= threshold)
            return cls(np.array([[1.0 if above else -1.0]]), None, int(above), threshold)
        classes = np.eye(outputs)
        if reference:
            classes = np.concatenate([np.zeros((1, outputs)), classes])
        winner = int(np.argmax(classes @ values))
        return cls(np.delete(classes[winner] - classes, winner, axis=0), classes, winner)

    def smallest(self, values: FloatArray) -> FloatArray:
        """The smallest margin (n,) of each row of answers."""
        return np.asarray(((values - self.threshold) @ self.forms.T).min(axis=1))

    def change(self, values: FloatArray) -> tuple[int, int] | None:
        """The winning classes before and at these answers (m,); None where a sign is looked at."""
        return None if self.classes is None else (self.winner, int(np.argmax(self.classes @ values)))

    def toward_boundary(
        self, values: FloatArray, gradients: FloatArray, back: FloatArray, least_slope: float
    ) -> Toward | None:
        """The shortest change of an input that flips it, if the target were linear; None if it is flat.

        values (m,) and gradients (m, d) are those of a point from which `back` (d,) leads to the input.
        """
        slopes = self.forms @ gradients
        margins = self.forms @ (values - self.threshold) + slopes @ back
        with np.errstate(over="ignore"):  # answers close to the largest number
            norms = np.linalg.norm(slopes, axis=1)
        open_ones = np.flatnonzero((margins > 0) & (norms > least_slope))
        if not len(open_ones):
            return None
        nearest = open_ones[np.argmin(margins[open_ones] / norms[open_ones])]
        change = -margins[nearest] / norms[nearest] ** 2 * slopes[nearest]
        return Toward(self.forms[nearest], slopes[nearest], change)
