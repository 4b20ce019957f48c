"""Health: the typed findings of a check, and what they mean for a method."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from reluctant.health.behind import ENOUGH_DECIMALS, Behind
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
    behind: the probabilities that a link reads these answers from, None without one.
    unit: every answer lies between 0 and 1.
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
    behind: Behind | None = None
    unit: bool = False

    @property
    def refusal(self) -> Outcome | None:
        """Why an exact method cannot work on this target, or None."""
        if self.shape is Shape.UNCLEAR:
            return Outcome.NON_FINITE if self.nonfinite else Outcome.TOO_NOISY
        if self.shape is Shape.PIECEWISE_LINEAR and self.answers is Kind.PROBABILITIES:
            return Outcome.NOT_PIECEWISE_LINEAR  # curvature below the noise, but a softmax all the same
        return REFUSALS.get(self.shape)

    @property
    def reason(self) -> str:
        """Why an exact method cannot work on this target, and what can be done; empty if it can."""
        refusal = self.refusal
        if refusal is Outcome.NOT_PIECEWISE_LINEAR and self.answers is Kind.PROBABILITIES:
            return self._of_probabilities()
        if refusal is Outcome.NOT_PIECEWISE_LINEAR and self.may_be_sigmoids:
            return f"{refusal.happened} {MAYBE_SIGMOIDS}"
        if refusal is Outcome.PIECEWISE_CONSTANT and self.answers is Kind.LABELS:
            return f"The answers are labels, which do not change under small steps. {refusal.advice}"
        if refusal is Outcome.NON_FINITE and self.behind is not None and self.behind.certain:
            return NOTHING_TO_READ
        return str(refusal) if refusal else ""

    def sentences(self) -> list[str]:
        """The findings in words, most important first."""
        looks = f"Looks {self.shape} at small scale. {self.reason}".rstrip()
        return [
            self.reason if self._curves_hidden else looks,
            "Deterministic." if self.deterministic else f"Not deterministic: fresh noise of {self.fresh_noise:.1e}.",
            *([] if self.answers is Kind.LABELS else self._sizes()),
            *self._warnings(),
        ]

    @property
    def _curves_hidden(self) -> bool:
        """True if probabilities look straight: what is said of their looks would be wrong of them."""
        return self.refusal is Outcome.NOT_PIECEWISE_LINEAR and self.shape is Shape.PIECEWISE_LINEAR

    def _of_probabilities(self) -> str:
        if self.decimals is not None:
            said = TOO_COARSE if self.decimals < ENOUGH_DECIMALS else COARSE
            return f"The answers are probabilities rounded to {self.decimals} decimals. {said}"
        hidden = ", by less than their noise at small scale" if self._curves_hidden else ""
        return f"The answers are probabilities, which are curved{hidden}. {READ_THEM}"

    @property
    def may_be_sigmoids(self) -> bool:
        """True if answers stay between 0 and 1 however far out they are asked."""
        return self.unit and self.constant_beyond is not None and self.answers is Kind.VALUES

    def _sizes(self) -> list[str]:
        """Digits and noise, which labels do not have."""
        if not np.isfinite(self.spread):
            return []
        said = (
            f"Noise floor {self.noise.absolute:.1e} absolute, {self.noise.relative:.1e} relative; "
            f"the answers spread by {self.spread:.2g}."
        )
        if self.behind is None:
            rounded = "not rounded" if self.decimals is None else f"rounded to {self.decimals} decimals"
            return [f"Answers fit {self.number_format}, {rounded}.", said]
        rounded = "" if self.behind.decimals is None else f" rounded to {self.behind.decimals} decimals"
        return [f"Values were read from probabilities{rounded}.", said]

    def _warnings(self) -> list[str]:
        found = []
        if self.answers is not Kind.VALUES:
            found.append(f"The answers look like {self.answers}.")
        if self.nonfinite:
            why = "" if self.behind is None else ": a probability there is exactly 0 or 1, or not told"
            found.append(f"{self.nonfinite} of {self.queries} rows were answered with NaN or inf{why}.")
        if self.largest_scale is not None and self.largest_scale < FAR_ENOUGH:
            none = "are not answered" if self.behind is None else "have no values to read"
            found.append(f"Inputs beyond scale {self.largest_scale:g} {none}.")
        if self.constant_beyond is not None and self.answers is not Kind.LABELS:  # labels stay the same on most rays
            found.append(f"Answers no longer change beyond scale {self.constant_beyond:g}: {self._why_constant()}.")
        return found

    def _why_constant(self) -> str:
        if self.answers is Kind.PROBABILITIES:
            return "they saturate"
        if self.may_be_sigmoids:
            return MAYBE_SATURATED
        return "they saturate, or inputs are clipped" if self.shape is Shape.SMOOTH else "inputs may be clipped"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data = asdict(self)
        for words_alone in ("behind", "unit"):
            del data[words_alone]
        refusal = self.refusal.slug if self.refusal else None
        return data | {"shape": str(self.shape), "answers": str(self.answers), "refusal": refusal}


READ_THEM = "Use extract, which reads them through their link: link='softmax' (reluctant extract --link softmax)."
TOO_COARSE = (
    "The values before the link cannot be read from so few digits (link=, --link): log-ratios of such numbers change "
    "in steps, and are infinite where one is rounded to 0. A network can be trained on them, without the link "
    "(rl.train_student, audit), and the span can be taken from labels (labels=True, span --labels)."
)
COARSE = (
    "Without all digits extract may not recover the network through its link (reluctant extract --link softmax). One "
    "can be trained on them, without the link (rl.train_student, audit)."
)
NOTHING_TO_READ = (
    "Every probability behind the link was exactly 0 or 1. Labels are like that, and no link can read them: leave it "
    "out (link='identity'). Where probabilities saturate, ask nearer to the origin (--domain LOW,HIGH)."
)
MAYBE_SIGMOIDS = (
    "They lie between 0 and 1: if each is the probability of a sigmoid, extract reads them through it, link='sigmoid' "
    "(reluctant extract --link sigmoid); if not, a network can be trained on them (rl.train_student, audit)."
)
MAYBE_SATURATED = "inputs may be clipped, or these are probabilities that saturate (--link sigmoid)"
FAR_ENOUGH = 1e4  # exact methods look for creases out to here
