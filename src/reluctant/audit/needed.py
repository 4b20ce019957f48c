"""How many rows exact extraction would take: by the shape in the owner's file, else by examples of shapes.

The shape decides over how the budget is shared, and over what is told where it was too small; no method sees it.
"""

from __future__ import annotations

from reluctant.audit.copy_facts import RangeFacts, RowsNeeded, ShapeRows
from reluctant.audit.expected import answers_of
from reluctant.audit.known import Known
from reluctant.audit.shares import ENOUGH
from reluctant.errors import ReluctantError
from reluctant.estimation import Range, estimate
from reluctant.estimation.measurements import FEWEST_LAYERS, Widths, shape_name
from reluctant.interface import Interface
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting

__all__ = ["needed_rows", "needed_words", "rows_needed"]

EXAMPLES = (16, 64, 256)  # neurons of one hidden layer


def rows_needed(oracle: Counting, known: Known, health: Interface) -> Range | None:
    """For the shape in the file and answers like these; None where there is no file, or no number for it."""
    widths = _of_file(known)
    return None if widths is None else _rows(oracle, known, health, widths)


def needed_words(oracle: Counting, known: Known) -> str:
    """The same in a sentence, for one whose budget ran out; of other targets for a few shapes that they may have."""
    health, widths = known.health, _of_file(known)
    if health is None:
        return ""
    if widths is not None:
        rows = _rows(oracle, known, health, widths)
        takes = "" if rows is None else f"takes about {rows.expected:,.0f} rows ({rows.low:,.0f} to {rows.high:,.0f})"
        return takes and f"Extraction of {shape_name(widths)}, the shape in the file, {takes}, besides other steps."
    shapes = [(oracle.dim, hidden, oracle.outputs) for hidden in EXAMPLES]
    found = [(shape_name(shape), _rows(oracle, known, health, shape)) for shape in shapes]
    told = [f"{rows.expected:,.0f} rows for {name}" for name, rows in found if rows is not None]
    if not told:
        return ""
    others = f"reluctant estimate SHAPE --precision {answers_of(health)}"
    return (
        f"With such answers extraction takes about {', '.join(told)} ({others} tells others); of a budget of {ENOUGH} "
        "times that it gets so many."
    )


def needed_rows(oracle: Counting, known: Known) -> RowsNeeded | None:
    """The same as data; None where there is no number."""
    health, widths = known.health, _of_file(known)
    if health is None:
        return None
    shapes = [widths] if widths is not None else [(oracle.dim, hidden, oracle.outputs) for hidden in EXAMPLES]
    found = [(shape, _rows(oracle, known, health, shape)) for shape in shapes]
    rows = tuple(
        ShapeRows(tuple(shape), RangeFacts(each.expected, each.low, each.high))
        for shape, each in found
        if each is not None
    )
    return RowsNeeded(widths is not None, answers_of(health), rows, ENOUGH) if rows else None


def _of_file(known: Known) -> Widths | None:
    """Widths of the network in the file, as it is looked at."""
    if known.given.file is None:
        return None
    try:
        widths = ReLUNetwork.load(known.given.file).widths
    except ReluctantError:
        return None
    return widths if known.given.output is None else (*widths[:-1], 1)


def _rows(oracle: Counting, known: Known, health: Interface, widths: Widths) -> Range | None:
    """There are numbers for values that are answered everywhere."""
    everywhere = oracle.facts.domain.is_space and known.reach is None
    if known.linked or not everywhere or health.refusal is not None or len(widths) < FEWEST_LAYERS:
        return None
    return estimate(widths, precision=answers_of(health)).queries
