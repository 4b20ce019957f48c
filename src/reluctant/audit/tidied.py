"""Noisy probabilities, as one who asks puts them right before reading them through a link.

Noise leaves numbers below 0 and classes that do not add up to 1, which a link refuses. What is below 0 says no more
than 0 does; what does not add up is scaled. Answers that are probabilities pass as they are, to the last digit.
"""

from __future__ import annotations

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.oracles import Oracle
from reluctant.oracles.base import Wrapper
from reluctant.oracles.links import ROUNDED_PROBABILITY_SLACK, AnswerLink

__all__ = ["Tidied"]


class Tidied(Wrapper):
    """Answers that this link can read."""

    def __init__(self, inner: Oracle, link: AnswerLink) -> None:
        super().__init__(inner)
        self.link = link

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then put right what is no probability."""
        answers = self.inner.answer(rows)
        if self.link == "sigmoid":
            return np.asarray(np.clip(answers, 0.0, 1.0))
        if self.link == "tanh":
            return np.asarray(np.clip(answers, -1.0, 1.0))
        if self.link == "log-softmax":
            return np.asarray(answers - np.log(self.scale(np.exp(answers))))
        p = np.maximum(answers, 0.0)
        return np.asarray(p / self.scale(p))

    def scale(self, p: FloatArray) -> FloatArray:
        """What to divide each row by: 1 where rounding explains what it adds up to, NaN where nothing is left."""
        slack, total = ROUNDED_PROBABILITY_SLACK, p.sum(axis=1, keepdims=True)
        off = (total > 1 + slack * p.shape[1]) | (p.max(axis=1, keepdims=True) > 1 + slack)
        if self.link != "top-k":  # of the largest few there may be less
            off |= total < 1 - slack * p.shape[1]
        return np.where(total > 0, np.where(off, total, 1.0), np.nan)
