"""The span step: the span of the target from values or from labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reluctant.audit.findings import Findings, skip_where
from reluctant.audit.steps.health_step import FEW_ROWS
from reluctant.interface.noise import ask
from reluctant.numerics import as_generator
from reluctant.oracles import Counting, Kind
from reluctant.results import Outcome
from reluctant.span import recover_span
from reluctant.span.recover import values_refusal

FROM_LABELS = (Outcome.PIECEWISE_CONSTANT, Outcome.NOT_PIECEWISE_LINEAR, Outcome.OUT_OF_REACH)


def span_from_labels(known: Findings, outputs: int) -> bool:
    """True if values do not give the span, and labels of so many outputs may, of the answers as they are.

    Values are no pieces of linear functions, or rounding leaves nothing of them, or none can be read through a link.
    """
    served, health = known.served, known.health
    if served is None or health is None:
        return False
    refusal = values_refusal(health)
    coarse = refusal is Outcome.TOO_NOISY and served.deterministic and (outputs > 1 or health.raw is None)
    unread = known.linked and refusal is Outcome.NON_FINITE
    readable = served.refusal not in (Outcome.CONSTANT, Outcome.NON_FINITE)
    return refusal in FROM_LABELS or ((coarse or unread) and readable)


def look_for_span(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """From values; from labels where these do not give it."""
    labels = span_from_labels(known, oracle.outputs)
    if not labels and (known.health is None or values_refusal(known.health) is not None):
        skip_where(known, Outcome.CONSTANT, Outcome.NON_FINITE, missing="directions")
    # Coarse directions of few digits do not pass verification, and finding them anew costs more.
    few = known.health is not None and known.health.number_format != "float64"
    threshold = _middle(oracle, known, seed) if labels else None
    return {"span": recover_span(oracle, labels=labels, threshold=threshold, fine=few, rng=seed)}


def _middle(oracle: Counting, known: Findings, seed: int) -> float | None:
    """An answer of one output that others are on both sides of, which is a label too; None where it answers labels."""
    if oracle.outputs > 1 or known.health is None or known.health.answers is Kind.LABELS:
        return None
    return float(np.median(ask(oracle, oracle.facts.domain.sample(as_generator(seed), FEW_ROWS, oracle.dim))))
