"""A second look at answers that were all the same: a label may be rare, or that of honest inputs alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from reluctant.audit.known import Known
from reluctant.audit.seeing import seen
from reluctant.errors import BudgetExhausted, TargetError
from reluctant.interface.classification import Shape
from reluctant.interface.digits import are_labels
from reluctant.interface.probe import ask
from reluctant.numerics import FloatArray, as_generator
from reluctant.oracles import Counting
from reluctant.results import Outcome

__all__ = ["FEW_ROWS", "with_rare_labels"]

FEW_ROWS = 12  # asked to tell what kind of answers they are; all honest inputs may have the other label


def with_rare_labels(oracle: Counting, known: Known, found: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """What was found of an interface; with other labels among honest inputs it does not count as constant.

    Cost: none where it is not; else a row for each honest input, given or drawn, and a few.
    """
    served = found["served"]
    if served is not found["health"] or served.refusal is not Outcome.CONSTANT:
        return dict(found)
    written, given = found.get("written"), found.get("given", known.given)
    inside = seen(oracle, "identity", None, found.get("reach"), written=written, without=found.get("without", ()))
    answers = _of_honest_inputs(inside, given.inputs, seed)
    if not are_labels(answers) or np.ptp(answers, axis=0).max() == 0:
        return dict(found)
    rare = replace(served, shape=Shape.PIECEWISE_CONSTANT)
    return {**found, "served": rare, "health": rare}


def _of_honest_inputs(oracle: Counting, inputs: FloatArray, seed: int) -> FloatArray:
    """Answers (n, m), none where the budget does not reach, or the target does not answer them."""
    few = oracle.facts.domain.sample(as_generator(seed), FEW_ROWS, oracle.dim)
    try:
        return ask(oracle, np.concatenate([few, inputs]))
    except (BudgetExhausted, TargetError):
        return np.empty((0, oracle.outputs))
