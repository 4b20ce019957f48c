"""What is to be told beside a learned network: what noise and eps allow, what stands out, how steep it is."""

from __future__ import annotations

import numpy as np

from reluctant.learning.accuracy import output_units
from reluctant.learning.checks import Drawn
from reluctant.learning.models import Model
from reluctant.verification.tolerances import EXACT_TOLERANCE

__all__ = ["NEAR_FLOOR", "limits_told", "stands_out", "steepest"]

NEAR_FLOOR = 100.0  # times the noise: an error that has reached this leaves nothing to find
STANDS_OUT = 1e4  # times as far from the middle as most answers is one inside a bump


def limits_told(model: Model, floor: float, eps: float, points: int, *, few_digits: bool) -> str:
    """In words: what noise allows, and what eps allows to be missing; floor: the error that noise looks like."""
    checked, said = model.checked, []
    if few_digits or max(checked.accuracy.error, eps) < NEAR_FLOOR * floor:
        said.append(f"The noise of the answers alone is a relative square error of about {floor:.0e}.")
    if checked.narrow and checked.largest > EXACT_TOLERANCE:
        count = f"{checked.narrow} of {points}"
        said.append(f"{count} random points stand out: something narrow is missing. A smaller eps would look for it.")
    if not model.good_for(eps) and not few_digits:
        said.append("If the target may have several hidden layers, use extract: it follows creases that bend.")
    return " ".join(said)


def steepest(model: Model, drawn: Drawn) -> float | None:
    """How steep the steepest neuron is, in deviations of the output; None if there is no neuron."""
    units = output_units(drawn.answers, np.ones(len(drawn.rows)))
    return float(np.abs(model.planes.jump / np.sqrt(units)).max()) if len(model.planes) else None


def stands_out(drawn: Drawn) -> bool:
    """True if a few points are far from where all the others are."""
    off = np.abs(drawn.answers - np.median(drawn.answers, axis=0)).max(axis=1)
    return bool(off.max() > STANDS_OUT * np.median(off))
