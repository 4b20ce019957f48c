"""What a recovered network is good for: errors of its neurons, how far out, and what could hide below them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reluctant.numerics import FloatArray

__all__ = ["BADLY_CONDITIONED", "Certificate"]

BADLY_CONDITIONED = 1e3  # from here on a condition number is worth a word


@dataclass(frozen=True)
class Certificate:
    """Standard errors and limits of a recovered network.

    weight_errors: standard error of a weight of each hidden neuron, its output weights being of norm one.
    resolution: a neuron whose slope changes by less than this along a line could hide in the noise; without a neuron
        there is none to measure it by, and it says nothing.
    radius: creases farther from the origin than this were not looked for; infinite where that says nothing.
    width: the number of hidden neurons, up to equivalence: copies of a neuron count once, neurons that do
        nothing not at all.
    condition: condition number of the first layer, where layers above were found through its inverse; they lose
        the digits of it.
    layer: which layer's neurons these are, where there is more than one.
    estimated: errors are standard errors of a fit to answers of few digits, and not bounds.
    sums: units that stand for neurons that are always active, or carry others on: no answer tells more than their sum.
    """

    weight_errors: FloatArray
    resolution: float
    radius: float
    condition: float | None = None
    sums: int = 0
    layer: str = ""
    estimated: bool = False

    @property
    def width(self) -> int:
        """Number of hidden neurons found."""
        return len(self.weight_errors)

    def __str__(self) -> str:
        if not self.width:
            return self._of_none()
        largest = self.weight_errors.max(initial=0)
        far = f", or farther out than {self.radius:.1e}," if np.isfinite(self.radius) else ""
        where = f" in the {self.layer} layer" if self.layer else ""
        known = f"weights to {largest:.1e} at worst"
        if self.estimated:
            known = (
                f"weights to a standard error of {largest:.1e} (some may be off by tens of times that), biases to "
                "about the noise of an answer"
            )
        return (
            f"{self.width} neurons{where} up to equivalence, {known}. A neuron that bends the function by less than "
            f"{self.resolution:.1e}{far} could be missing."
        ) + self._of_two_layers()

    def _of_none(self) -> str:
        far = f", farther out than {self.radius:.1e}" if np.isfinite(self.radius) else ""
        where = f" in the {self.layer} layer" if self.layer else ""
        return (
            f"No neuron was found{where}. One that bends the function by less than the noise of the answers{far}, or "
            "only where nothing was asked, could be missing."
        ) + self._of_two_layers()

    def _of_two_layers(self) -> str:
        sums, limits = "", ""
        if self.sums:
            sums = f" {self.sums} more units are the sum of neurons that are always active; which ones no answer tells."
        if self.condition is not None and self.condition > BADLY_CONDITIONED:
            limits = f" The first layer's weights have condition number {self.condition:.1e}, which limits the digits."
        return sums + limits

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        errors, resolution = self.weight_errors.tolist(), self.resolution if self.width else None
        return {
            "weight errors": errors, "resolution": resolution, "radius": self.radius, "width": self.width,
            "condition": self.condition, "sums": self.sums, "layer": self.layer,
        }  # fmt: skip
