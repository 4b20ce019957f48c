"""How well a trained network does on answers that it was not trained on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reluctant.learning.accuracy import DEVIATIONS, UNMET
from reluctant.learning.student.reading import Reading
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Measured", "commonest_share", "measure", "misfit"]


EVEN = 2.0  # labels of which one is right for more than half: as many fewer may differ


@dataclass(frozen=True)
class Measured:
    """Errors at fresh inputs, drawn like those of the training.

    error: mean square over the variance of the answers, of probabilities as probabilities; high: the same with what
    chance may hide of it, by which it is judged. None where answers are labels, which have no size. agreement: share
    of equal labels; differing: share of others, chance included; commonest: what always saying the same label gives.
    """

    error: float | None
    high: float | None
    agreement: float
    differing: float
    commonest: float
    points: int

    def __str__(self) -> str:
        size = "" if self.error is None else (
            f"Relative square error {self.error:.1e} and "
        )  # fmt: skip
        said = (
            f"{size}the same label for {self.agreement:.1%} of {self.points} inputs that it was not trained on; the "
            f"commonest label alone would be right for {self.commonest:.1%}."
        )
        return said[0].upper() + said[1:]

    def good_for(self, eps: float, differing: float) -> bool:
        """True if the error is at most eps; of labels, if no more than this share differs, or less if few could."""
        if self.high is None:
            return self.differing <= differing * min(1.0, EVEN * (1 - self.commonest))
        return self.high <= eps

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def misfit(network: ReLUNetwork, reading: Reading, rows: FloatArray, targets: FloatArray) -> FloatArray:
    """Square error (n,) of each row, over the mean square deviation of the targets."""
    unit = float(((targets - targets.mean(axis=0)) ** 2).sum(axis=1).mean())
    off = (reading.slope(network(rows), targets) ** 2).sum(axis=1)
    return np.asarray(off / unit if unit > 0 else off)


def measure(network: ReLUNetwork, reading: Reading, rows: FloatArray, answers: FloatArray) -> Measured:
    """Hold a network that was just trained, in the units of the training, against these answers."""
    terms = misfit(network, reading, rows, reading.targets(answers))
    values, labels = reading.finished(network)(rows), reading.answer_labels(answers)
    differs = (reading.value_labels(values) != labels).astype(np.float64)
    error, high = (float(terms.mean()), _upper(terms, float(terms.max()))) if reading.sized else (None, None)
    return Measured(error, high, 1 - float(differs.mean()), _upper(differs, 1.0), commonest_share(labels), len(rows))


def commonest_share(labels: Any) -> float:
    """How often always saying the commonest label is right."""
    return float(np.unique(labels, return_counts=True)[1].max() / len(labels))


def _upper(terms: FloatArray, largest: float) -> float:
    """Upper end of their mean, if no term that was not met is larger than this."""
    n = len(terms)
    return float(terms.mean() + DEVIATIONS * terms.std() / np.sqrt(n) + UNMET * largest / n)
