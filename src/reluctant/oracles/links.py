"""Links (softmax, sigmoid, tanh, top-k) and their inverses, which make answers piecewise linear; the digits they lose.

softmax: log-ratios to the first class, log(p_k / p_0), k ≥ 1: one output less than there are classes. log-softmax:
the same from log-probabilities. sigmoid: the logit log(p / (1 - p)) of every output. tanh: artanh(t) of every
output, which are numbers between -1 and 1 and no probabilities. top-k: as softmax where all probabilities but one
are given and the last one follows; NaN where more are missing. `PlainProbabilities` makes fractions of percentages
first.

Where a probability is exactly 0 or 1, or a tanh -1 or 1, the value is infinite: nothing more can be read there.
`query` refuses such rows, `answer` passes them on. Next to 1 a probability is known to a rounding of 1, and its
log-odds to that over its distance from 1; `lost_digits` gives the noise that values have for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reluctant.errors import InvalidInput, LinkMismatch, Option, Words, words
from reluctant.networks.network import ELEMENTWISE_LINKS, LINKS, Link
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Explained, Facts, Kind, Oracle, Wrapper, layers
from reluctant.oracles.explanations import Rewritten

ADVICE_FOR_VALUES = words("Leave the link out ({link}) if the target answers values.", link="identity")
ADVICE_FOR_NOISE = words("that noise has moved: leave the link out ({link}).", link="identity")
EXPECTED_ANSWERS = {"log-softmax": "log-probabilities", "tanh": "numbers between -1 and 1"}  # else probabilities


def noun_behind(link: str | None) -> str:
    """The kind of answers behind this link, in a word."""
    return "answers" if link == "tanh" else "probabilities"


def answer_ends(link: str | None) -> tuple[int, int]:
    """Between which numbers answers behind this link lie."""
    return (-1, 1) if link == "tanh" else (0, 1)


AnswerLink: TypeAlias = Link | Literal["top-k"]
ANSWER_LINKS: tuple[AnswerLink, ...] = (*LINKS, "top-k")

# A served probability may be rounded to a few decimals; beyond this it is no probability.
ROUNDED_PROBABILITY_SLACK = 1e-2
ROUNDED_TO_ONE_DECIMAL = 0.05 + unit_roundoff(np.float32)  # the most that this changes one of them

NOISY_SLACK = 0.1  # beyond 0 and 1 by less than this, numbers may be probabilities with noise

# Independent probabilities of several outputs add up to one in all of so many rows only if they are those of a softmax;
# where one of them is nearly certain, far out, they may.
FEWEST_SUMS = 3
FEWEST_CLASSES = 3  # of two classes the logits are those of a sigmoid
PAIR = 2  # of two classes one may be what the other leaves of 1
NEARLY_CERTAIN = 0.99

# A probability that follows from the others by subtraction has lost its digits when it is this few roundings large.
LEAST_ROUNDINGS_LEFT = 2.0**10


def written_link(link: str) -> Link:
    """The link in the file of a network that was read through this one: a softmax for the largest few."""
    return next((each for each in LINKS if each == link), "softmax")


FINER_BELOW = 0.25  # below it the numbers of a format lie closer together than half a rounding of 1
GRID_FORMATS = ("float64", "float32")


def on_a_grid(p: FloatArray, number_format: str) -> bool:
    """True if probabilities next to 0 are known to a rounding of 1 alone, as where they are made of one next to 1.

    Few of them may lie there by chance: hardly those so small that it matters.
    """
    small = p[(p > 0) & (p < FINER_BELOW)]
    return bool(small.size and _are_multiples(small, number_format))


def _are_multiples(small: FloatArray, number_format: str) -> bool:
    return bool(np.all(small % (unit_roundoff(number_format) / 2) == 0))


class GridColumns:
    """Outputs that may be what the others leave of 1, by all answers so far: none is finer than a rounding of 1.

    The first of [1 - p, p] is one: next to 0 it has lost the digits that the second has.
    """

    def __init__(self, outputs: int, number_format: str) -> None:
        self.coarse = np.ones(max(outputs, 0), dtype=bool)
        self.number_format = number_format

    def look_at(self, p: FloatArray) -> None:
        """Strike out those with a small probability that lies between two points of the grid."""
        if len(self.coarse) != p.shape[1]:  # not known before the first answer
            self.coarse = np.ones(p.shape[1], dtype=bool)
        for k in np.flatnonzero(self.coarse):
            column = p[:, k]
            self.coarse[k] = _are_multiples(column[(column > 0) & (column < FINER_BELOW)], self.number_format)


class Linked(Wrapper):
    """Values before a softmax, sigmoid or tanh, from the answers after it."""

    def __init__(self, inner: Oracle, link: AnswerLink) -> None:
        if link not in UNDO_LINK:
            raise InvalidInput.about("link", got=repr(link), expected=" or ".join(map(repr, UNDO_LINK)))
        if link not in ELEMENTWISE_LINKS and inner.outputs < 2:
            raise InvalidInput.about(
                "link", got=f"'{link}' for {inner.outputs} output", expected="two classes or more",
                fix=words("One probability is {link}.", link="sigmoid"),
            )  # fmt: skip
        super().__init__(inner)
        self.link: AnswerLink = link
        self.raw: FloatArray | None = None  # the last answers, as they were given
        self.grids = {name: GridColumns(inner.outputs, name) for name in GRID_FORMATS}
        self.hearers: list[list[FloatArray]] = []  # who wants them all

    @property
    def facts(self) -> Facts:
        """Facts of the values before the link."""
        inner = self.inner.facts
        each = self.link in ELEMENTWISE_LINKS
        outputs = inner.outputs if each else inner.outputs - 1
        identity = f"{inner.identity} before {self.link}" if inner.identity else ""
        facts = replace(inner, outputs=max(outputs, UNKNOWN_OUTPUTS), kind=Kind.VALUES, identity=identity)
        return replace(facts, reference=not each, link=self.link)

    @property
    def advice(self) -> str:
        """What to do about rows that are answered with NaN or inf."""
        missing = " or hidden" if self.link == "top-k" else ""
        low, high = answer_ends(self.link)
        subject = "An answer" if self.link == "tanh" else "A probability"
        return Words(
            f"{subject} there is exactly {low} or {high}{missing}, so that nothing is left for ",
            words(
                "{link} to read: ask nearer to the origin ({domain}), or for the values before the link.",
                link=self.link,
            ),
        )

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then undo the link."""
        return self._undone(self.inner.answer(rows))

    def explaining(self, inner: Oracle) -> Oracle:
        """Undo the link in values, and by the chain rule in gradients."""
        return Rewritten(self, inner, self._chained)

    def _chained(self, found: Explained) -> Explained:
        values = self._undone(found.values)
        with np.errstate(divide="ignore", invalid="ignore"):
            return Explained(values, UNDO_GRADIENT[self.link](found.values[..., None], found.gradients))

    def _undone(self, answers: FloatArray) -> FloatArray:
        self.raw = answers
        for hearer in self.hearers:
            hearer.append(answers)
        if self.link == "tanh":
            self._refuse(np.abs(answers) > 1 + unit_roundoff(np.float32), answers, answers)
        else:
            self._check_probabilities(answers)
        for grid in self.grids.values() if self.link == "softmax" and answers.shape[1] == PAIR else ():
            grid.look_at(answers)
        with np.errstate(divide="ignore", invalid="ignore"):
            return UNDO_LINK[self.link](answers)

    def _refuse(self, bad: NDArray[np.bool_], answers: FloatArray, p: FloatArray) -> None:
        """Raise `LinkMismatch` of the first row with one that is bad."""
        if not bad.any():
            return
        row = int(np.flatnonzero(bad.any(axis=1))[0])
        shown = np.array2string(answers[row], threshold=6, precision=4)
        expected = EXPECTED_ANSWERS.get(self.link, "probabilities")
        message = f"link: got {shown} in row {row}, expected {expected} for "
        raise LinkMismatch(Words(message, Option("link", self.link), ".")).advised(self._other(p))

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
            message = f"link: got {p.shape[1]} probabilities that sum to one, expected independent ones for "
            raise LinkMismatch(Words(message, Option("link", "sigmoid"), ".")).advised(
                words("Use {link}.", link="softmax")
            )

    def _other(self, p: FloatArray) -> Words:
        """Other kinds that it may be."""
        if self.link == "tanh":
            return (
                Words("No link reads answers ", ADVICE_FOR_NOISE)
                if np.all(np.abs(p) < 1 + NOISY_SLACK)
                else ADVICE_FOR_VALUES
            )
        if self.link != "log-softmax" and in_percent(p, several=self.link == "softmax"):
            return words("If they are percentages, say so: {percent} divides them by 100.", percent=True)
        if self.link in ("softmax", "top-k") and np.all((p >= 0) & (p <= 1)):
            return words("Use {link} if each output is a probability of its own.", link="sigmoid")
        if self.link != "log-softmax" and np.all((p > -NOISY_SLACK) & (p < 1 + NOISY_SLACK)):
            return Words("No link reads probabilities ", ADVICE_FOR_NOISE)
        if self.link == "sigmoid" and np.all(np.abs(p) <= 1):
            return Words(words("Use {link} if each output is that of a tanh. ", link="tanh"), ADVICE_FOR_VALUES)
        return ADVICE_FOR_VALUES


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

    def explaining(self, inner: Oracle) -> Oracle:
        """Differences of gradients likewise."""
        return Rewritten(self, inner, lambda found: Explained(*map(_differences, (found.values, found.gradients))))


