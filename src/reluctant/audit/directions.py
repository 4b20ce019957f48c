"""The span beside a verified copy: what the copy looks at is looked at, also where few inputs show it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.results import Outcome
from reluctant.span import Span, Subspace

__all__ = ["MORE", "with_those_of"]

MORE = "directions of the copy"  # evidence of a span: how many are known from the copy alone
CLEARLY = 0.1  # of a weight vector: so much of it lies outside a span by no error of either


def with_those_of(network: ReLUNetwork, span: Span | None) -> Span | None:
    """The span with the directions that this network looks at besides; None where there are none.

    Random inputs may miss a direction that matters on few of them, where the search for creases met its neuron. One
    from labels that has more than the network can look at is unclear: stairs of rounded answers make up directions.
    """
    if span is None or not span.ok or network.depth < 2:
        return None
    if "labels" in span.evidence and span.rank > _at_most(network):
        return replace(span, outcome=Outcome.RANK_UNCLEAR)
    outside = _outside(network, span.basis)
    if not len(outside):
        return None
    more = Subspace.spanned_by(outside, tol=CLEARLY)
    both = Subspace.spanned_by(np.concatenate([span.basis, more.basis]))
    outcome = Outcome.FULL_RANK if both.rank == both.dim else span.outcome
    angle = 0.0 if outcome is Outcome.FULL_RANK else float("nan")  # of the others' accuracy the copy says nothing
    return replace(span, outcome=outcome, subspace=both, angle=angle, evidence={**span.evidence, MORE: more.rank})


def _at_most(network: ReLUNetwork) -> int:
    """Directions that a network of this shape can look at, whatever the errors of its weights."""
    skip = np.empty((0, network.dim)) if network.skip is None else network.skip
    return int(np.linalg.matrix_rank(np.concatenate([network.weights[0], skip])))


def _outside(network: ReLUNetwork, basis: FloatArray) -> FloatArray:
    """Unit rows of the first layer, less what lies in the span, where that leaves enough of them."""
    rows = network.weights[0]
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    units = rows[sizes[:, 0] > 0] / sizes[sizes[:, 0] > 0]
    left = units - units @ basis.T @ basis
    return left[np.linalg.norm(left, axis=1) > CLEARLY]
