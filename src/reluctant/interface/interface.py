"""`Interface`: what a check measured of a target's answers, as one frozen value, and what it means for a method."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from reluctant._notebook import html_table
from reluctant.interface.classification import Shape, Told
from reluctant.interface.diagnoses import FAR_ENOUGH, findings, hidden_structure, refusal_diagnosis
from reluctant.interface.digits import Behind
from reluctant.interface.probe import NoiseReading
from reluctant.interface.whole_numbers import Whole
from reluctant.messages import Diagnosis
from reluctant.numerics import Noise
from reluctant.oracles.base import Kind
from reluctant.oracles.links import noun_behind
from reluctant.results import Outcome

__all__ = ["FAR_ENOUGH", "Interface"]

REFUSALS = {
    Shape.CONSTANT: Outcome.CONSTANT,
    Shape.SMOOTH: Outcome.NOT_PIECEWISE_LINEAR,
    Shape.PIECEWISE_CONSTANT: Outcome.PIECEWISE_CONSTANT,
}


@dataclass(frozen=True)
class Interface:
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
    unit: every answer at the scale of use lies between 0 and 1.
    sigmoids: the answers are probabilities of sigmoids, by how lines bend.
    like_sigmoids: they may be, by being 0 or 1 far out, and digits do not show more.
    curved_odds: lines bend as log-odds too, where no crease explains it: the answers are not those of sigmoids.
    saturated: nearly all answers are 0 or 1 far out.
    recast: a local model, which would answer with more digits if it were opened with precision='float64'.
    told: how many of the probabilities of its classes each answer tells, the largest; None where it is all or none.
    percent: the answers look like percentages; what they look like is said of their hundredths.
    tanh: the answers are those of a tanh, by how lines bend.
    whole: what whole numbers are, labels or rounded values; None of two of them, and of other answers.
    in_steps: they are levels that no rounding is seen to explain: those of trees, or of quantised numbers.
    class_columns: outputs that are whole as numbers of classes are, or counts, beside others that are not.
    others_far: all answers are the same at the scale of use, and not far out.
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
    sigmoids: bool = False
    like_sigmoids: bool = False
    curved_odds: bool = False
    saturated: bool = False
    recast: bool = False
    told: Told | None = None
    percent: bool = False
    tanh: bool = False
    whole: Whole | None = None
    in_steps: bool = False
    class_columns: tuple[int, ...] = ()
    others_far: bool = False

    @property
    def refusal(self) -> Outcome | None:
        """Why an exact method cannot work on this target, or None."""
        if self.shape is Shape.UNCLEAR:
            return Outcome.NON_FINITE if self.nonfinite else Outcome.TOO_NOISY
        if self.are_of_a_link and self.shape in (Shape.PIECEWISE_LINEAR, Shape.AFFINE):
            return Outcome.NOT_PIECEWISE_LINEAR  # curvature below the noise, but a link stands there all the same
        return REFUSALS.get(self.shape)

    @property
    def diagnosis(self) -> Diagnosis | None:
        """Why an exact method cannot work on this target, and what to try; None if it can."""
        return refusal_diagnosis(self)

    @property
    def more_digits(self) -> bool:
        """True if it would answer with more digits in float64: it can be re-cast, and nothing else limits them."""
        rounded = self.decimals is not None or (self.behind is not None and self.behind.decimals is not None)
        number_format = self.number_format if self.behind is None else self.behind.number_format
        return self.recast and self.deterministic and not rounded and number_format != "float64"

    def why(self, outcome: Outcome) -> Diagnosis | None:
        """What this says of a run that ended so; None if the interface was not the reason."""
        if outcome is Outcome.TOO_NOISY and self.refusal is None:  # too noisy for one method, and not for others
            return hidden_structure(self)
        return self.diagnosis if outcome is self.refusal else None

    def findings(self) -> list[Diagnosis]:
        """All that was measured, most important first."""
        return findings(self)

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings()))

    @property
    def curves_hidden(self) -> bool:
        """True if answers of a link look straight: what is said of their looks would be wrong of them."""
        return self.refusal is Outcome.NOT_PIECEWISE_LINEAR and self.shape is not Shape.SMOOTH

    @property
    def are_probabilities(self) -> bool:
        """True of the answers of a softmax, which add up to one, and of those that only sigmoids explain."""
        return self.answers is Kind.PROBABILITIES or (self.sigmoids and self.answers is Kind.VALUES)

    @property
    def are_of_a_link(self) -> bool:
        """True of probabilities, and of the answers of a tanh."""
        return self.are_probabilities or (self.tanh and self.answers is Kind.VALUES)

    @property
    def noun(self) -> str:
        """What answers of a link are, in a word."""
        return noun_behind("tanh" if self.tanh else None)

    @property
    def may_be_sigmoids(self) -> bool:
        """True if answers are those of sigmoids, or stay between 0 and 1 and look like them as far as digits show."""
        curved = self.unit and self.squashed
        return self.answers is Kind.VALUES and (self.sigmoids or self.like_sigmoids or curved)

    @property
    def squashed(self) -> bool:
        """True if answers are curved, and end far out: something stands after the values, if there are any."""
        return self.shape is Shape.SMOOTH and self.constant_beyond is not None

    @property
    def may_be_squashed(self) -> bool:
        """The same, or curved inside a domain, where nothing is known of how they end."""
        return self.squashed or (self.shape is Shape.SMOOTH and self.largest_scale is None)

    def _repr_html_(self) -> str:
        facts = {
            "answers": self.answers,
            "shape": self.shape,
            "number format": self.number_format,
            "decimals": self.decimals,
            "same answer twice": self.deterministic,
            "noise": f"{self.noise.absolute:.2g} + {self.noise.relative:.2g} × size",
            "spread": self.spread,
            "refusal": None if self.refusal is None else self.refusal.slug,
            "queries": self.queries,
        }
        return html_table(type(self).__name__, facts)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: every field, the outcome of a refusal, and its diagnosis."""
        refusal, diagnosis = self.refusal, self.diagnosis
        return asdict(self) | {
            "shape": str(self.shape),
            "answers": str(self.answers),
            "whole": None if self.whole is None else str(self.whole),
            "told": None if self.told is None else self.told._asdict(),
            "refusal": None if refusal is None else refusal.slug,
            "diagnosis": None if diagnosis is None else diagnosis.to_dict(),
        }
