"""Undo the last step of a model, so that its answers are piecewise linear again.

softmax: log-ratios to the first class, log(p_k / p_0), k ≥ 1: one output less than there are classes.
log-softmax: the same from log-probabilities. sigmoid: the logit log(p / (1 - p)) of every output.
tanh: artanh(t) of every output, which are numbers between -1 and 1 and no probabilities.
top-k: as softmax where all probabilities but one are told and the last one follows; NaN where more are missing.

Where a probability is exactly 0 or 1, or a tanh -1 or 1, the answer is infinite: it is certain to the last digit, and
nothing more can be read there. `query` refuses such rows and says so, `answer` passes them on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reluctant.errors import InvalidInput, LinkMismatch
from reluctant.networks.network import LINKS, OF_EACH_VALUE, Link
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Facts, Kind, Oracle, Wrapper
from reluctant.oracles.link_words import EXPECTED, MOVED, VALUES, ends_of
from reluctant.oracles.plain import in_percent

__all__ = [
    "ANSWER_LINKS",
    "NOISY",
    "ROUNDED_PROBABILITY_SLACK",
    "UNDO",
    "AnswerLink",
    "Linked",
    "ToFirst",
    "all_told",
    "last_told",
    "link_of",
    "rounding_of",
    "written_link",
]

AnswerLink: TypeAlias = Link | Literal["top-k"]
ANSWER_LINKS: tuple[AnswerLink, ...] = (*LINKS, "top-k")

# A served probability may be rounded to a few decimals; beyond this it is no probability.
ROUNDED_PROBABILITY_SLACK = 1e-2
ROUNDED_TO_ONE_DECIMAL = 0.05 + unit_roundoff(np.float32)  # the most that this changes one of them

NOISY = 0.1  # beyond 0 and 1 by less than this, numbers may be probabilities with noise

# Independent probabilities of several outputs add up to one in all of so many rows only if they are those of a softmax;
# where one of them is nearly certain, far out, they may.
FEWEST_SUMS = 3
FEWEST_CLASSES = 3  # of two classes the logits are those of a sigmoid
NEARLY_CERTAIN = 0.99

# A probability that follows from the others by subtraction has lost its digits when it is this few roundings large.
ROUNDINGS_LEFT = 2.0**10


def written_link(link: str) -> Link:
    """What a network is written with whose answers were read through this link: of the largest few, a softmax."""
    return next((each for each in LINKS if each == link), "softmax")


class Linked(Wrapper):
    """Values before a softmax, sigmoid or tanh, from the answers after it."""

    def __init__(self, inner: Oracle, link: AnswerLink) -> None:
        if link not in UNDO:
            raise InvalidInput.about("link", got=repr(link), expected=" or ".join(map(repr, UNDO)))
        if link not in OF_EACH_VALUE and inner.outputs < 2:
            raise InvalidInput.about(
                "link", got=f"'{link}' for {inner.outputs} output", expected="two classes or more",
                fix="One probability is link='sigmoid'.",
            )  # fmt: skip
        super().__init__(inner)
        self.link: AnswerLink = link
        self.told: FloatArray | None = None  # the last answers, as they were given
        self.hearers: list[list[FloatArray]] = []  # who wants them all

    @property
    def facts(self) -> Facts:
        """Facts of the values before the link."""
        inner = self.inner.facts
        each = self.link in OF_EACH_VALUE
        outputs = inner.outputs if each else inner.outputs - 1
        identity = f"{inner.identity} before {self.link}" if inner.identity else ""
        facts = replace(inner, outputs=max(outputs, UNKNOWN_OUTPUTS), kind=Kind.VALUES, identity=identity)
        return replace(facts, reference=not each, saturates=True)

    @property
    def advice(self) -> str:
        """What to do about rows that are answered with NaN or inf."""
        missing = " or not told" if self.link == "top-k" else ""
        low, high = ends_of(self.link)
        told = "An answer" if self.link == "tanh" else "A probability"
        return (
            f"{told} there is exactly {low} or {high}{missing}, so that nothing is left for link='{self.link}' to "
            "read: ask nearer to the origin (domain=), or for the values before the link."
        )

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then undo the link."""
        answers = self.told = self.inner.answer(rows)
        for hearer in self.hearers:
            hearer.append(answers)
        self._check(answers)
        with np.errstate(divide="ignore", invalid="ignore"):
            return UNDO[self.link](answers)

    def _check(self, answers: FloatArray) -> None:
        if self.link == "tanh":
            self._refuse(np.abs(answers) > 1 + unit_roundoff(np.float32), answers, answers)
        else:
            self._check_probabilities(answers)

    def _refuse(self, bad: NDArray[np.bool_], answers: FloatArray, p: FloatArray) -> None:
        """Raise `LinkMismatch` of the first row with one that is bad."""
        if not bad.any():
            return
        row = int(np.flatnonzero(bad.any(axis=1))[0])
        raise LinkMismatch(
            f"link: got {np.array2string(answers[row], threshold=6, precision=4)} in row {row}, expected "
            f"{EXPECTED.get(self.link, 'probabilities')} for link='{self.link}'. {self._other(p)}"
        )

    def _check_probabilities(self, answers: FloatArray) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            p = np.exp(answers) if self.link == "log-softmax" else answers
        bad = (p < -unit_roundoff(np.float32)) | (p > 1 + ROUNDED_PROBABILITY_SLACK)
        slack = rounding_of(p)
        total = np.nansum(p, axis=1, keepdims=True) if self.link == "top-k" else p.sum(axis=1, keepdims=True)
        if self.link == "top-k":
            bad = bad | (total > 1 + slack * p.shape[1])
        elif self.link != "sigmoid":
            bad = bad | (np.abs(total - 1) > slack * p.shape[1])
        self._refuse(bad, answers, p)
        if self.link == "sigmoid" and _is_softmax(p):
            raise LinkMismatch(
                f"link: got {p.shape[1]} probabilities that sum to one, expected independent ones for link='sigmoid'. "
                "Use link='softmax' (--link softmax)."
            )

    def _other(self, p: FloatArray) -> str:
        """What it may be instead."""
        if self.link == "tanh":
            return MOVED.format("answers") if np.all(np.abs(p) < 1 + NOISY) else VALUES
        if self.link != "log-softmax" and in_percent(p, several=self.link == "softmax"):
            return "If they are percentages, say so: percent=True (--percent) divides them by 100."
        if self.link in ("softmax", "top-k") and np.all((p >= 0) & (p <= 1)):
            return "Use link='sigmoid' (--link sigmoid) if each output is a probability of its own."
        if self.link != "log-softmax" and np.all((p > -NOISY) & (p < 1 + NOISY)):
            return MOVED.format("probabilities")
        if self.link == "sigmoid" and np.all(np.abs(p) <= 1):
            return f"Use link='tanh' (--link tanh) if each output is that of a tanh. {VALUES}"
        return VALUES


