"""Gradient, ray, and again from where it led: the search for a flip, whatever the gradients come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reluctant.adversarial.line import RayPoint, search_ray
from reluctant.adversarial.margins import Margins, Sides
from reluctant.adversarial.result import Flip
from reluctant.adversarial.sources import Source
from reluctant.numerics import FloatArray
from reluctant.results import Outcome

__all__ = ["LEAST_SLOPE", "Search", "follow", "in_words"]

LEAST_SLOPE = 4.0  # times the noise of a gradient: less is taken for none
STEPS_TAKEN = "Up to {} gradient steps did not flip the {}, as far as they were followed."


@dataclass(frozen=True)
class Search:
    """Where it started, what has to change sign there, and the nearest flip that was met."""

    outcome: Outcome
    start: FloatArray
    values: FloatArray
    margins: Sides
    best: RayPoint | None
    evidence: Mapping[str, Any]

    def flip(self, crossed: float = 0.0) -> Flip:
        """As a result; crossed: where one output changes side."""
        if self.best is None:
            return Flip(self.outcome, self.start, evidence=self.evidence)
        before, after = self.margins.smallest(np.array([self.values, self.best.values]))
        classes = self.margins.change(self.best.values)
        evidence = {**self.evidence, "threshold": crossed} if crossed and classes is None else self.evidence
        return Flip(self.outcome, self.start, self.best.x, classes, (float(before), float(after)), {}, evidence)

    def because(self, reason: str, outcome: Outcome | None = None) -> Search:
        """With a reason in words that says more than the outcome, and another outcome if one is given."""
        return replace(self, outcome=outcome or self.outcome, best=None, evidence={**self.evidence, "reason": reason})


def in_words(outcome: Outcome, steps: int, what: str = "target") -> tuple[str, str]:
    """What happened to a target or a network, and what to try; more steps are no advice to who has taken some."""
    if outcome is Outcome.NOT_FLIPPED and steps > 1:
        return STEPS_TAKEN.format(steps, what), "Start from another input."
    return outcome.happened_to(what), outcome.advice


def follow(source: Source, start: FloatArray, steps: int, values: FloatArray, margins: Margins) -> Search:
    """Search from an input with these answers (m,) and margins."""
    margin = float(margins.smallest(values[None])[0])
    evidence: dict[str, Any] = {"margin": margin, "noise": source.sd}
    if margins.classes is None:
        evidence["above"] = bool(margins.winner)  # the threshold
    if margin <= source.least:
        return Search(Outcome.ON_BOUNDARY, start, values, margins, None, evidence)
    best, here = None, RayPoint(start, values, flipped=False)
    for _ in range(steps):
        slopes = source.gradient(here.x)
        change, limit = _change(source, margins, start, here, slopes), source.limit(slopes)
        if change is None:
            break
        if here.x is start and margin <= limit.at(start[None], values[None])[0]:
            return Search(Outcome.ON_BOUNDARY, start, values, margins, None, evidence)
        evidence.setdefault("linear size", float(np.linalg.norm(change)))
        here = search_ray(source.ask, margins, start, values, change, source.domain, limit)
        if best is not None and not (here.flipped and _distance(here, start) < _distance(best, start)):
            break
        best = here if here.flipped else None
    evidence |= {"noise": source.sd}
    if best is not None:
        return Search(Outcome.FLIPPED, start, values, margins, best, evidence)
    evidence |= {"smallest margin": float(margins.smallest(here.values[None])[0])}
    unflipped = Outcome.NOT_FLIPPED if "linear size" in evidence else Outcome.FLAT
    return Search(unflipped, start, values, margins, None, evidence)


def _change(
    source: Source, margins: Margins, start: FloatArray, here: RayPoint, slopes: FloatArray
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
