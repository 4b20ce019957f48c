"""The cost of a defense to honest users: the error of their answers and the labels that change."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reluctant.defenses.defense import labels_of
from reluctant.errors import InvalidInput
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Kind, Oracle


@dataclass(frozen=True)
class HonestCost:
    """Defended answers beside plain ones, on honest inputs.

    Errors are relative to the standard deviation of the plain answers, over all outputs; NaN where the defended ones
    are of another kind (labels or probabilities instead of values) or shape. `agreement` is the share of inputs that
    keep their label, `rows` how many inputs were compared.
    """

    rms_error: float
    max_error: float
    agreement: float
    rows: int

    def __str__(self) -> str:
        error = (
            "other answers"
            if np.isnan(self.rms_error)
            else f"error {self.rms_error:.1e} rms, {self.max_error:.1e} at most, of the output's deviation"
        )
        return f"{error}; {self.agreement:.1%} of {self.rows} labels kept"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def honest_cost(plain: Oracle, defended: Oracle, inputs: ArrayLike) -> HonestCost:
    """Ask both the same honest inputs (n, d) and compare.

    Errors are told between answers of one kind: where a defense makes probabilities of values, pass the oracle of
    probabilities as `plain` to compare those. Cost: n rows each.
    """
    before, after = plain.query(inputs), defended.query(inputs)
    if plain.facts.kind is Kind.LABELS:
        raise InvalidInput.about("plain", got="labels", expected="the answers before the defense")
    same_label = labels_of(before, plain.facts.kind) == labels_of(after, defended.facts.kind)
    same_kind = plain.facts.kind is defended.facts.kind and before.shape == after.shape
    rms, largest = _relative_errors(before, after) if same_kind else (float("nan"), float("nan"))
    return HonestCost(rms, largest, float(same_label.mean()), len(before))


def _relative_errors(before: FloatArray, after: FloatArray) -> tuple[float, float]:
    unit = float(before.std()) or 1.0
    difference = np.abs(after - before)
    return float(np.sqrt(np.mean(difference**2))) / unit, float(difference.max()) / unit