class ToFirst(Wrapper):
    """Differences to the first output: what a softmax would let through of values that are answered without one."""

    @property
    def facts(self) -> Facts:
        """Facts of the differences."""
        inner = self.inner.facts
        return replace(inner, outputs=max(inner.outputs - 1, UNKNOWN_OUTPUTS), identity="", reference=True)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then take the differences."""
        return _differences(self.inner.answer(rows))


def last_told(oracle: Oracle) -> FloatArray | None:
    """What a target itself answered to the last rows, before its link was undone; None if it has no link."""
    linked = _linked_of(oracle)
    return None if linked is None else linked.told


@contextmanager
def all_told(oracle: Oracle) -> Iterator[list[FloatArray]]:
    """Gather what a target itself answers, before its link is undone; nothing if it has no link."""
    linked, told = _linked_of(oracle), list[FloatArray]()
    hearers = [] if linked is None else linked.hearers
    hearers.append(told)
    try:
        yield told
    finally:
        hearers.pop()


def link_of(oracle: Oracle) -> AnswerLink | None:
    """What a target's answers are read through, None if it is nothing."""
    linked = _linked_of(oracle)
    return None if linked is None else linked.link


def _linked_of(oracle: Oracle) -> Linked | None:
    inner = oracle
    while isinstance(inner, Wrapper):
        if isinstance(inner, Linked):
            return inner
        inner = inner.inner
    return None


def rounding_of(p: FloatArray) -> float:
    """The most that rounding may have changed each of these probabilities."""
    one_decimal = np.allclose(p, np.round(p, 1), rtol=0, atol=unit_roundoff(np.float32), equal_nan=True)
    return ROUNDED_TO_ONE_DECIMAL if one_decimal else ROUNDED_PROBABILITY_SLACK


def _is_softmax(p: FloatArray) -> bool:
    """True for rows of several probabilities that sum to one to their rounding; to less they may by chance."""
    open_ = p[p.max(axis=1) < NEARLY_CERTAIN]
    if p.shape[1] < FEWEST_CLASSES or len(open_) < FEWEST_SUMS:
        return False
    return bool(np.all(np.abs(open_.sum(axis=1) - 1) <= p.shape[1] * unit_roundoff(np.float32)))


def _ratios(p: FloatArray) -> FloatArray:
    return np.log(p[:, 1:]) - np.log(p[:, :1])


def _logits(p: FloatArray) -> FloatArray:
    return np.log(p) - np.log1p(-p)


def _differences(log_p: FloatArray) -> FloatArray:
    return log_p[:, 1:] - log_p[:, :1]


def _completed_ratios(p: FloatArray) -> FloatArray:
    """Log-ratios where at most one probability is missing (0 or NaN); it is what the others leave of 1."""
    missing = ~(p > 0)
    left = 1 - np.where(missing, 0, p).sum(axis=1, keepdims=True)
    follows = (missing.sum(axis=1, keepdims=True) == 1) & (left > ROUNDINGS_LEFT * unit_roundoff(np.float64))
    return _ratios(np.where(missing, np.where(follows, left, np.nan), p))


UNDO: dict[str, Callable[[FloatArray], FloatArray]] = {
    "softmax": _ratios,
    "sigmoid": _logits,
    "log-softmax": _differences,
    "top-k": _completed_ratios,
    "tanh": np.arctanh,
}
