"""Losses of a student by kind of answer (values, class probabilities, chances, labels), and its held-out error.

A reading turns answers into training targets, gives the slope of its loss, and turns the trained network into one
that gives values in the units of the answers, or the values before a softmax or sigmoid.

Held-out answers differ from the network by its own error and by their noise. Two answers to a row have different
noise, so the product of the network's differences from each is, in the mean, its own error alone. The error that
rounding to decimals adds is known without a second answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from reluctant.defenses import labels_of
from reluctant.extraction.any_position.accuracy import DEVIATIONS, UNMET_TERMS
from reluctant.interface.kinds import IntegerKind, find_top_k
from reluctant.interface.noise import UNIFORM_SD, answer_kind, is_one_hot, rounding_noise
from reluctant.messages.diagnosis import percentage
from reluctant.networks import ReLUNetwork
from reluctant.networks.network import Link
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Kind
from reluctant.oracles.links import ROUNDED_PROBABILITY_SLACK

COARSEST_STEPS = 2.0  # steps of the rounding in the deviation of an output: then its errors are as good as even
NEARLY_ALL = 0.9  # of the rows
SMALLEST_SHARE = np.finfo(np.float32).tiny


class AnswerReading(ABC):
    """One way to read answers, by a network with so many outputs."""

    kind: Kind
    link: Link = "identity"  # what makes answers of the network's values
    sized = True  # answers have a size, so that errors have one

    def __init__(self, outputs: int) -> None:
        self.outputs = outputs

    @abstractmethod
    def targets(self, answers: FloatArray) -> FloatArray:
        """What the network is trained on (n, outputs)."""

    @abstractmethod
    def slope(self, values: Any, targets: Any) -> Any:
        """Derivative of the loss by the values (n, outputs): what they say less what they should say."""

    def finished(self, network: ReLUNetwork) -> ReLUNetwork:
        """The network as it is given back."""
        return network

    def rounding(self, answers: FloatArray) -> float:
        """Mean square that rounding puts on a row of targets, 0 where that is not known."""
        return 0.0

    def answer_labels(self, answers: FloatArray) -> Any:
        """The label of each answer."""
        return labels_of(answers, self.kind)

    def value_labels(self, values: FloatArray) -> Any:
        """The label that values of the network stand for."""
        return labels_of(values, Kind.VALUES)


class Values(AnswerReading):
    """Numbers, by least squares, each output in units of its deviation. scores: whole ones, and known to be rounded."""

    kind = Kind.VALUES

    def __init__(self, answers: FloatArray, *, scores: bool = False) -> None:
        super().__init__(answers.shape[1])
        self.scores = scores
        deviation = answers.std(axis=0)
        self.mean, self.unit = answers.mean(axis=0), np.where(deviation > 0, deviation, 1.0)

    def targets(self, answers: FloatArray) -> FloatArray:
        """In units."""
        return np.asarray((answers - self.mean) / self.unit)

    def slope(self, values: Any, targets: Any) -> Any:
        """The derivative of half the square."""
        return values - targets

    def rounding(self, answers: FloatArray) -> float:
        """Of answers with few decimals; not of whole numbers that may be no rounded ones, nor where steps are so wide
        that errors are not even.
        """
        noise = UNIFORM_SD if self.scores else rounding_noise(answers)
        fine = (self.scores or noise < UNIFORM_SD) and (self.unit >= COARSEST_STEPS * noise / UNIFORM_SD).all()
        return float(((noise / self.unit) ** 2).sum()) if fine else 0.0

    def finished(self, network: ReLUNetwork) -> ReLUNetwork:
        """In the units of the answers again."""
        weights = [*network.weights[:-1], self.unit[:, None] * network.weights[-1]]
        return ReLUNetwork(weights, [*network.biases[:-1], self.unit * network.biases[-1] + self.mean])


class Classes(AnswerReading):
    """Probabilities of classes, by cross-entropy. Hidden ones (0) share what the others leave of 1."""

    kind = Kind.PROBABILITIES
    link = "softmax"

    def targets(self, answers: FloatArray) -> FloatArray:
        """The answers; probabilities with noise (below 0, or with another sum where none is hidden) are corrected."""
        p = np.maximum(answers, 0.0)
        sums, slack = p.sum(axis=1, keepdims=True), ROUNDED_PROBABILITY_SLACK * p.shape[1]
        full = (answers != 0).all(axis=1, keepdims=True)
        noisy = (answers < 0).any(axis=1, keepdims=True) | (full & (np.abs(sums - 1) > slack)) | (sums > 1 + slack)
        return np.where(noisy & (sums > 0), p / np.maximum(sums, SMALLEST_SHARE), p)

    def slope(self, values: Any, targets: Any) -> Any:
        """The network's answer less the target's; for hidden classes, less their part of the rest."""
        said = np.exp(values - values.max(axis=1, keepdims=True))
        said /= said.sum(axis=1, keepdims=True)
        hidden = np.where(targets > 0, 0, said)
        left = np.maximum(1 - targets.sum(axis=1, keepdims=True), 0)
        share = hidden / np.maximum(hidden.sum(axis=1, keepdims=True), SMALLEST_SHARE)
        return said - targets - left * share


class Labels(Classes):
    """Labels alone, as classes that are certain. codes: the label of each output of the network."""

    kind = Kind.LABELS
    sized = False

    def __init__(self, codes: FloatArray) -> None:
        super().__init__(len(codes))
        self.codes = codes

    def targets(self, answers: FloatArray) -> FloatArray:
        """One for the label, none for the others."""
        return (answers[:, :1] == self.codes).astype(np.float64)

    def value_labels(self, values: FloatArray) -> Any:
        """The code of the largest."""
        return self.codes[values.argmax(axis=1)].astype(int)


class OneHot(Classes):
    """Labels again, written as a probability of one."""

    sized = False


class Chances(AnswerReading):
    """A probability of its own for every output, by cross-entropy."""

    kind = Kind.PROBABILITIES
    link = "sigmoid"

    def targets(self, answers: FloatArray) -> FloatArray:
        """The answers, unchanged."""
        return answers

    def slope(self, values: Any, targets: Any) -> Any:
        """Probability less probability."""
        return (1 + np.tanh(values / 2)) / 2 - targets


def reading_of(answers: FloatArray, stated: Kind, whole: IntegerKind | None = None) -> AnswerReading:
    """How to read answers (n, m); what the target says of itself is believed where that is not "values".

    whole: what whole numbers are. Scores are read as values, but where they have so few steps that a label tells more.
    """
    few = find_top_k(answers, ROUNDED_PROBABILITY_SLACK) is not None  # which do not add up to one
    seen = Kind.PROBABILITIES if few else answer_kind(answers)
    kind = seen if stated is Kind.VALUES else stated
    if kind is Kind.LABELS and whole is IntegerKind.SCORES and answers.std() >= COARSEST_STEPS:
        return Values(answers, scores=True)
    if kind is Kind.LABELS:
        return Labels(np.unique(answers[:, 0]))
    if kind is Kind.VALUES:
        return Values(answers)
    outputs = answers.shape[1]
    if is_one_hot(answers):
        return OneHot(outputs)
    return Classes(outputs) if outputs > 1 and _sum_to_one(answers) else Chances(outputs)


def _sum_to_one(answers: FloatArray) -> bool:
    """True of probabilities of classes, by nearly all rows: noise moves single sums, and some may be hidden (0).

    Behind so much noise that most sums are moved they are read as chances, each on its own: log-ratios of the small
    ones would be noise.
    """
    sums, slack = answers.sum(axis=1), ROUNDED_PROBABILITY_SLACK * answers.shape[1]
    hidden = (answers == 0).any(axis=1)
    return bool(np.mean((sums <= 1 + slack) & (hidden | (sums >= 1 - slack))) >= NEARLY_ALL)


SEEN_SHARE = 0.5  # of the upper end: a smaller error may be chance
AS_ROUNDED = 0.8  # of the rounding that steps would make: rounded answers are off by at least that
LEAST_SIGNAL = 0.5  # of the answers' variance: with less, noise is most of what there is to learn


@dataclass(frozen=True)
class OwnError:
    """Mean square over the variance of the answers: the network's own part, its upper end, and that of the answers."""

    error: float
    high: float
    noise: float

    @property
    def is_seen(self) -> bool:
        """True if the error is larger than chance explains; else only its upper end is known."""
        return self.error > SEEN_SHARE * self.high


