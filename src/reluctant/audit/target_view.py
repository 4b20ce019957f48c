"""The target as the steps see it: outputs selected, probabilities cleaned, link undone, inputs bounded."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from reluctant.domains import Domain
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting, Linked, Oracle, Selected
from reluctant.oracles.base import Wrapper
from reluctant.oracles.links import ROUNDED_PROBABILITY_SLACK, AnswerLink, PlainProbabilities, ProbabilityFormat


class Tidied(Wrapper):
    """Noisy probabilities, put right so that this link can read them.

    Noise leaves numbers below 0 and classes that do not add up to 1, which a link refuses. What is below 0 says no more
    than 0 does; what does not add up is scaled. Answers that are probabilities pass as they are, to the last digit.
    """

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


def seen(
    oracle: Counting,
    link: AnswerLink,
    output: int | None,
    inside: Domain | None = None,
    *,
    noisy: bool = False,
    written: ProbabilityFormat | None = None,
    without: Collection[int] = (),
) -> Counting:
    """The same target as it is looked at: its probabilities turned back into values, one output of many, in a range.

    noisy: they have noise on them, and are put right before a link reads them; written: they are not written plainly;
    without: outputs that are left out before all else.
    """
    kept = [k for k in range(oracle.outputs) if k not in without]
    rest = Selected(oracle.inner, kept) if without else oracle.inner
    plain = rest if written is None else PlainProbabilities(rest, written)
    answered = Tidied(plain, link) if noisy and link != "identity" else plain
    values = answered if link == "identity" else Linked(answered, link)
    chosen = values if output is None else Selected(values, output)
    return Counting(chosen, oracle.ledger, oracle.facts.domain if inside is None else inside)