def last_raw_answers(oracle: Oracle) -> FloatArray | None:
    """The target's own answers to the last rows, with their link; None if it has no link."""
    linked = _linked_of(oracle)
    return None if linked is None else linked.raw


@contextmanager
def raw_answers(oracle: Oracle) -> Iterator[list[FloatArray]]:
    """Gather what a target itself answers, before its link is undone; nothing if it has no link."""
    linked, raw = _linked_of(oracle), list[FloatArray]()
    hearers = [] if linked is None else linked.hearers
    hearers.append(raw)
    try:
        yield raw
    finally:
        hearers.pop()


def _linked_of(oracle: Oracle) -> Linked | None:
    return next((layer for layer in layers(oracle) if isinstance(layer, Linked)), None)


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


def _softmax(values: FloatArray) -> FloatArray:
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _log_softmax(values: FloatArray) -> FloatArray:
    shifted = values - values.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def _sigmoid(values: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):  # exp of a very negative value is 0 in the end
        return 1 / (1 + np.exp(-values))


LINK_FUNCTIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "identity": lambda values: values,
    "softmax": _softmax,
    "log-softmax": _log_softmax,
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
}

# Gradients (n, m, d) after a link, from answers p (n, m, 1) after it and gradients before it.
LINK_SLOPES: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "identity": lambda _, slope: slope,
    "softmax": lambda p, slope: p * (slope - (p * slope).sum(axis=1, keepdims=True)),
    "log-softmax": lambda log_p, slope: slope - (np.exp(log_p) * slope).sum(axis=1, keepdims=True),
    "sigmoid": lambda p, slope: p * (1 - p) * slope,
    "tanh": lambda t, slope: (1 - t**2) * slope,
}