def apart_from_noise(off: FloatArray, again: FloatArray, targets: FloatArray, others: FloatArray) -> OwnError | None:
    """By what the network is off (n, m) each of two answers to the same rows; None where most of them is noise."""
    mean = targets.mean(axis=0)
    signal, total = float(((targets - mean) * (others - mean)).sum(axis=1).mean()), spread_of(targets)
    if not signal > LEAST_SIGNAL * total:
        return None
    terms, noise = (off * again).sum(axis=1), ((off - again) ** 2).sum(axis=1).mean() / 2
    return _own_error(terms / signal, float(noise / total))


def apart_from_rounding(terms: FloatArray, rounding: float) -> OwnError | None:
    """By square errors (n,) of which so much is rounding; None if they are less: then nothing was rounded."""
    if float(terms.mean()) < AS_ROUNDED * rounding:
        return None
    found = _own_error(terms - rounding, rounding)
    # Where a target is flat its rounding is the same everywhere, and a network learns it: errors are smaller by that
    # much than rounding alone would be, and the network is off by as much.
    return replace(found, high=found.high + max(rounding - float(terms.mean()), 0.0))


def _own_error(terms: FloatArray, noise: float) -> OwnError:
    error = max(float(terms.mean()), 0.0)
    return OwnError(error, error + upper_end(terms) - float(terms.mean()), noise)


