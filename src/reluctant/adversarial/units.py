"""In which units a target and a network that stands for it change side.

A target that answers probabilities changes side at one half, and one that answers labels where the label is another;
a network gives the values before that, and changes side at 0, or where another class is the largest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from reluctant.adversarial.margins import Margins, SameLabel, Sides
from reluctant.errors import InvalidInput
from reluctant.health.answers import in_unit
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Oracle
from reluctant.oracles.base import Facts, Kind
from reluctant.oracles.link import UNDO, link_of
from reluctant.oracles.link_words import ends_of

__all__ = ["HALF", "Copy", "checked_threshold", "crossed", "own_threshold"]

HALF = 0.5  # a probability of one output changes side there
MIDDLE = {"sigmoid": HALF, "tanh": 0.0}  # where one answer behind a link does
NO_SIGN = (
    "The answers lie between 0 and 1, and have no sign. If they are probabilities and the network gives the values "
    "before a sigmoid, read them through their link, link='sigmoid' (--link sigmoid); if it gives probabilities, one "
    "half is the boundary, threshold=0.5 (--threshold 0.5)."
)
NETWORK_HAS_NO_SIGN = (
    "Its values lie between 0 and 1: if they are probabilities, one half is the boundary, threshold=0.5 "
    "(--threshold 0.5, and no --link)."
)


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
    return (HALF if chance else 0.0) if threshold is None else float(threshold)


def crossed(sides: Sides, oracle: Oracle) -> float:
    """Where one output changes side, in the answers that the target itself gives."""
    facts, threshold = oracle.facts, sides.threshold if isinstance(sides, Margins) else 0.0
    halves = facts.saturates and not facts.reference and link_of(oracle) != "tanh"
    return HALF if halves else threshold


@dataclass(frozen=True)
class Copy:
    """A network that stands for a target, as the target is read.

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
            raise _unfit(network, facts)
        return cls(network.log_ratios() if whole else network, facts, threshold)

    @property
    def values_of_labels(self) -> bool:
        """True if the network has one output for each label of a target that answers labels."""
        return self.facts.outputs == 1 and self.network.outputs > 1

    @property
    def before_sigmoid(self) -> bool:
        """True if the network gives the values before a sigmoid, and the target what comes after it."""
        return self.network.link == "sigmoid" and self._before_link

    @property
    def _before_link(self) -> bool:
        """The same of a sigmoid or tanh."""
        return self.network.link in MIDDLE and self.network.outputs == 1 and not self.facts.saturates

    def margins(self, values: FloatArray) -> Margins:
        """The network's own, at an input with these values (m,) of it."""
        return Margins.at(values, self.facts.reference, self._own_threshold())

    def _own_threshold(self) -> float:
        if self.values_of_labels or not self._before_link:
            return own_threshold(self.threshold, self.facts)
        link = self.network.link
        low, high = ends_of(link)
        p = MIDDLE[link] if self.threshold is None else self.threshold
        if not low < p < high:
            expected = f"between {low} and {high}: the network ends in a {link}"
            raise InvalidInput.about("threshold", got=f"{p:g}", expected=expected)
        return float(UNDO[link](np.array([p]))[0])

    def may_round(self, values: FloatArray, answers: FloatArray) -> bool:
        """True if 0 and 1 may be the network's values (m,) with few digits, and no labels."""
        if self.network.outputs != 1 or self.facts.kind is Kind.LABELS or not self._are_labels(answers):
            return False
        return bool(np.abs(values - answers[0]).max() <= HALF)

    def sides(self, answers: FloatArray) -> Sides:
        """Those of the target, which gives these answers (n, m) at the input, where the network flips, and beyond."""
        before = answers[0]
        if self._are_labels(answers):
            return SameLabel(float(before[0]))
        if self.values_of_labels:
            raise _unfit(self.network, self.facts)
        chances = self.before_sigmoid and self.threshold is None and in_unit(answers)
        return Margins.at(before, self.facts.reference, HALF if chances else own_threshold(self.threshold, self.facts))

    def _are_labels(self, answers: FloatArray) -> bool:
        """True of what is known to be labels; of whole numbers where the network has classes; of 0 and 1 alone."""
        if self.facts.outputs != 1 or self.facts.reference or self.facts.saturates:
            return False
        if self.facts.kind is Kind.LABELS or (self.threshold is None and np.isin(answers, (0.0, 1.0)).all()):
            return True
        return self.values_of_labels and np.array_equal(answers, np.round(answers))

    def agrees(self, own: Sides, target: Sides) -> bool:
        """False where both are known to be on different sides at the input."""
        return not (isinstance(own, Margins) and isinstance(target, Margins)) or own.winner == target.winner

    def hint(self, answers: FloatArray) -> str:
        """What may be wrong with the units where the network flips and the target, with these answers, does not."""
        signed = self.facts.outputs == 1 and self.threshold is None and not self.facts.saturates
        return NO_SIGN if signed and not self.before_sigmoid and in_unit(answers) else ""

    def own_hint(self, values: FloatArray) -> str:
        """The same where the network, with these values, does not flip itself."""
        signed = self.network.outputs == 1 and self._own_threshold() == 0 and not self.before_sigmoid
        return NETWORK_HAS_NO_SIGN if signed and not self.facts.reference and in_unit(values) else ""


def _unfit(network: ReLUNetwork, facts: Facts) -> InvalidInput:
    others = ", or one for each label where it answers labels" if facts.outputs == 1 and not facts.saturates else ""
    others = f" with its link, or {facts.outputs + 1}, all its classes" if facts.reference else others
    return InvalidInput.about(
        "network", got=f"{network.dim} inputs and {network.outputs} outputs",
        expected=f"{facts.dim} and {facts.outputs}, as the target has{others}",
    )  # fmt: skip
