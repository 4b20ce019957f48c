"""What an attack on such a shape is expected to cost, beside what this one took."""

from __future__ import annotations

from typing import Any

from reluctant.audit.known import Known
from reluctant.audit.recovered import Price
from reluctant.estimation import Estimate, estimate
from reluctant.estimation.shapes import FEWEST_LAYERS
from reluctant.extraction.driver import exact_refusal
from reluctant.health import Health
from reluctant.oracles import Facts
from reluctant.results import Outcome

__all__ = ["answers_of", "expected"]

INSIDE = "What is inside a box or an orthant costs was measured for few shapes: there is no estimate."


def expected(known: Known, facts: Facts, price: Price | None, rate: float | None) -> dict[str, Any] | None:
    """The estimate for the shape that was recovered, None where none was.

    At the price and the rate, if they were given. `reason` says why there is no number.
    """
    network, health = known.network, known.health
    if network is None or health is None or len(network.widths) < FEWEST_LAYERS:
        return None
    if known.copy is known.training:  # a student has a shape of its own
        return None
    per_thousand = None if price is None else float(price["per thousand"])
    found = estimate(network.widths, precision=answers_of(health), price=per_thousand, rate=rate)
    inside = not facts.domain.is_space or (known.copy is not None and "reach" in known.copy.evidence)
    return _without_number(found, INSIDE) if inside else _as_data(found)


def answers_of(health: Health) -> str:
    """What the answers give, as an estimate is asked for it."""
    if exact_refusal(health) is not Outcome.LOW_PRECISION:
        return "float64"
    if health.number_format != "float64":
        return health.number_format
    if health.decimals is not None and health.decimals > 0:
        return f"decimals={health.decimals}"
    return f"noise={health.noise.at(health.spread) / health.spread:.1e}"


def _as_data(found: Estimate) -> dict[str, Any]:
    parts = ("shape", "precision", "reason", "queries", "answers per parameter", "seconds")
    data = found.to_dict()
    return {**{part: data[part] for part in parts}, "cost": data["money"], "trust": str(found.trust or "")}


def _without_number(found: Estimate, reason: str) -> dict[str, Any]:
    return {**dict.fromkeys(_as_data(found)), "shape": found.shape, "precision": found.precision, "reason": reason}
