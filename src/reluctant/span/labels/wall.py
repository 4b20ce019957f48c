"""The wall of the label setting: an oracle that lets labels pass and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.oracles import Counting, Facts, Kind, Oracle, Wrapper

__all__ = ["LabelsOnly", "are_whole", "as_labels", "only_labels"]

HALF = 0.5  # tells 0 from 1, -1 from 1, and a probability from its complement


class LabelsOnly(Wrapper):
    """Answers with one label a row.

    Several outputs: the index of the largest. One output: itself if the target answers whole numbers, else whether it
    reaches the threshold. Which of the two is decided by the first answers that are not all the same.
    """

    def __init__(self, inner: Oracle, threshold: float | None = None) -> None:
        super().__init__(inner)
        self.threshold = threshold
        self.whole: bool | None = None if threshold is None else False
        if inner.facts.kind is Kind.LABELS and threshold is None:
            self.whole = True

    @property
    def facts(self) -> Facts:
        """One output, which is a label."""
        return replace(self.inner.facts, outputs=1, kind=Kind.LABELS, identity="")

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, keep the label alone; NaN stays NaN."""
        answers = self.inner.answer(rows)
        if self.whole is None and answers.shape[1] == 1 and (answers != answers[0]).any():
            self.whole = are_whole(answers)
        return as_labels(answers, self.threshold, whole=bool(self.whole))


def are_whole(answers: FloatArray) -> bool:
    """Whether all answers are whole numbers."""
    return bool((answers == np.round(answers)).all())


def as_labels(answers: FloatArray, threshold: float | None, *, whole: bool) -> FloatArray:
    """One label (n, 1) for every answer (n, m): the largest of several; of one itself if whole, else by threshold."""
    if answers.shape[1] > 1:
        return np.where(np.isnan(answers).any(axis=1), np.nan, answers.argmax(axis=1))[:, None]
    if whole:
        return answers
    return np.where(np.isnan(answers), np.nan, answers >= (HALF if threshold is None else threshold))


def only_labels(oracle: Counting, threshold: float | None = None) -> Counting:
    """The same opened target with the same ledger, seen through labels."""
    return Counting(LabelsOnly(oracle.inner, threshold), oracle.ledger, oracle.facts.domain)
