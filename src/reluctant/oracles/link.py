"""Undo the last step of a classifier, so that its answers are piecewise linear again.

softmax: log-ratios to the first class, log(p_k / p_0), k ≥ 1: one output less than there are classes.
sigmoid: the logit log(p / (1 - p)) of every output. A probability of exactly 0 or 1 gives an infinite
answer: `query` refuses it, `answer` passes it on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reluctant.errors import InvalidAnswer, InvalidInput
from reluctant.networks.network import LINKS, Link
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Facts, Kind, Oracle, Wrapper

__all__ = ["Linked"]

# A served probability may be rounded to a few decimals; beyond this it is no probability.
ROUNDED_PROBABILITY_SLACK = 1e-2


class Linked(Wrapper):
    """Values before a softmax or sigmoid, from the probabilities after it."""

    def __init__(self, inner: Oracle, link: Link) -> None:
        if link not in LINKS or link == "identity":
            raise InvalidInput.about("link", got=repr(link), expected="'softmax' or 'sigmoid'")
        if link == "softmax" and inner.outputs < 2:
            raise InvalidInput.about(
                "link", got=f"'softmax' for {inner.outputs} output", expected="two classes or more",
                fix="One probability is link='sigmoid'.",
            )  # fmt: skip
        super().__init__(inner)
        self.link = link

    @property
    def facts(self) -> Facts:
        """Facts of the values before the link."""
        inner = self.inner.facts
        outputs = inner.outputs - 1 if self.link == "softmax" else inner.outputs
        identity = f"{inner.identity} before {self.link}" if inner.identity else ""
        outputs, softmax = max(outputs, UNKNOWN_OUTPUTS), self.link == "softmax"
        return replace(inner, outputs=outputs, kind=Kind.VALUES, identity=identity, reference=softmax)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then undo the link."""
        p = self.inner.answer(rows)
        self._check_probabilities(p)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.link == "softmax":
                return np.log(p[:, 1:]) - np.log(p[:, :1])
            return np.log(p) - np.log1p(-p)

    def _check_probabilities(self, p: FloatArray) -> None:
        slack = ROUNDED_PROBABILITY_SLACK
        bad = (p < -unit_roundoff(np.float32)) | (p > 1 + slack)
        if self.link == "softmax":
            bad = bad | (np.abs(p.sum(axis=1, keepdims=True) - 1) > slack * p.shape[1])
        if bad.any():
            row = int(np.flatnonzero(bad.any(axis=1))[0])
            raise InvalidAnswer(
                f"link: got {np.array2string(p[row], threshold=6, precision=4)} in row {row}, expected "
                f"probabilities for link='{self.link}'. Use link='identity' if the target answers values."
            )
