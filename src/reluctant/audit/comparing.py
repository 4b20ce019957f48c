"""Networks rebuilt from defended answers or trained on them, held against the model at the honest inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reluctant.audit.leak import Rebuilt
from reluctant.audit.tidied import Tidied
from reluctant.defenses.defense import labels_of
from reluctant.learning.student import commonest_share
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.numerics import FloatArray
from reluctant.oracles import Kind, Oracle
from reluctant.oracles.adapters.callable import LINK_FUNCTIONS
from reluctant.oracles.links import AnswerLink, Linked
from reluctant.results import Result

__all__ = ["TO_REFERENCE", "Beside"]

TO_REFERENCE = ("softmax", "log-softmax", "top-k")  # links that leave log-ratios to the first class


@dataclass(frozen=True)
class Beside:
    """The model with all its digits, honest inputs (n, d), and how answers are read.

    own_link: what undoes the model's own answers; link: what undoes the defended ones; labels: nothing else is left.
    """

    model: Oracle
    inputs: FloatArray
    own_link: AnswerLink
    link: AnswerLink
    labels: bool

    def rebuilt(self, found: Rebuilt) -> Rebuilt:
        """With the errors of a network that gives values as they are read."""
        network = found.result.network
        return found if network is None else self.by_values(found, network(self.inputs))

    def trained(self, found: Rebuilt) -> Rebuilt:
        """With those of a trained one, in the terms in which it was trained."""
        network = found.result.network
        if network is None:
            return found
        if self.labels:
            return self.by_labels(found, network(self.inputs))
        if self.as_answered(found.result):
            return _telling(self.by_answers(found, network(self.inputs)))
        given = network.log_ratios() if self.reference else network
        return _telling(self.by_values(found, given(self.inputs)))

    def as_answered(self, student: Result) -> bool:
        """True if answers have a link, and the student did not undo it as the one who asks does."""
        undone = student.evidence["link"]
        if self.reference:
            return undone == "sigmoid"  # noise had made them look independent
        as_it_is = undone == "identity"
        return not as_it_is if self.link == "identity" else self.link in ELEMENTWISE_LINKS and as_it_is

    def by_values(self, found: Rebuilt, values: FloatArray) -> Rebuilt:
        """Beside the values that answers are read as."""
        return _compared(found, self.values(), values, self.reference)

    def by_answers(self, found: Rebuilt, values: FloatArray) -> Rebuilt:
        """Beside the answers as they are; of one-hot ones the labels alone."""
        true, said = self.model.query(self.inputs), LINK_FUNCTIONS[found.result.evidence["link"]](values)
        beside = _compared(found, true, said, False, Kind.VALUES if self.link == "tanh" else Kind.PROBABILITIES)
        sized = found.result.evidence["accuracy"].error is not None
        return beside if sized else replace(beside, error=None, largest=None)

    def by_labels(self, found: Rebuilt, values: FloatArray) -> Rebuilt:
        """Of a network trained on labels: how often it gives the same one."""
        codes = np.asarray(found.result.evidence["labels"])
        true = labels_of(self.model.query(self.inputs), self.model.facts.kind)
        same = codes[values.argmax(axis=1)] == true
        return replace(found, agreement=float(same.mean()), commonest=commonest_share(true))

    @property
    def reference(self) -> bool:
        """True if what is rebuilt are log-ratios to the first class."""
        return self.link in TO_REFERENCE

    def values(self) -> FloatArray:
        """What a rebuilt network should give at the inputs."""
        if self.own_link != "identity":
            return Linked(Tidied(self.model, self.own_link), self.own_link).answer(self.inputs)
        values = self.model.query(self.inputs)
        return values[:, 1:] - values[:, :1] if self.reference else values


def _telling(student: Rebuilt) -> Rebuilt:
    """Without its labels where it has an error and one label alone is always right: they tell nothing then."""
    told = student.error is None or student.commonest is None or student.commonest < 1
    return student if told else replace(student, agreement=None, commonest=None)


def _compared(
    rebuilt: Rebuilt, true: FloatArray, found: FloatArray, reference: bool, kind: Kind = Kind.VALUES
) -> Rebuilt:
    """What the network gives at the inputs beside what it should give."""
    finite = np.isfinite(true).all(axis=1)  # an infinite log-ratio is a class that is certain to the last digit
    if not finite.any():
        return rebuilt
    true, found = true[finite], found[finite]
    spread = true.std(axis=0)
    errors = np.abs(found - true) / np.where(spread > 0, spread, 1.0)
    labels = _labels(true, reference, kind)
    same, alone = float((_labels(found, reference, kind) == labels).mean()), commonest_share(labels)
    rms, largest = float(np.sqrt(np.mean(errors**2))), float(errors.max())
    return replace(rebuilt, error=rms, largest=largest, agreement=same, commonest=alone)


def _labels(values: FloatArray, reference: bool, kind: Kind) -> Any:
    with_first = np.column_stack([np.zeros(len(values)), values]) if reference else values
    return labels_of(with_first, kind)
