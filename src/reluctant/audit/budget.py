"""The budget of an audit and the cost of an attack: shares of rows and time, money, rows expected for a shape.

The shape in the owner's file decides how the budget is shared; no method sees it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reluctant.adversarial.flip import MOST_FLIP_ROWS, MOST_FLIP_ROWS_EXPLAINED
from reluctant.audit.facts import ExpectedCost, RowsNeeded, ShapeRows
from reluctant.audit.findings import Findings
from reluctant.errors import ReluctantError
from reluctant.estimation import Range, estimate
from reluctant.estimation.cost import PER_PRICE
from reluctant.estimation.formulas import (
    DECIMALS,
    FEWEST_LAYERS,
    FLOAT32,
    FLOAT64,
    LABELS,
    NOISE,
    ROUNDED_SINGLE,
    UNMEASURED_DECIMALS,
    Widths,
)
from reluctant.evidence import Measured
from reluctant.interface import Interface
from reluctant.messages import Diagnosis
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting, Facts
from reluctant.results import Outcome

BUDGET = 300_000
FLIP_INPUTS = 5  # that one gradient step is tried at
LINE_POINTS = 201
GRID = 31  # points a side
SCALES = (0.1, 1.0, 10.0)  # at which errors of a copy are measured
ERROR_POINTS = 100  # at each scale
SECONDS = 180.0  # of processor time
MOST_RESERVED = 0.3  # of the budget
LINEARITY_ROWS = 1730  # besides one for each input, as its method says

# Of the rows left when a step begins. Steps before "flip" leave the reserve alone, but for the first.
SHARES = {
    "health": 1.0,
    "span": 0.35,
    "extraction": 0.75,
    "part": 0.5,
    "learning": 0.6,
    "training": 1.0,
    "flip": 0.6,
    "linearity": 0.6,
    "line": 1.0,
    "plane": 1.0,
    "errors": 1.0,
}
ENOUGH = 4  # times what extraction takes is a budget that gives it so much: its share is a third, after the first look
# Of the processor time.
TIMES = {"extraction": 0.4, "learning": 0.2, "defenses": 0.4}
# Steps that are quick, and are stopped where they are not: as a part of the same time, besides it.
AT_MOST = {"span": 0.4, "flip": 0.1, "linearity": 0.1}
TRAINING = 0.15  # of the same time, besides it: training keeps to it by itself, and takes fewer steps
LOOKS = ("flip", "linearity", "line", "plane", "errors")
FIRST = "health"  # without it no other step can work


def reserve(budget: int, dim: int, *, explained: bool = False) -> int:
    """Rows kept for the looks at the end. explained: the target answers gradients."""
    of_a_flip = MOST_FLIP_ROWS_EXPLAINED if explained else MOST_FLIP_ROWS
    flips, pictures = FLIP_INPUTS * (dim + of_a_flip), LINE_POINTS + GRID**2 + len(SCALES) * ERROR_POINTS
    return int(min(MOST_RESERVED * budget, flips + LINEARITY_ROWS + dim + pictures))


def share(step: str, left: int, kept: int) -> int:
    """Rows that a step may ask when so many are left, `kept` of them in reserve."""
    free = left if step in (FIRST, *LOOKS) else left - kept
    return max(0, int(SHARES.get(step, 0.0) * free))


def with_extraction(step: str, rows: int, left: int, needed: Range | None) -> int:
    """The rows of a step, changed so that extraction gets the rows it needs while so many are left."""
    if needed is None or left < needed.expected:
        return rows
    if step == "extraction":
        return max(rows, min(left, int(needed.high)))
    return min(rows, int(left - needed.expected)) if step == "span" else rows


def seconds_for(step: str, seconds: float) -> float | None:
    """Processor time of a step, None for those that need no limit. The sweep divides its own among defenses."""
    part = (TIMES | AT_MOST).get(step)
    return None if part is None or step == "defenses" else part * seconds


# ---- cost of an attack

PriceGiven = dict[str, Any]  # "per thousand" queries, and the "currency"
EXAMPLES = (16, 64, 256)  # neurons of one hidden layer


def money(queries: int, price: PriceGiven | None) -> float | None:
    """What so many queries cost, None without a price."""
    return None if price is None else queries / PER_PRICE * float(price["per thousand"])


def expected_cost(known: Findings, facts: Facts, price: PriceGiven | None, rate: float | None) -> ExpectedCost | None:
    """The estimate for the shape that was recovered; None where none was: a learned copy has a shape of its own.

    At the price and the rate, if they were given. Rows are those for the values that are read, the shape is that of the
    network before its link. Inside a range of inputs few shapes were measured: there is no number.
    """
    run, health = known.copy, known.target.health
    if run is None or run.outcome is not Outcome.RECOVERED:
        return None
    network = run.network
    if network is None or health is None or len(network.widths) < FEWEST_LAYERS:
        return None
    per_thousand = None if price is None else float(price["per thousand"])
    found = estimate(network.widths, precision=answers_of(health), price=per_thousand, rate=rate)
    widths, read = tuple(network.before_link(known.written_link).widths), tuple(network.widths)
    everywhere = facts.domain.is_space and known.target.reach is None
    if not everywhere or Measured.of(run).inside is not None:
        linked = everywhere and known.target.linked
        reason = Diagnosis("range-behind-link-not-measured" if linked else "range-not-measured")
        return ExpectedCost(widths, found.precision, reason)
    return ExpectedCost(
        widths, found.precision, found.reason, found.queries, replace(found, widths=widths).per_parameter,
        found.seconds, found.money, found.beyond, None if read == widths else read,
    )  # fmt: skip


def answers_of(health: Interface) -> str:
    """What the answers give, as an estimate takes it."""
    if health.answers_labels:
        return LABELS
    if health.exact_refusal is not Outcome.LOW_PRECISION:
        rounded = health.decimals is not None and health.decimals >= UNMEASURED_DECIMALS[DECIMALS]
        return f"{DECIMALS}={health.decimals}" if rounded else FLOAT64
    if health.number_format == FLOAT32 and health.decimals:
        return f"{ROUNDED_SINGLE}={health.decimals}"
    if health.number_format != FLOAT64:
        return health.number_format
    if health.decimals is not None and health.decimals > 0:
        return f"{DECIMALS}={health.decimals}"
    return f"{NOISE}={health.noise.at(health.spread) / health.spread:.1e}"


def rows_needed(oracle: Counting, known: Findings) -> Range | None:
    """Rows of exact extraction for the shape in the file, with answers like these; None if one of both is unknown."""
    health, widths = known.target.health, _widths_of_file(known)
    return None if health is None or widths is None else _rows(oracle, known, health, widths)


def needed_rows(oracle: Counting, known: Findings) -> RowsNeeded | None:
    """Rows of exact extraction where the budget ran out; without a file, for a few shapes that the target may have."""
    health, widths = known.target.health, _widths_of_file(known)
    if health is None:
        return None
    shapes = [widths] if widths is not None else [(oracle.dim, hidden, oracle.outputs) for hidden in EXAMPLES]
    found = [(tuple(shape), _rows(oracle, known, health, shape)) for shape in shapes]
    rows = tuple(ShapeRows(shape, each) for shape, each in found if each is not None)
    return RowsNeeded(widths is not None, answers_of(health), rows, ENOUGH) if rows else None


def _widths_of_file(known: Findings) -> Widths | None:
    """Widths of the network in the file, as the audit reads it."""
    if known.given.file is None:
        return None
    try:
        widths = ReLUNetwork.load(known.given.file).widths
    except ReluctantError:
        return None
    return widths if known.given.output is None else (*widths[:-1], 1)


def _rows(oracle: Counting, known: Findings, health: Interface, widths: Widths) -> Range | None:
    """There are numbers for values that are answered everywhere, and for labels computed in float64.

    Labels of float32 take several times as many: a budget by the others would be too small.
    """
    unmeasured = health.answers_labels and oracle.facts.dtype != np.float64
    everywhere = oracle.facts.domain.is_space and known.target.reach is None
    refused = health.refusal is not None and not health.answers_labels
    if known.target.linked or not everywhere or refused or unmeasured or len(widths) < FEWEST_LAYERS:
        return None
    return estimate(widths, precision=answers_of(health)).queries
