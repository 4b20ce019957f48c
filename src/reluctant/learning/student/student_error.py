"""The held-out error of a student, apart from the noise of the answers.

Held-out answers differ from the network by its own error and by their noise. Two answers to a row have different
noise, so the product of what the network is off by each of them is, in the mean, its own error alone. What
rounding to decimals adds is known without a second answer.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from reluctant.learning.accuracy import DEVIATIONS, UNMET_TERMS
from reluctant.learning.student.losses import AnswerReading
from reluctant.messages.diagnosis import percentage
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Kind

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
        """True if the error stands out from what chance makes of none; else only its upper end can be told."""
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

    error: mean square over the variance of the answers, of probabilities as probabilities; high: the same with what
    chance may hide of it. None where answers are labels, which have no size. own: the part of it that is the network's
    and not the noise or rounding of the answers, where that can be told. agreement: share of equal labels; differing:
    share of others, chance included; commonest: what always saying the same label gives; repeated: how often answers
    that were asked for twice gave the same label. labelled: False of one number, which has no label.
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
        """The network's own error; its upper end where it is too small to be seen; of all that differs if not told."""
        return self.error if self.own is None else self.own.error if self.own.is_seen else self.own.high

    @property
    def is_bound(self) -> bool:
        """True if the network's own error is known to be below that, and not more."""
        return self.own is not None and not self.own.is_seen

    @property
    def judged(self) -> float | None:
        """What the network is judged by: its own error, chance included."""
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
    error, high, own = _error_sizes(network, reading, rows, answers, again) if reading.sized else (None, None, None)
    repeated = None if again is None else float((reading.answer_labels(again) == labels[: len(again)]).mean())
    return HeldOutError(
        error, high, 1 - float(differs.mean()), upper_end(differs, 1.0), commonest_share(labels), len(rows), own,
        repeated, reading.kind is not Kind.VALUES or reading.outputs > 1,
    )  # fmt: skip


def _error_sizes(
    network: ReLUNetwork, reading: AnswerReading, rows: FloatArray, answers: FloatArray, again: FloatArray | None
) -> tuple[float, float, OwnError | None]:
    """Mean square error, its upper end, and the part of it that is the network's."""
    targets = reading.targets(answers)
    terms = row_misfits(network, reading, rows, targets)
    return float(terms.mean()), upper_end(terms), _own_part(network, reading, rows, answers, again, terms)


def _own_part(
    network: ReLUNetwork, reading: AnswerReading, rows: FloatArray, answers: FloatArray, again: FloatArray | None,
    terms: FloatArray,
) -> OwnError | None:  # fmt: skip
    if again is None:
        rounding = reading.rounding(answers)
        return apart_from_rounding(terms, rounding / spread_of(reading.targets(answers))) if rounding > 0 else None
    first, others = reading.targets(answers[: len(again)]), reading.targets(again)
    values = network(rows[: len(again)])
    return apart_from_noise(reading.slope(values, first), reading.slope(values, others), first, others)


def commonest_share(labels: Any) -> float:
    """How often always saying the commonest label is right."""
    return float(np.unique(labels, return_counts=True)[1].max() / len(labels))
