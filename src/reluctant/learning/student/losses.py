"""Losses of a student by kind of answer: values, class probabilities, chances, labels.

A reading turns answers into targets, gives the slope of its loss, and turns what was trained into the network that
is given back: values in the units of the answers, or the values before a softmax or sigmoid.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from reluctant.defenses.defense import labels_of
from reluctant.interface.kinds import IntegerKind, find_top_k
from reluctant.interface.noise import UNIFORM_SD, answer_kind, is_one_hot, rounding_noise
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
        """Of half the square."""
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
    """Probabilities of classes, by cross-entropy. Those that are not told (0) share what the others leave of 1."""

    kind = Kind.PROBABILITIES
    link = "softmax"

    def targets(self, answers: FloatArray) -> FloatArray:
        """As they are; noisy ones, below 0 or with another sum where all are told, are put right."""
        p = np.maximum(answers, 0.0)
        sums, slack = p.sum(axis=1, keepdims=True), ROUNDED_PROBABILITY_SLACK * p.shape[1]
        told = (answers != 0).all(axis=1, keepdims=True)
        noisy = (answers < 0).any(axis=1, keepdims=True) | (told & (np.abs(sums - 1) > slack)) | (sums > 1 + slack)
        return np.where(noisy & (sums > 0), p / np.maximum(sums, SMALLEST_SHARE), p)

    def slope(self, values: Any, targets: Any) -> Any:
        """What the network says less what was told; of classes not told, less their part of what is left."""
        said = np.exp(values - values.max(axis=1, keepdims=True))
        said /= said.sum(axis=1, keepdims=True)
        untold = np.where(targets > 0, 0, said)
        left = np.maximum(1 - targets.sum(axis=1, keepdims=True), 0)
        share = untold / np.maximum(untold.sum(axis=1, keepdims=True), SMALLEST_SHARE)
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
        """As they are."""
        return answers

    def slope(self, values: Any, targets: Any) -> Any:
        """Probability less probability."""
        return (1 + np.tanh(values / 2)) / 2 - targets


def reading_of(answers: FloatArray, told: Kind, whole: IntegerKind | None = None) -> AnswerReading:
    """How to read answers (n, m); what the target says of itself is believed where that is not "values".

    whole: what whole numbers are. Scores are read as values, but where they have so few steps that a label tells more.
    """
    kind = _kind_of(answers) if told is Kind.VALUES else told
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


def _kind_of(answers: FloatArray) -> Kind:
    """By the answers alone: the largest few probabilities do not add up to one."""
    few = find_top_k(answers, ROUNDED_PROBABILITY_SLACK) is not None
    return Kind.PROBABILITIES if few else answer_kind(answers)


def _sum_to_one(answers: FloatArray) -> bool:
    """True of probabilities of classes, by nearly all rows: noise moves single sums, and some may not be told (0).

    Behind so much noise that most sums are moved they are read as chances, each on its own: log-ratios of the small
    ones would be noise.
    """
    sums, slack = answers.sum(axis=1), ROUNDED_PROBABILITY_SLACK * answers.shape[1]
    untold = (answers == 0).any(axis=1)
    return bool(np.mean((sums <= 1 + slack) & (untold | (sums >= 1 - slack))) >= NEARLY_ALL)
