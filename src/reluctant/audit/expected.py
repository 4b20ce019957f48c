"""What an attack on such a shape is expected to cost, beside what this one took."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reluctant.audit.copy_facts import ExpectedCost, RangeFacts
from reluctant.audit.known import Known
from reluctant.audit.recovered import Price
from reluctant.estimation import Estimate, Range, estimate
from reluctant.estimation.measurements import (
    DECIMALS,
    FEWEST_LAYERS,
    FLOAT32,
    FLOAT64,
    NOISE,
    ROUNDED_SINGLE,
    UNMEASURED_DECIMALS,
)
from reluctant.extraction.prospects import exact_refusal
from reluctant.interface import Interface
from reluctant.oracles import Facts
from reluctant.results import Outcome

__all__ = ["answers_of", "expected", "expected_cost"]

INSIDE = "What recovery costs inside a range of inputs was measured for few shapes: there is no estimate."
BEHIND_A_LINK = (
    "Answers behind a link tell values inside a range of inputs alone, and what recovery costs there was measured for "
    "few shapes: there is no estimate."
)


def expected(known: Known, facts: Facts, price: Price | None, rate: float | None) -> dict[str, Any] | None:
    """The estimate for the shape that was recovered; None where none was: a learned copy has a shape of its own.

    At the price and the rate, if they were given. `reason` says why there is no number. Rows are those for the values
    that are read, the shape is that of the network before its link.
    """
    run, network, health = known.copy, known.network, known.health
    if run is None or run.outcome is not Outcome.RECOVERED:
        return None
    if network is None or health is None or len(network.widths) < FEWEST_LAYERS:
        return None
    per_thousand = None if price is None else float(price["per thousand"])
    found = estimate(network.widths, precision=answers_of(health), price=per_thousand, rate=rate)
    written = replace(found, widths=network.before_link(known.written_link).widths)
    inside = not facts.domain.is_space or known.reach is not None or "reach" in run.evidence
    if inside:
        everywhere = facts.domain.is_space and known.reach is None
        return _without_number(written, BEHIND_A_LINK if everywhere and known.linked else INSIDE)
    return {**_as_data(written), "trust": _trust(found, written)}


def expected_cost(known: Known, facts: Facts, price: Price | None, rate: float | None) -> ExpectedCost | None:
    """The same as data."""
    run, network, health = known.copy, known.network, known.health
    if run is None or run.outcome is not Outcome.RECOVERED:
        return None
    if network is None or health is None or len(network.widths) < FEWEST_LAYERS:
        return None
    per_thousand = None if price is None else float(price["per thousand"])
    found = estimate(network.widths, precision=answers_of(health), price=per_thousand, rate=rate)
    widths, read = tuple(network.before_link(known.written_link).widths), tuple(network.widths)
    everywhere = facts.domain.is_space and known.reach is None
    if not everywhere or "reach" in run.evidence:
        reason = "behind-a-link" if everywhere and known.linked else "inside-a-range"
        return ExpectedCost(widths, found.precision, reason)
    return ExpectedCost(
        widths, found.precision, found.reason or None, _range(found.queries),
        _range(replace(found, widths=widths).per_parameter), _range(found.seconds), _range(found.money),
        None if found.trust is None else str(found.trust), None if read == widths else read,
    )  # fmt: skip


def _range(found: Range | None) -> RangeFacts | None:
    return None if found is None else RangeFacts(found.expected, found.low, found.high)


def answers_of(health: Interface) -> str:
    """What the answers give, as an estimate is asked for it."""
    if exact_refusal(health) is not Outcome.LOW_PRECISION:
        rounded = health.decimals is not None and health.decimals >= UNMEASURED_DECIMALS
        return f"{DECIMALS}={health.decimals}" if rounded else FLOAT64
    if health.number_format == FLOAT32 and health.decimals:
        return f"{ROUNDED_SINGLE}={health.decimals}"
    if health.number_format != FLOAT64:
        return health.number_format
    if health.decimals is not None and health.decimals > 0:
        return f"{DECIMALS}={health.decimals}"
    return f"{NOISE}={health.noise.at(health.spread) / health.spread:.1e}"


def _as_data(found: Estimate) -> dict[str, Any]:
    parts = ("shape", "precision", "reason", "queries", "answers per parameter", "seconds")
    data = found.to_dict()
    return {**{part: data[part] for part in parts}, "cost": data["money"], "trust": str(found.trust or "")}


def _trust(found: Estimate, written: Estimate) -> str:
    """How far what was read lies from measured shapes: a softmax with three classes is read as two ratios."""
    if found.trust is None:
        return ""
    return str(found.trust) if found.shape == written.shape else f"Read as {found.shape}. {found.trust}"


def _without_number(found: Estimate, reason: str) -> dict[str, Any]:
    return {**dict.fromkeys(_as_data(found)), "shape": found.shape, "precision": found.precision, "reason": reason}
