"""Less of the answer: probabilities instead of values, the largest few of them, or the label alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluctant.defenses.base import Defense
from reluctant.errors import InvalidAnswer, InvalidInput
from reluctant.numerics import FloatArray
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Facts, Kind, Oracle
from reluctant.oracles.link import ROUNDED_PROBABILITY_SLACK
from reluctant.oracles.network import LINK_FUNCTIONS

__all__ = ["LabelsOnly", "Probabilities", "TopProbabilities", "labels_of"]


class Probabilities(Defense):
    """Probabilities (softmax, sigmoid) or log-probabilities (log-softmax) instead of values."""

    def __init__(self, inner: Oracle, link: str) -> None:
        super().__init__(inner)
        self.link = link

    def changes(self, facts: Facts) -> dict[str, Any]:
        """Answers are probabilities."""
        return {} if self.link == "log-softmax" else {"kind": Kind.PROBABILITIES}

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then squash."""
        return LINK_FUNCTIONS[self.link](self.inner.answer(rows))


class TopProbabilities(Defense):
    """The k largest probabilities of each answer; the others are 0, which is to say not told."""

    def __init__(self, inner: Oracle, k: int = 1) -> None:
        super().__init__(inner)
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= max(inner.outputs, 1):
            raise InvalidInput.about("top", got=repr(k), expected=f"a number of classes from 1 to {inner.outputs}")
        self.k = k

    def changes(self, facts: Facts) -> dict[str, Any]:
        """Answers are probabilities."""
        return {"kind": Kind.PROBABILITIES}

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then keep the largest; of equal ones the first."""
        p = self.inner.answer(rows)
        if not _of_classes(p):
            raise InvalidAnswer(
                "defense top: got answers that are no probabilities of classes, expected some. "
                "Put 'softmax' before it if the target answers values."
            )
        order = np.argsort(-p, axis=1, kind="stable")
        kept = np.zeros_like(p)
        np.put_along_axis(kept, order[:, : self.k], np.take_along_axis(p, order[:, : self.k], axis=1), axis=1)
        return kept


def _of_classes(p: FloatArray) -> bool:
    """True of probabilities that add up to one, or to less where some are not told."""
    slack, left, told = ROUNDED_PROBABILITY_SLACK * p.shape[1], 1 - p.sum(axis=1), (p != 0).all(axis=1)
    return bool((p >= 0).all() and (left >= -slack).all() and (left[told] <= slack).all())


class LabelsOnly(Defense):
    """The number of the largest output; of one output, whether it is positive (a probability: above one half)."""

    def changes(self, facts: Facts) -> dict[str, Any]:
        """One label a row."""
        return {"kind": Kind.LABELS, "outputs": 1 if facts.outputs != UNKNOWN_OUTPUTS else UNKNOWN_OUTPUTS}

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then choose."""
        return labels_of(self.inner.answer(rows), self.inner.facts.kind)[:, None].astype(np.float64)


def labels_of(answers: FloatArray, kind: Kind) -> Any:
    """The label (n,) that each answer (n, m) stands for."""
    if kind is Kind.LABELS:
        return answers[:, 0].astype(int)
    if answers.shape[1] > 1:
        return answers.argmax(axis=1)
    return (answers[:, 0] > (0.5 if kind is Kind.PROBABILITIES else 0.0)).astype(int)
