"""How well a trained network does on answers that it was not trained on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reluctant.learning.accuracy import CONFIDENCE, DEVIATIONS, UNMET
from reluctant.learning.student.reading import Reading
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Measured", "measure", "misfit"]


@dataclass(frozen=True)
class Measured:
    """Errors at fresh inputs, drawn like those of the training.

    error: mean square over the variance of the answers, of probabilities as probabilities; high: its upper end with
    this confidence. None where answers are labels, which have no size. agreement: share of equal labels; differing:
    the upper end of the share of others.
    """

    error: float | None
    high: float | None
    agreement: float
    differing: float
    confidence: float
    points: int

    def __str__(self) -> str:
        size = "" if self.error is None or self.high is None else (
            f"Relative square error {self.error:.1e} (below {self.high:.1e} with {self.confidence:.0%} confidence) and "
        )  # fmt: skip
        said = f"{size}the same label for {self.agreement:.1%} of {self.points} inputs that it was not trained on."
        return said[0].upper() + said[1:]

    def good_for(self, eps: float, differing: float) -> bool:
        """True if the error is at most eps; of labels, if no more than this share differs."""
        return self.differing <= differing if self.high is None else self.high <= eps

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
    differs = (reading.value_labels(reading.finished(network)(rows)) != reading.answer_labels(answers)).astype(
        np.float64
    )
    error, high = (float(terms.mean()), _upper(terms)) if reading.sized else (None, None)
    return Measured(error, high, 1 - float(differs.mean()), _upper(differs), CONFIDENCE, len(rows))


def _upper(terms: FloatArray) -> float:
    """Upper end of their mean: errors that no sample met may be like the largest that was, if there was any."""
    n = len(terms)
    return float(terms.mean() + DEVIATIONS * terms.std() / np.sqrt(n) + UNMET * terms.max() / n)
