"""Health: the typed findings of a check, and what they mean for a method."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from reluctant.health.noise import NoiseReading
from reluctant.numerics import Noise
from reluctant.oracles.base import Kind
from reluctant.results import Outcome

__all__ = ["Health", "Shape"]


class Shape(StrEnum):
    """What the answers look like along short lines."""

    PIECEWISE_LINEAR = "piecewise linear"
    AFFINE = "affine"
    CONSTANT = "constant"
    PIECEWISE_CONSTANT = "piecewise constant"
    SMOOTH = "smooth"
    UNCLEAR = "unclear"


REFUSALS = {
    Shape.CONSTANT: Outcome.CONSTANT,
    Shape.SMOOTH: Outcome.NOT_PIECEWISE_LINEAR,
    Shape.PIECEWISE_CONSTANT: Outcome.PIECEWISE_CONSTANT,
}


@dataclass(frozen=True)
class Health:
    """Findings of `check_health`.

    shape: what the answers look like along short lines at the scale of use.
    deterministic: the same rows gave the same answers twice.
    fresh_noise: standard deviation between two answers to the same row.
    noise: model of all deviations from a piecewise linear function, rounding included.
    readings: the noise measured at each scale.
    spread: standard deviation of the answers at the scale of use, largest output.
    decimals: digits after the point that the answers are rounded to, None if not rounded.
    number_format: the narrowest of float16, float32, float64 that holds every answer.
    answers: what the answers look like: values, probabilities or labels (as numbers, or one 1 among 0s).
    nonfinite: rows answered with NaN or inf.
    largest_scale: largest input scale answered with finite numbers, None where only a domain was asked.
    constant_beyond: scale from which answers no longer change (inputs are clipped, or it saturates).
    queries: rows spent.
    """

    shape: Shape
    deterministic: bool
    fresh_noise: float
    noise: Noise
    readings: tuple[NoiseReading, ...]
    spread: float
    decimals: int | None
    number_format: str
    answers: Kind
    nonfinite: int
    largest_scale: float | None
    constant_beyond: float | None
    queries: int

    @property
    def refusal(self) -> Outcome | None:
        """Why an exact method cannot work on this target, or None."""
        if self.shape is Shape.UNCLEAR:
            return Outcome.NON_FINITE if self.nonfinite else Outcome.TOO_NOISY
        if self.shape is Shape.PIECEWISE_LINEAR and self.answers is Kind.PROBABILITIES:
            return Outcome.NOT_PIECEWISE_LINEAR  # curvature below the noise, but a softmax all the same
        return REFUSALS.get(self.shape)

    def sentences(self) -> list[str]:
        """The findings in words, most important first."""
        return [
            f"Looks {self.shape} at small scale{self._all_the_same()}." + (f" {self.refusal}" if self.refusal else ""),
            "Deterministic." if self.deterministic else f"Not deterministic: fresh noise of {self.fresh_noise:.1e}.",
            *([] if self.answers is Kind.LABELS else self._sizes()),
            *self._warnings(),
        ]

    def _all_the_same(self) -> str:
        """Why it is refused as curved where it does not look so."""
        hidden = self.refusal is Outcome.NOT_PIECEWISE_LINEAR and self.shape is Shape.PIECEWISE_LINEAR
        return ", but these are probabilities, whose curves the noise hides" if hidden else ""

    def _sizes(self) -> list[str]:
        """Digits and noise, which labels do not have."""
        return [
            f"Answers fit {self.number_format}"
            + (f", rounded to {self.decimals} decimals." if self.decimals is not None else ", not rounded."),
            f"Noise floor {self.noise.absolute:.1e} absolute, {self.noise.relative:.1e} relative; "
            f"the answers spread by {self.spread:.2g}.",
        ]

    def _warnings(self) -> list[str]:
        found = []
        if self.answers is not Kind.VALUES:
            found.append(f"The answers look like {self.answers}.")
        if self.nonfinite:
            found.append(f"{self.nonfinite} of {self.queries} rows were answered with NaN or inf.")
        if self.largest_scale is not None and self.largest_scale < FAR_ENOUGH:
            found.append(f"Inputs beyond scale {self.largest_scale:g} are not answered.")
        if self.constant_beyond is not None and self.answers is not Kind.LABELS:  # labels stay the same on most rays
            why = "they saturate" if self.answers is Kind.PROBABILITIES else "inputs may be clipped"
            found.append(f"Answers no longer change beyond scale {self.constant_beyond:g}: {why}.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data = asdict(self)
        refusal = self.refusal.slug if self.refusal else None
        return data | {"shape": str(self.shape), "answers": str(self.answers), "refusal": refusal}


FAR_ENOUGH = 1e4  # exact methods look for creases out to here
