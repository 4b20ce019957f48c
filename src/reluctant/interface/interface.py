"""`Interface`: what a check measured of a target's answers, as one frozen value, and what it means for a method."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reluctant._notebook import html_table
from reluctant.interface import diagnoses as words
from reluctant.interface.classification import Shape, Told
from reluctant.interface.digits import Behind, rounded_to
from reluctant.interface.probe import NoiseReading
from reluctant.interface.whole_numbers import Whole
from reluctant.numerics import Noise
from reluctant.oracles.base import Kind
from reluctant.oracles.links import noun_behind
from reluctant.results import Outcome

__all__ = ["Interface"]

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
    def reason(self) -> str:
        """Why an exact method cannot work on this target, and what can be done; empty if it can."""
        return words.why_refused(self)

    @property
    def more_digits(self) -> bool:
        """True if it would answer with more digits in float64: it can be re-cast, and nothing else limits them."""
        rounded = self.decimals is not None or (self.behind is not None and self.behind.decimals is not None)
        number_format = self.number_format if self.behind is None else self.behind.number_format
        return self.recast and self.deterministic and not rounded and number_format != "float64"

    def why(self, outcome: Outcome) -> str:
        """What this says of a run that ended so; empty if it was not for what the interface gives."""
        if outcome is Outcome.TOO_NOISY and self.refusal is None:  # too noisy for one method, and not for others
            return words.too_noisy(self)
        return self.reason if outcome is self.refusal else ""

    def sentences(self) -> list[str]:
        """The findings in words, most important first."""
        hidden = self.curves_hidden or self.refusal is Outcome.TOO_NOISY
        return [
            self.reason if hidden else f"Looks {self.shape} at small scale. {self.reason}".rstrip(),
            "Deterministic." if self.deterministic else f"Not deterministic: fresh noise of {self.fresh_noise:.1e}.",
            *([] if self.answers is Kind.LABELS else self._sizes()),
            *self._warnings(),
        ]

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

    def _sizes(self) -> list[str]:
        """Digits and noise, which labels do not have."""
        if not np.isfinite(self.spread):
            return []
        said = (
            f"Noise floor {self.noise.absolute:.1e} absolute, {self.noise.relative:.1e} relative; "
            f"the answers spread by {self.spread:.2g}."
        )
        if self.behind is None:
            rounded = "not rounded" if self.decimals is None else rounded_to(self.decimals)
            return [f"Answers fit {self.number_format}, {rounded}.", said]
        return [f"Values were read from {self.behind.noun} {self.behind.told}.", said]

    def _warnings(self) -> list[str]:
        found = []
        if self.answers is not Kind.VALUES:
            found.append(f"The answers look like {words.likeness(self)}.")
        found += [words.beside_values(self.class_columns)] if self.class_columns else []
        if self.whole is Whole.SCORES:
            found.append(words.IN_ORDER)
        if self.nonfinite:
            why = self._why_nonfinite()
            found.append(f"{self.nonfinite} of {self.queries} rows were answered with NaN or inf{why}.")
        if self.largest_scale is not None and self.largest_scale < FAR_ENOUGH:
            none = "are not answered" if self.behind is None else "have no values to read"
            found.append(f"Inputs beyond scale {self.largest_scale:g} {none}.")
        steps = self.in_steps or self.answers is Kind.LABELS  # which stay the same on most rays
        if self.constant_beyond is not None and not steps:
            found.append(f"Answers no longer change beyond scale {self.constant_beyond:g}: {self._why_constant()}.")
        if self.like_sigmoids and self.may_be_sigmoids and self.refusal is None:
            found.append(words.ends_at_0_and_1(self))
        return found

    def _why_nonfinite(self) -> str:
        if self.behind is None:
            return ""
        told = "an answer" if self.behind.link == "tanh" else "a probability"
        return f": {told} there is exactly {self.behind.ends()}, or not told"

    def _why_constant(self) -> str:
        if self.are_of_a_link and self.saturated:
            return "they saturate"
        unclear = (self.shape is Shape.SMOOTH or self.may_be_sigmoids) and not self.are_of_a_link
        clipped = "inputs or answers are clipped (give the range of inputs: --domain LOW,HIGH)"
        return f"they saturate, or {clipped}" if unclear else f"it may be that {clipped}"

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
        """Plain data for JSON."""
        data = asdict(self)
        refusal = self.refusal.slug if self.refusal else None
        kept = {name: value for name, value in data.items() if name not in OF_WORDS_ALONE}
        return kept | {"shape": str(self.shape), "answers": str(self.answers), "refusal": refusal}


# What `to_dict` leaves out, for it shows in words and refusals.
OF_WORDS_ALONE = (
    "behind", "unit", "sigmoids", "like_sigmoids", "curved_odds", "saturated", "recast", "told", "percent", "tanh",
    "whole", "in_steps", "class_columns", "others_far",
)  # fmt: skip

FAR_ENOUGH = 1e4  # exact methods look for creases out to here