def _log_ratios(p: FloatArray) -> FloatArray:
    return np.log(p[:, 1:]) - np.log(p[:, :1])


def _differences(log_p: FloatArray) -> FloatArray:
    return log_p[:, 1:] - log_p[:, :1]


def _completed_ratios(p: FloatArray) -> FloatArray:
    """Log-ratios where at most one probability is missing (0 or NaN); it is what the others leave of 1."""
    missing = ~(p > 0)
    left = 1 - np.where(missing, 0, p).sum(axis=1, keepdims=True)
    follows = (missing.sum(axis=1, keepdims=True) == 1) & (left > LEAST_ROUNDINGS_LEFT * unit_roundoff(np.float64))
    return _log_ratios(np.where(missing, np.where(follows, left, np.nan), p))


UNDO_LINK: dict[str, Callable[[FloatArray], FloatArray]] = {
    "softmax": _log_ratios,
    "sigmoid": lambda p: np.log(p) - np.log1p(-p),
    "log-softmax": _differences,
    "top-k": _completed_ratios,
    "tanh": np.arctanh,
}

# Gradients (n, ·, d) before a link, from answers p (n, m, 1) and gradients (n, m, d) after it.
UNDO_GRADIENT: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "softmax": lambda p, slope: _differences(slope / p),
    "sigmoid": lambda p, slope: slope / (p * (1 - p)),
    "log-softmax": lambda _, slope: _differences(slope),
    "top-k": lambda p, slope: _differences(slope / p),
    "tanh": lambda t, slope: slope / (1 - t**2),
}

PERCENT = 100.0
HALF_A_PERCENT = 0.5 / PERCENT  # of a percent: what rounding to whole ones changes a fraction by


@dataclass(frozen=True)
class ProbabilityFormat:
    """How probabilities are written.

    number_format: that of the answers, in which they are divided; None: their own. among_nan: hidden ones are NaN.
    """

    percent: bool = True
    number_format: str | None = None
    among_nan: bool = False


