"""A span found inside a box, looked at beyond it: do typical inputs see what it leaves out?

Where probabilities saturate a span is looked for in a box around the origin. A neuron that is never active there has
directions that nothing inside shows. What the target itself tells needs no link, and can be compared everywhere.
"""

from __future__ import annotations

import numpy as np

from reluctant.domains import Domain
from reluctant.health.answers import digits_noise
from reluctant.health.saturation import FARTHEST
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.link import all_told
from reluctant.span.subspace import Subspace

__all__ = ["seen_from_typical_inputs"]

POINTS = 64
CLEARLY = 1e-3  # of the deviation of the answers: what directions off by a little change is less
NOISE = 8.0  # times that of an answer


def seen_from_typical_inputs(oracle: Counting, found: Subspace, box: Domain, rng: np.random.Generator) -> float | None:
    """Share of typical inputs at which a step along what is left out changes the answer; None where there is none such.

    Cost: 192 rows, none where typical inputs lie in the box, or nothing is left out.
    """
    if np.max(box.high) >= FARTHEST or found.rank == found.dim:
        return None
    start = Domain().sample(rng, POINTS, oracle.dim)
    away = rng.standard_normal((POINTS, found.dim - found.rank)) @ found.null_basis
    with oracle.stage("verify", expected=3 * POINTS), all_told(oracle) as told:
        oracle.answer(np.concatenate([start, start, start + away]))
    here, again, there = np.split(np.nan_to_num(np.concatenate(told)), 3)
    changed = np.abs(there - here).max(axis=1) > _least(here, again)
    return float(changed.mean())


def _least(here: FloatArray, again: FloatArray) -> float:
    """The smallest change that is one: beyond noise, and what errors of the directions may do."""
    fresh = float(np.abs(again - here).max())
    return max(NOISE * max(fresh, digits_noise(here)), CLEARLY * float(here.std(axis=0).max()))
