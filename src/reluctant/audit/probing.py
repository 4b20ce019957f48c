"""The adversarial steps: how small a change flips the target, and how nearly linear it is around an input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reluctant.adversarial import LocalLinearity, flip_sign, local_linearity, predicted_change
from reluctant.audit.known import Known, Skip, skip_where
from reluctant.audit.run_facts import GradientFrom
from reluctant.errors import NoGradient
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.results import Outcome
from reluctant.span import Span

__all__ = ["GRADIENTS", "INPUTS", "flip_inputs", "gradient_from", "look_at_linearity", "stepped_by"]

INPUTS = 5  # that are tried


def flip_inputs(oracle: Counting, known: Known, seed: int) -> Mapping[str, Any]:
    """One gradient step at a few inputs: on the copy where there is one, else with the span, else by questions."""
    _skip_without_gradient(known)
    between = known.health is not None and known.health.unit and not known.linked
    if (known.may_be_sigmoids or between) and oracle.outputs == 1:
        raise Skip("no-sign", "One answer that may be a probability has no sign that could flip.", settles=False)
    by: dict[str, Any] = {"network": known.network} if known.network is not None else {"span": _usable_span(known)}
    return {"flips": tuple(flip_sign(oracle, x, rng=seed, **by) for x in known.given.inputs[:INPUTS])}


GRADIENTS = {
    "the recovered network": GradientFrom.RECOVERED, "the trained network": GradientFrom.TRAINED,
    "questions": GradientFrom.QUERIES, "questions inside the recovered span": GradientFrom.QUERIES_IN_SPAN,
}  # fmt: skip


def gradient_from(known: Known) -> tuple[GradientFrom, int]:
    """What the gradient was taken from, and the queries that this had taken before."""
    by, before = stepped_by(known)
    return GRADIENTS[by], before


def stepped_by(known: Known) -> tuple[str, int]:
    """What the gradient was taken from, and the queries that this had taken before any input was tried."""
    if known.copy is not None and known.network is not None:
        return _by_copy(known), known.copy.queries
    span = _usable_span(known)
    return ("questions", 0) if span is None else ("questions inside the recovered span", span.queries)


def _by_copy(known: Known) -> str:
    return "the trained network" if known.copy is known.training else "the recovered network"


def _usable_span(known: Known) -> Span | None:
    return known.span if known.span is not None and known.span.ok and known.span.rank else None


def look_at_linearity(oracle: Counting, known: Known, seed: int) -> Mapping[str, Any]:
    """On the copy, at a few inputs and for nothing; else at one input by questions."""
    _skip_without_gradient(known)
    starts, network = [x for x in known.given.inputs if x.any()], known.network
    if not starts:
        raise Skip(
            "only-the-origin",
            "Every input is the origin: distances are told in units of an input's norm, and it has none.",
        )
    if network is None:
        try:
            return {"linearity": _as_data([local_linearity(oracle, starts[0], rng=seed)], "questions", None)}
        except NoGradient as error:
            raise Skip("flat-target", "The target is flat or undecided around the input that was tried.") from error
    found = [local_linearity(network, x, rng=seed) for x in starts[:INPUTS] if _decided(network, x)]
    if not found:
        raise Skip("flat-network", "The network is flat around every input that was tried.")
    return {"linearity": _as_data(found, _by_copy(known), network.depth - 1)}


def _skip_without_gradient(known: Known) -> None:
    refused = (Outcome.CONSTANT, Outcome.NON_FINITE, Outcome.PIECEWISE_CONSTANT)
    skip_where(known, *refused, missing="no gradient to follow")


def _decided(network: ReLUNetwork, x: FloatArray) -> bool:
    """False where there is no gradient to compare with."""
    return bool(np.abs(network.gradients(x[None])).max() > 0)


def _as_data(found: list[LocalLinearity], by: str, hidden: int | None) -> dict[str, Any]:
    """Means over the inputs, beside what a random network of this depth would give."""
    first, radii = found[0].to_dict(), found[0].radii
    return first | {
        "random": np.mean([each.random for each in found], axis=0).tolist(),
        "along": np.mean([each.along for each in found], axis=0).tolist(),
        "queries": sum(each.queries for each in found),
        "linear radius": _middle([each.linear_radius for each in found]),
        "linear radius along": _middle([each.linear_radius_along for each in found]),
        "inputs": len(found),
        "by": by,
        "random networks": None if hidden is None else predicted_change(hidden, radii).tolist(),
    }


def _middle(radii: list[float]) -> float | None:
    middle = float(np.median(radii))
    return middle if np.isfinite(middle) else None
