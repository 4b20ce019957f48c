"""Sides of a decision: sign, winning class or label, and the margin that makes a side sure.

A flip changes the sign of one output, of the margin of the winning class over each other one, or the label. A target
of probabilities changes side at one half, one of labels where the label changes. A network gives the values before
that. It changes side at 0, or where another class is the largest.

Near a boundary an answer is a small difference of large, rounded terms. So margins below a `SideLimit` say nothing: a
batch of another size may put them on the other side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.interface.noise import in_unit
from reluctant.messages import Remedy
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Oracle
from reluctant.oracles.base import Facts, Kind
from reluctant.oracles.links import UNDO_LINK, answer_ends

ANSWER_ROUNDINGS = 2.0  # an answer is a sum of a few numbers of its size
OWN_ROUNDINGS = 8.0  # of all that a network computes on the way to an answer, in units of its size
DECIDED = 8.0  # times the noise: smaller margins say nothing about a side
LEAST_EXACT = "float32"  # formats with fewer digits are added up in this one


@dataclass(frozen=True)
class SideLimit:
    """Margins that are no larger say nothing about a side.

    least: the margin that noise demands at every input. answers: the relative error of an answer. terms:
    the error of a sum over the inputs, for each unit of their norm.
    """

    least: float
    answers: float
    terms: float

    @classmethod
    def of(cls, number_format: str, slopes: FloatArray, least: float) -> SideLimit:
        """The limit for a target with answers in this format and these gradients (m, d)."""
        given, added = (unit_roundoff(each) for each in (number_format, LEAST_EXACT))
        return cls.of_sums(ANSWER_ROUNDINGS * given, ANSWER_ROUNDINGS * min(given, added), slopes, least)

    @classmethod
    def of_sums(cls, given: float, added: float, slopes: FloatArray, least: float) -> SideLimit:
        """The limit where answers err by a share of themselves (given) and of the terms of their sums (added)."""
        return cls(least, given, added * float(np.sqrt(slopes.shape[1]) * np.linalg.norm(slopes, axis=1).max()))

    def at(self, points: FloatArray, answers: FloatArray) -> FloatArray:
        """One (n,) for each of these points (n, d) with these answers (n, m)."""
        of_answers, of_terms = np.abs(answers).max(axis=1), np.linalg.norm(points, axis=1)
        return np.maximum(self.least, DECIDED * np.maximum(self.answers * of_answers, self.terms * of_terms))


class Sides(Protocol):
    """Which side of a boundary answers are on."""

    def smallest(self, values: FloatArray) -> FloatArray:
        """One number (n,) for each row of answers, negative on the other side."""

    def change(self, values: FloatArray) -> tuple[int, int] | None:
        """The classes before and at these answers (m,); None where the sign decides."""


@dataclass(frozen=True)
class SameLabel:
    """Two sides for answers that are labels: one label, and all other labels."""

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
        """The winning classes before and at these answers (m,); None where the sign decides."""
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


HALF_PROBABILITY = 0.5  # a probability of one output changes side there
LINK_MIDDLE = {"sigmoid": HALF_PROBABILITY, "tanh": 0.0}  # where one answer behind a link does
BEFORE_SIGMOID = Remedy("before-sigmoid", "flip", {"link": "sigmoid"})
COPY_AT_HALF = Remedy("copy-half", "flip", {"threshold": HALF_PROBABILITY})
COPY_AT_HALF_UNLINKED = Remedy("copy-half", "flip", {"link": "identity", "threshold": HALF_PROBABILITY})


def checked_threshold(threshold: float | None, outputs: int, *, linked: bool = False) -> None:
    """A threshold is one for one output, as it is answered; linked: it is read through a link."""
    if threshold is None:
        return
    if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number) or not np.isfinite(threshold):
        raise InvalidInput.about("threshold", got=repr(threshold), expected="a finite number")
    if linked:
        expected = "none: the values before a link change side where the largest does, or at 0"
        raise InvalidInput.about("threshold", got=f"{threshold:g} with a link", expected=expected)
    if outputs != 1:
        raise InvalidInput.about("threshold", got=f"{threshold:g} for {outputs} outputs", expected="one output")


def own_threshold(threshold: float | None, facts: Facts) -> float:
    """Where one output changes side: where it is said to, else at one half of a probability, else at 0."""
    chance = facts.kind is Kind.PROBABILITIES and facts.outputs == 1
    return (HALF_PROBABILITY if chance else 0.0) if threshold is None else float(threshold)


def crossed_threshold(sides: Sides, oracle: Oracle) -> float:
    """Where one output changes side, in the answers that the target itself gives."""
    facts, threshold = oracle.facts, sides.threshold if isinstance(sides, Margins) else 0.0
    halves = facts.saturates and not facts.reference and facts.link != "tanh"
    return HALF_PROBABILITY if halves else threshold


@dataclass(frozen=True)
class NetworkCopy:
    """A network in the place of a target, read as the target is.

    Arguments:
        network: it gives values before the target's link, where it has noted one; else what the target answers.
        facts: of the target.
        threshold: of the target's answers, None where nobody said.
    """

    network: ReLUNetwork
    facts: Facts
    threshold: float | None

    @classmethod
    def of(cls, network: ReLUNetwork, oracle: Oracle, threshold: float | None) -> Self:
        """Checked: it has the target's inputs, and its outputs or its classes."""
        facts = oracle.facts
        whole = facts.reference and network.outputs == facts.outputs + 1
        labels = facts.outputs == 1 and not facts.saturates
        if network.dim != facts.dim or not (whole or labels or network.outputs == facts.outputs):
            raise _unfit_network(network, facts)
        return cls(network.log_ratios() if whole else network, facts, threshold)

    @property
    def values_of_labels(self) -> bool:
        """True if the network has one output for each label of a target that answers labels."""
        return self.facts.outputs == 1 and self.network.outputs > 1

    @property
    def before_sigmoid(self) -> bool:
        """True if the network gives the values before a sigmoid, and the target those after it."""
        return self.network.link == "sigmoid" and self._before_link

    @property
    def _before_link(self) -> bool:
        """True if the network gives one value before a sigmoid or tanh, and the target the one after it."""
        return self.network.link in LINK_MIDDLE and self.network.outputs == 1 and not self.facts.saturates

    def margins(self, values: FloatArray) -> Margins:
        """The network's own, at an input with these values (m,) of it."""
        return Margins.at(values, self.facts.reference, self._own_threshold())

    def _own_threshold(self) -> float:
        if self.values_of_labels or not self._before_link:
            return own_threshold(self.threshold, self.facts)
        link = self.network.link
        low, high = answer_ends(link)
        p = LINK_MIDDLE[link] if self.threshold is None else self.threshold
        if not low < p < high:
            expected = f"between {low} and {high}: the network ends in a {link}"
            raise InvalidInput.about("threshold", got=f"{p:g}", expected=expected)
        return float(UNDO_LINK[link](np.array([p]))[0])

    def may_round(self, values: FloatArray, answers: FloatArray) -> bool:
        """True if 0 and 1 may be the network's values (m,) with few digits, and no labels."""
        if self.network.outputs != 1 or self.facts.kind is Kind.LABELS or not self._are_labels(answers):
            return False
        return bool(np.abs(values - answers[0]).max() <= HALF_PROBABILITY)

    def sides(self, answers: FloatArray) -> Sides:
        """The sides of the target, by its answers (n, m) at the input, where the network flips, and beyond."""
        before = answers[0]
        if self._are_labels(answers):
            return SameLabel(float(before[0]))
        if self.values_of_labels:
            raise _unfit_network(self.network, self.facts)
        chances = self.before_sigmoid and self.threshold is None and in_unit(answers)
        return Margins.at(
            before, self.facts.reference, HALF_PROBABILITY if chances else own_threshold(self.threshold, self.facts)
        )

    def _are_labels(self, answers: FloatArray) -> bool:
        """True of known labels; of whole numbers where the network has classes; of 0 and 1 alone."""
        if self.facts.outputs != 1 or self.facts.reference or self.facts.saturates:
            return False
        if self.facts.kind is Kind.LABELS or (self.threshold is None and np.isin(answers, (0.0, 1.0)).all()):
            return True
        return self.values_of_labels and np.array_equal(answers, np.round(answers))

    def agrees(self, own: Sides, target: Sides) -> bool:
        """False where both are known to be on different sides at the input."""
        return not (isinstance(own, Margins) and isinstance(target, Margins)) or own.winner == target.winner

    def other_units(self, answers: FloatArray) -> tuple[Remedy, ...]:
        """Other units to try where the network flips and the target, with these answers, does not."""
        signed = self.facts.outputs == 1 and self.threshold is None and not self.facts.saturates
        unsigned = signed and not self.before_sigmoid and in_unit(answers)
        return (BEFORE_SIGMOID, COPY_AT_HALF) if unsigned else ()

    def own_units(self, values: FloatArray) -> tuple[Remedy, ...]:
        """The remedies for other units where the network itself, with these values, does not flip."""
        signed = self.network.outputs == 1 and self._own_threshold() == 0 and not self.before_sigmoid
        return (COPY_AT_HALF_UNLINKED,) if signed and not self.facts.reference and in_unit(values) else ()


def _unfit_network(network: ReLUNetwork, facts: Facts) -> InvalidInput:
    others = ", or one for each label where it answers labels" if facts.outputs == 1 and not facts.saturates else ""
    others = f" with its link, or {facts.outputs + 1}, all its classes" if facts.reference else others
    return InvalidInput.about(
        "network", got=f"{network.dim} inputs and {network.outputs} outputs",
        expected=f"{facts.dim} and {facts.outputs}, as the target has{others}",
    )  # fmt: skip
