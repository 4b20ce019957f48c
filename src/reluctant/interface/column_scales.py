"""Units of inputs by questions: where the values change, and the step of each column that changes them alike.

For a target of which no rows and no bounds are known. Slopes at the origin show whether columns are of one size; only
where they are not, a ladder of steps finds the step of each, and rays find the size at which the values bend.
Probabilities give no scales: where they are certain they do not change, and that may be wherever no rows are known.
"""

from __future__ import annotations

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.oracles.input_units import InputUnits
from reluctant.oracles.ledger import Counting

FIRST_STEP = 1e-3
CLEAR = 1e-10  # of an answer: smaller changes may be rounding, and say nothing of a slope
UNLIKE = 2.0  # decades between the columns of the ends: those of one size differ by about one
ENDS = (0.1, 0.9)  # quantiles of the columns that count as the ends
LADDER = 10.0 ** np.arange(-8, 9)
RAYS = 12
BENDS = 0.02  # of the change along a ray, by which its middle is off: a bend, not rounding


def found_units(oracle: Counting, rng: np.random.Generator, *, uneven: bool = False) -> InputUnits | None:
    """Units in which every column changes the answers alike; None where columns are of one size, or no step matters.

    uneven: some column, be it one of many, is known to be of another size.

    Cost: d + 1 rows; where columns differ, 34·d and 408 more.
    """
    dim = oracle.dim
    with oracle.stage("column scales", expected=dim + 1):
        origin = oracle.query(np.zeros((1, dim)))
        first = _changes(oracle.query(FIRST_STEP * np.eye(dim)), origin)
    clear = first > CLEAR * np.abs(origin).max()
    if not uneven and 2 * clear.sum() > dim and not _differ(first[clear]):
        return None
    rows = (np.concatenate([LADDER, -LADDER])[:, None, None] * np.eye(dim)).reshape(-1, dim)
    with oracle.stage("column scales", expected=len(rows)):
        changes = _changes(oracle.query(rows), origin).reshape(2, len(LADDER), dim).max(axis=0)
    steps = _steps(np.where(changes > CLEAR * np.abs(origin).max(), changes, 0.0))
    if steps is None or not _differ(1 / steps, (0.0, 1.0) if uneven else ENDS):
        return None
    return InputUnits(np.zeros(dim), steps * _bending_size(oracle, steps, origin, rng))


def changing_units(oracle: Counting, rng: np.random.Generator) -> InputUnits | None:
    """Units around the nearest input at which a target answers otherwise than at most others; None where none does.

    The target is constant at most inputs, so that no short line shows what it is made of. Cost: 1000 rows.
    """
    count, scales = 1000, (1.0, 3.0)
    rows = np.repeat(scales, count // len(scales))[:, None] * rng.standard_normal((count, oracle.dim))
    with oracle.stage("changes", expected=count):
        answers = oracle.query(rows)
    usual = np.median(answers, axis=0)
    other = np.abs(answers - usual).max(axis=1) / max(float(np.abs(usual).max()), 1.0)
    if not np.isfinite(other).all() or not (other > CLEAR).any():
        return None
    nearest = np.flatnonzero(other > CLEAR)[np.argmin(np.linalg.norm(rows[other > CLEAR], axis=1))]
    return InputUnits(rows[nearest], np.ones(oracle.dim))


def _changes(answers: FloatArray, origin: FloatArray) -> FloatArray:
    """The largest change of an output, row by row; 0 where an answer is no number."""
    return np.nan_to_num(np.abs(answers - origin).max(axis=1), nan=0.0, posinf=0.0)


def _differ(slopes: FloatArray, ends: tuple[float, float] = ENDS) -> bool:
    """True if the slopes of columns that matter differ by decades."""
    low, high = np.quantile(np.log10(slopes[slopes > 0]), ends)
    return bool(high - low > UNLIKE)


def _steps(changes: FloatArray) -> FloatArray | None:
    """The step of each column that makes the largest change which every column reaches; None if none does anything.

    A column that does nothing has the median step.
    """
    most = changes.max(axis=0)
    if not most.any():
        return None
    typical = float(np.min(most[most > 0]))
    steps = np.full(changes.shape[1], np.nan)
    for column in np.flatnonzero(most >= typical):
        rung = int(np.argmax(changes[:, column] >= typical))
        steps[column] = LADDER[rung] * min(1.0, typical / changes[rung, column])
    return np.where(np.isnan(steps), np.nanmedian(steps), steps)


def _bending_size(oracle: Counting, steps: FloatArray, origin: FloatArray, rng: np.random.Generator) -> float:
    """The size, times these steps, from which on most rays bend; 1 where none do."""
    rays = rng.normal(size=(RAYS, oracle.dim)) / np.sqrt(oracle.dim)
    sizes = LADDER[:, None, None]
    rows = np.concatenate([(sizes * rays).reshape(-1, oracle.dim), (2 * sizes * rays).reshape(-1, oracle.dim)]) * steps
    with oracle.stage("column scales", expected=len(rows)):
        near, far = np.split(oracle.query(rows), 2)
    off, whole = np.abs(far - 2 * near + origin).max(axis=1), np.abs(far - origin).max(axis=1)
    bent = (off > BENDS * whole).reshape(len(LADDER), RAYS).mean(axis=1) > 0.5
    return float(LADDER[np.argmax(bent)]) if bent.any() else 1.0
