"""The adversarial steps: the smallest flip of some inputs, and local linearity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reluctant.adversarial import LocalLinearity, flip_sign, local_linearity, predicted_change
from reluctant.audit.budget import FLIP_INPUTS
from reluctant.audit.copies import finite
from reluctant.audit.findings import Findings, Skip, skip_where
from reluctant.audit.run_facts import GradientFrom, Linearity
from reluctant.errors import NoGradient
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.results import Outcome
from reluctant.span import Span


def flip_inputs(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """One gradient step at a few inputs: on the copy where there is one, else with the span, else by questions."""
    _skip_without_gradient(known)
    between = known.health is not None and known.health.unit and not known.linked
    if (known.may_be_sigmoids or between) and oracle.outputs == 1:
        raise Skip("no-sign", settles=False)
    by: dict[str, Any] = {"network": known.network} if known.network is not None else {"span": _usable_span(known)}
    return {"flips": tuple(flip_sign(oracle, x, rng=seed, **by) for x in known.given.inputs[:FLIP_INPUTS])}


def gradient_from(known: Findings) -> tuple[GradientFrom, int]:
    """What the gradient was taken from, and the queries that this had taken before any input was tried."""
    if known.copy is not None and known.network is not None:
        return _copy_used(known), known.copy.queries
    span = _usable_span(known)
    return (GradientFrom.QUERIES, 0) if span is None else (GradientFrom.QUERIES_IN_SPAN, span.queries)


def _copy_used(known: Findings) -> GradientFrom:
    return GradientFrom.TRAINED if known.copy is known.training else GradientFrom.RECOVERED


def _usable_span(known: Findings) -> Span | None:
    return known.span if known.span is not None and known.span.ok and known.span.rank else None


def look_at_linearity(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """On the copy, at a few inputs and for nothing; else at one input by questions."""
    _skip_without_gradient(known)
    starts, network = [x for x in known.given.inputs if x.any()], known.network
    if not starts:
        raise Skip("only-the-origin")
    if network is None:
        try:
            return {"linearity": _means([local_linearity(oracle, starts[0], rng=seed)], GradientFrom.QUERIES, None)}
        except NoGradient as error:
            raise Skip("flat-target") from error
    found = [local_linearity(network, x, rng=seed) for x in starts[:FLIP_INPUTS] if _decided(network, x)]
    if not found:
        raise Skip("flat-network")
    return {"linearity": _means(found, _copy_used(known), network.depth - 1)}


def _skip_without_gradient(known: Findings) -> None:
    refused = (Outcome.CONSTANT, Outcome.NON_FINITE, Outcome.PIECEWISE_CONSTANT)
    skip_where(known, *refused, missing="gradient")


def _decided(network: ReLUNetwork, x: FloatArray) -> bool:
    """False where there is no gradient to compare with."""
    return bool(np.abs(network.gradients(x[None])).max() > 0)


def _means(found: list[LocalLinearity], by: GradientFrom, hidden: int | None) -> Linearity:
    """Means over the inputs, beside what a random network of this depth would give."""
    first = found[0]
    random, along = (np.mean([getattr(each, name) for each in found], axis=0) for name in ("random", "along"))
    return Linearity(
        tuple(first.radii.tolist()), tuple(map(finite, random)), tuple(map(finite, along)), finite(first.floor),
        finite(np.median([each.linear_radius for each in found])),
        finite(np.median([each.linear_radius_along for each in found])), sum(each.queries for each in found),
        len(found), by, None if hidden is None else tuple(predicted_change(hidden, first.radii).tolist()),
    )  # fmt: skip