def spread_of(targets: FloatArray) -> float:
    """Mean square deviation of the targets, over all outputs."""
    return float(((targets - targets.mean(axis=0)) ** 2).sum(axis=1).mean())


def upper_end(terms: FloatArray, largest: float | None = None) -> float:
    """Upper end of their mean, if no term that was not met is larger than this one, or than the largest that was.

    A mean of terms is never above one that is known to be the largest.
    """
    n, most = len(terms), max(float(terms.max()), 0.0) if largest is None else largest
    end = float(terms.mean() + DEVIATIONS * terms.std() / np.sqrt(n) + UNMET_TERMS * most / n)
    return end if largest is None else min(end, largest)


EVEN_LABELS = 2.0  # labels of which one is right for more than half: as many fewer may differ


@dataclass(frozen=True)
class HeldOutError:
    """Errors at fresh inputs, drawn like those of the training.

    error: mean square over the variance of the answers, of probabilities as probabilities.
    high: the same, with what chance may hide of it. Both are None where answers are labels, which have no size.
    own: the part of it that is the network's and not the noise or rounding of the answers, where these are known.
    agreement: share of equal labels.
    differing: share of others, chance included.
    commonest: what always saying the same label gives.
    repeated: how often answers that were asked for twice gave the same label.
    labelled: False of one number, which has no label.
    """

    error: float | None
    high: float | None
    agreement: float
    differing: float
    commonest: float
    points: int
    own: OwnError | None = None
    repeated: float | None = None
    labelled: bool = True

    @property
    def tells_labels(self) -> bool:
        """True if equal labels say something: answers have labels, and not all of them the same."""
        return self.labelled and self.commonest < 1

    @property
    def of_copy(self) -> float | None:
        """The network's own error; its upper end where it is too small to be seen; of all that differs if unknown."""
        return self.error if self.own is None else self.own.error if self.own.is_seen else self.own.high

    @property
    def is_bound(self) -> bool:
        """True if the network's own error is known to be below that, and not more."""
        return self.own is not None and not self.own.is_seen

    @property
    def judged(self) -> float | None:
        """The measure of the network: its own error, chance included."""
        return self.high if self.own is None else self.own.high

    def __str__(self) -> str:
        inputs = f"{self.points:,} inputs that it was not trained on"
        if self.error is not None and not self.tells_labels:
            return f"Relative square error {self._size()} at {inputs}."
        size = "" if self.error is None else f"relative square error {self._size()} and "
        said = (
            f"{size}the same label for {percentage(self.agreement)} of {inputs}{self._repeated()}; the commonest label "
            f"alone would be right for {percentage(self.commonest)}."
        )
        return said[0].upper() + said[1:]

    def _size(self) -> str:
        own = "" if self.own is None else (
            f", of which {self.own.noise:.1e} is the noise or rounding of the answers and "
            f"{'less than ' if self.is_bound else ''}{self.of_copy:.1e} the network's own,"
        )  # fmt: skip
        return f"{self.error:.1e}{own}"

    def _repeated(self) -> str:
        if self.repeated is None:
            return ""
        return f" (asked twice, the answers themselves agree for {percentage(self.repeated)})"

    def good_for(self, eps: float, differing: float) -> bool:
        """True if the error is at most eps; of labels, if no more than this share differs, or less if few could."""
        if self.judged is None:
            return self.differing <= labels_allowed(self.commonest, differing)
        return self.judged <= eps

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with the error to tell of the network and whether it is an upper end."""
        return asdict(self) | {"of copy": self.of_copy, "is bound": self.is_bound}


def labels_allowed(commonest: float, differing: float) -> float:
    """The share of labels of a copy that may differ: of that asked for, less where the commonest one leaves few."""
    return differing * min(1.0, EVEN_LABELS * (1 - commonest))


def row_misfits(network: ReLUNetwork, reading: AnswerReading, rows: FloatArray, targets: FloatArray) -> FloatArray:
    """Square error (n,) of each row, over the mean square deviation of the targets."""
    unit = spread_of(targets)
    off = (reading.slope(network(rows), targets) ** 2).sum(axis=1)
    return np.asarray(off / unit if unit > 0 else off)


def measure_student(
    network: ReLUNetwork, reading: AnswerReading, rows: FloatArray, answers: FloatArray, again: FloatArray | None = None
) -> HeldOutError:
    """Hold a network that was just trained, in the units of the training, against these answers.

    again: other answers to the first of the rows, where they differ.
    """
    values, labels = reading.finished(network)(rows), reading.answer_labels(answers)
    differs = (reading.value_labels(values) != labels).astype(np.float64)
    error, high, own = None, None, None
    if reading.sized:
        terms = row_misfits(network, reading, rows, reading.targets(answers))
        error, high = float(terms.mean()), upper_end(terms)
        own = _own_part(network, reading, rows, answers, again, terms)
    repeated = None if again is None else float((reading.answer_labels(again) == labels[: len(again)]).mean())
    return HeldOutError(
        error, high, 1 - float(differs.mean()), upper_end(differs, 1.0), commonest_share(labels), len(rows), own,
        repeated, reading.kind is not Kind.VALUES or reading.outputs > 1,
    )  # fmt: skip


def _own_part(
    network: ReLUNetwork, reading: AnswerReading, rows: FloatArray, answers: FloatArray, again: FloatArray | None,
    terms: FloatArray,
) -> OwnError | None:  # fmt: skip
    """The part of square errors (n,) that is the network's."""
    if again is None:
        rounding = reading.rounding(answers)
        return apart_from_rounding(terms, rounding / spread_of(reading.targets(answers))) if rounding > 0 else None
    first, others = reading.targets(answers[: len(again)]), reading.targets(again)
    values = network(rows[: len(again)])
    return apart_from_noise(reading.slope(values, first), reading.slope(values, others), first, others)


def commonest_share(labels: Any) -> float:
    """How often always saying the commonest label is right."""
    return float(np.unique(labels, return_counts=True)[1].max() / len(labels))