class PlainProbabilities(Wrapper):
    """Probabilities between 0 and 1, of answers that are written otherwise."""

    def __init__(self, inner: Oracle, writing: ProbabilityFormat) -> None:
        super().__init__(inner)
        self.writing = writing
        # In a wider format the quotients would seem to have digits that no answer had.
        self.dtype = np.dtype(writing.number_format or inner.facts.dtype)

    @property
    def facts(self) -> Facts:
        """Facts of the fractions."""
        inner = self.inner.facts
        identity = f"{inner.identity} made plain" if inner.identity else ""
        return replace(inner, kind=Kind.PROBABILITIES, identity=identity)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then write plainly."""
        return self._plain(self.inner.answer(rows))

    def explaining(self, inner: Oracle) -> Oracle:
        """Gradients of fractions."""
        return Rewritten(self, inner, lambda found: Explained(self._plain(found.values), self._slopes(found.gradients)))

    def _slopes(self, gradients: FloatArray) -> FloatArray:
        return self._divided(gradients) if self.writing.percent else gradients

    def _plain(self, answers: FloatArray) -> FloatArray:
        hidden = np.isnan(answers) & ~np.isnan(answers).all(axis=1, keepdims=True)
        shown = np.where(hidden, 0.0, answers)
        return self._divided(shown) if self.writing.percent else shown

    def _divided(self, answers: FloatArray) -> FloatArray:
        narrow = answers.astype(self.dtype)
        return np.asarray(narrow / self.dtype.type(PERCENT), dtype=np.float64)


class Tidied(Wrapper):
    """Noisy probabilities, put right so that this link can read them.

    Noise leaves numbers below 0 and classes that do not add up to 1, which a link refuses. One below 0 says no more
    than 0 does; what does not add up is scaled. Answers that are probabilities pass as they are, to the last digit.
    """

    def __init__(self, inner: Oracle, link: AnswerLink) -> None:
        super().__init__(inner)
        self.link = link

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then correct each number that is no probability."""
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
        """The divisor of each row: 1 if rounding explains its sum, NaN if nothing is left."""
        slack, total = ROUNDED_PROBABILITY_SLACK, p.sum(axis=1, keepdims=True)
        off = (total > 1 + slack * p.shape[1]) | (p.max(axis=1, keepdims=True) > 1 + slack)
        if self.link != "top-k":  # of the largest few there may be less
            off |= total < 1 - slack * p.shape[1]
        return np.where(total > 0, np.where(off, total, 1.0), np.nan)


def in_percent(answers: FloatArray, *, several: bool = True) -> bool:
    """True if answers (n, m) may be percentages: up to 100, some beyond 1; of several classes, with a sum of 100."""
    shown = answers[~np.isnan(answers)]
    within = bool(shown.size and np.all((shown >= 0) & (shown <= PERCENT)) and np.any(shown > 1))
    off = np.abs(answers.sum(axis=1) / PERCENT - 1)
    return within and (not several or bool(np.all(off <= HALF_A_PERCENT * answers.shape[1])))


Normal: TypeAlias = FloatArray  # of each answer, the logarithm of one over the smallest that has all its digits


def _roundings_of_ratios(values: FloatArray, normal: Normal) -> FloatArray:
    """For all ratios of a row, by its probability with the fewest digits: each may be that of the first."""
    with_first = np.column_stack([np.zeros(len(values)), values])
    size = with_first.max(axis=1, keepdims=True) - with_first
    return np.broadcast_to(np.exp((size - normal).max(axis=1, keepdims=True)), values.shape)


# How many roundings of 1 a value is known to, by the link that it is read through.
ROUNDINGS_BY_LINK: Mapping[str, Callable[[FloatArray, Normal], FloatArray]] = {
    "sigmoid": lambda values, normal: np.exp(np.maximum(np.maximum(values, -values - normal), 0.0)),
    "softmax": _roundings_of_ratios,
    "top-k": _roundings_of_ratios,
    "tanh": lambda values, normal: np.cosh(values) ** 2,
}


def lost_digits(
    values: FloatArray, oracle: Oracle, number_format: str = "float64", *, grid: bool = False,
    rounding: float | None = None,
) -> FloatArray:  # fmt: skip
    """Noise (n, m) of values for digits that their probabilities have lost; 0 where they have lost none.

    grid: no probability has more digits than a rounding of 1 leaves, as where one is what others leave of 1. Without it
    the answers so far tell which of two classes is. rounding: of 1, where it is not that of the number format.
    """
    linked = _linked_of(oracle)
    roundings = None if linked is None else ROUNDINGS_BY_LINK.get(linked.link)
    if linked is None or roundings is None:
        return np.zeros_like(values)
    coarse = np.array([grid]) if grid else _coarse_classes(linked, number_format)
    normal = np.where(coarse, 0.0, -float(np.log(np.finfo(number_format).tiny)))
    with np.errstate(over="ignore", invalid="ignore"):  # of infinite values, which are not read
        return np.asarray((rounding or unit_roundoff(number_format)) * roundings(values, normal))


def _coarse_classes(linked: Linked, number_format: str) -> NDArray[np.bool_]:
    """Which of two classes is what the other leaves of 1; of other answers, none."""
    two = linked.link == "softmax" and linked.inner.outputs == PAIR
    return linked.grids[number_format].coarse if two and number_format in linked.grids else np.array([False])
