"""The search for a flip from any source of gradients, and `Flip`, its result.

Take a gradient, search the ray along it, and go again from where it led. A `Flip` holds the flipped input, how
small the change was, and what it cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from reluctant.adversarial.decision import Margins, Sides
from reluctant.adversarial.gradient_source import GradientSource
from reluctant.adversarial.ray import RayPoint, search_ray
from reluctant.messages import Diagnosis, Remedy
from reluctant.numerics import FloatArray
from reluctant.oracles import Rows
from reluctant.results import Ended, Outcome

TYPICAL = 0.6745  # median of |N(0, 1)|: the step of a random linear function, times √d


@dataclass(frozen=True)
class Flip(Ended):
    """What one step did.

    x is the flipped input, as close to the boundary as the search came, None if there is none. `classes` are the
    winning classes before and after (None where the sign of one output is meant), `margins` the smallest margin of
    the first one before and after.
    """

    outcome: Outcome
    start: FloatArray
    x: FloatArray | None = None
    classes: tuple[int, int] | None = None
    margins: tuple[float, float] | None = None
    rows: Mapping[str, Rows] = field(default_factory=lambda: MappingProxyType({}))
    evidence: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    stage: str = ""
    reason: Diagnosis | None = None

    @property
    def ok(self) -> bool:
        """True only if the flipped input was seen to be flipped."""
        return self.outcome is Outcome.FLIPPED

    @property
    def size(self) -> float:
        """Norm of the change; NaN if there is none."""
        return float("nan") if self.x is None else float(np.linalg.norm(self.x - self.start))

    @property
    def relative_size(self) -> float:
        """Size over the norm of the input."""
        norm = float(np.linalg.norm(self.start))
        return self.size / norm if norm > 0 else float("inf") if self.x is not None else float("nan")

    @property
    def scaled_size(self) -> float:
        """Relative size times √d: of order one in a random network, by Theorem 1.1."""
        return self.relative_size * float(np.sqrt(len(self.start)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            **self.ending(),
            "size": self.size,
            "relative size": self.relative_size,
            "relative size times root of inputs": self.scaled_size,
            "classes": self.classes,
            "margins": self.margins,
        }

    def _sign(self) -> str:
        """What happens to one output; evidence["threshold"] is where it changes side, if that is not at 0."""
        threshold = self.evidence.get("threshold")
        return "The sign changes" if threshold is None else f"The answer crosses {threshold:g}"

    def shown_facts(self) -> dict[str, object]:
        """The change, and its size."""
        if self.x is None:
            return {}
        change = self._sign() if self.classes is None else "class {} to class {}".format(*self.classes)
        return {"change": change, "relative size": self.relative_size, "times √d": self.scaled_size}

    def __str__(self) -> str:
        if not self.ok:
            return str(self.diagnosis)
        change = self._sign() if self.classes is None else "Class {} becomes class {}".format(*self.classes)
        if not np.isfinite(self.relative_size):  # from the origin
            return f"{self.outcome.happened} {change} with a step of {self.size:.3g}."
        return (
            f"{self.outcome.happened} {change} with {self.relative_size:.2%} of the input's norm, which is "
            f"{self.scaled_size:.2f}/√d; random networks flip at about {TYPICAL:.2f}/√d."
        )


LEAST_SLOPE = 4.0  # times the noise of a gradient: less is taken for none


@dataclass(frozen=True)
class FlipSearch:
    """Where it started, what has to change sign there, and the nearest flip that was met."""

    outcome: Outcome
    start: FloatArray
    values: FloatArray
    margins: Sides
    best: RayPoint | None
    evidence: Mapping[str, Any]
    reason: Diagnosis | None = None

    def flip(self, crossed: float = 0.0) -> Flip:
        """As a result; crossed: where one output changes side."""
        if self.best is None:
            return Flip(self.outcome, self.start, evidence=self.evidence, reason=self.reason)
        before, after = self.margins.smallest(np.array([self.values, self.best.values]))
        classes = self.margins.change(self.best.values)
        evidence = {**self.evidence, "threshold": crossed} if crossed and classes is None else self.evidence
        return Flip(self.outcome, self.start, self.best.x, classes, (float(before), float(after)), {}, evidence)

    def because(self, reason: Diagnosis, outcome: Outcome | None = None) -> FlipSearch:
        """With a reason that is more exact than the outcome, and another outcome if one is given."""
        return replace(self, outcome=outcome or self.outcome, best=None, reason=reason)


def unflipped(outcome: Outcome, steps: int, *others: Remedy) -> Diagnosis:
    """How a search on the target ended, with other remedies, or its own; more steps are no remedy after some."""
    if outcome is Outcome.NOT_FLIPPED and steps > 1:
        return Diagnosis("not-flipped-in-steps", {"steps": steps, "what": "target"}, others)
    return replace(outcome.diagnosis, remedies=others or outcome.diagnosis.remedies)


def follow_gradients(
    source: GradientSource, start: FloatArray, steps: int, values: FloatArray, margins: Margins
) -> FlipSearch:
    """Search from an input with these answers (m,) and margins."""
    margin = float(margins.smallest(values[None])[0])
    evidence: dict[str, Any] = {"margin": margin, "noise": source.sd}
    if margins.classes is None:
        evidence["above"] = bool(margins.winner)  # the threshold
    if margin <= source.least:
        return FlipSearch(Outcome.ON_BOUNDARY, start, values, margins, None, evidence)
    best, here = None, RayPoint(start, values, flipped=False)
    for _ in range(steps):
        slopes = source.gradient(here.x)
        change, limit = _wanted_change(source, margins, start, here, slopes), source.limit(slopes)
        if change is None:
            break
        if here.x is start and margin <= limit.at(start[None], values[None])[0]:
            return FlipSearch(Outcome.ON_BOUNDARY, start, values, margins, None, evidence)
        evidence.setdefault("linear size", float(np.linalg.norm(change)))
        here = search_ray(source.ask, margins, start, values, change, source.domain, limit)
        if best is not None and not (here.flipped and _distance(here, start) < _distance(best, start)):
            break
        best = here if here.flipped else None
    evidence |= {"noise": source.sd}
    if best is not None:
        return FlipSearch(Outcome.FLIPPED, start, values, margins, best, evidence)
    evidence |= {"smallest margin": float(margins.smallest(here.values[None])[0])}
    unflipped = Outcome.NOT_FLIPPED if "linear size" in evidence else Outcome.FLAT
    return FlipSearch(unflipped, start, values, margins, None, evidence)


def _wanted_change(
    source: GradientSource, margins: Margins, start: FloatArray, here: RayPoint, slopes: FloatArray
) -> FloatArray | None:
    """The change of the start that the gradients (m, d) at a point ask for; None where there are none.

    From a flipped point: the nearest input on the boundary as it looks from there. From one that is not flipped yet:
    that point, and a step of its own.
    """
    least = LEAST_SLOPE * source.slope_noise
    if here.flipped:
        toward = margins.toward_boundary(here.values, slopes, start - here.x, least)
        return None if toward is None else toward.change
    toward = margins.toward_boundary(here.values, slopes, np.zeros_like(start), least)
    return None if toward is None else here.x - start + toward.change


def _distance(point: RayPoint, start: FloatArray) -> float:
    return float(np.linalg.norm(point.x - start))
