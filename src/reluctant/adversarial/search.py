"""Gradient, ray, and again from where it led: the search for a flip, whatever the gradients come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluctant.adversarial.line import RayPoint, search_ray
from reluctant.adversarial.margins import Margins
from reluctant.adversarial.result import Flip
from reluctant.adversarial.sources import Source
from reluctant.numerics import FloatArray
from reluctant.results import Outcome

__all__ = ["DECIDED", "Search", "follow"]

DECIDED = 8.0  # times the noise: smaller margins say nothing about a side
LEAST_SLOPE = 4.0  # times the noise of a gradient: less is taken for none


@dataclass(frozen=True)
class Search:
    """Where it started, what has to change sign there, and the nearest flip that was met."""

    outcome: Outcome
    start: FloatArray
    values: FloatArray
    margins: Margins
    best: RayPoint | None
    evidence: Mapping[str, Any]

    def flip(self) -> Flip:
        """As a result."""
        if self.best is None:
            return Flip(self.outcome, self.start, evidence=self.evidence)
        before, after = self.margins.smallest(np.array([self.values, self.best.values]))
        classes = self.margins.change(self.best.values)
        return Flip(self.outcome, self.start, self.best.x, classes, (float(before), float(after)), {}, self.evidence)


def follow(source: Source, start: FloatArray, steps: int, values: FloatArray, reference: bool) -> Search:
    """Search from an input with these answers (m,); see `Margins.at` for `reference`."""
    margins = Margins.at(values, reference)
    margin = float(margins.smallest(values[None])[0])
    if margin <= DECIDED * source.sd:
        evidence = {"margin": margin, "noise": source.sd}
        return Search(Outcome.ON_BOUNDARY, start, values, margins, None, evidence)
    best, linear = None, None
    here = RayPoint(start, values, flipped=False)
    for _ in range(steps):
        change = _change(source, margins, start, here)
        if change is None:
            break
        linear = float(np.linalg.norm(change)) if linear is None else linear
        here = search_ray(source.ask, margins, start, values, change, source.domain, DECIDED * source.sd)
        if best is not None and not (here.flipped and _distance(here, start) < _distance(best, start)):
            break
        best = here if here.flipped else None
    evidence = {"margin": margin, "noise": source.sd} | ({} if linear is None else {"linear size": linear})
    unflipped = Outcome.FLAT if linear is None else Outcome.NOT_FLIPPED
    return Search(unflipped if best is None else Outcome.FLIPPED, start, values, margins, best, evidence)


def _change(source: Source, margins: Margins, start: FloatArray, here: RayPoint) -> FloatArray | None:
    """The change of the start that the gradient at a point asks for; None where there is no gradient.

    From a flipped point: the nearest input on the boundary as it looks from there. From one that is not flipped yet:
    that point, and a step of its own.
    """
    slopes, least = source.gradient(here.x), LEAST_SLOPE * source.slope_noise
    if here.flipped:
        toward = margins.toward_boundary(here.values, slopes, start - here.x, least)
        return None if toward is None else toward.change
    toward = margins.toward_boundary(here.values, slopes, np.zeros_like(start), least)
    return None if toward is None else here.x - start + toward.change


def _distance(point: RayPoint, start: FloatArray) -> float:
    return float(np.linalg.norm(point.x - start))
