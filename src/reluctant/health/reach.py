"""Where a target answers at all: a box, for an interface that checks the range of its inputs.

Beyond its range such an interface gives NaN, an error or a refusal. Boxes are tried from the smallest, so that no more
than one question of each kind of box goes unanswered: a served model repeats those, and waits in between.
"""

from __future__ import annotations

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import TargetError
from reluctant.health.lines import ask
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["answered_box"]

WIDTHS = tuple(2.0**k for k in range(-4, 11))  # 1/16 to 1024: beyond that methods look as far as in all of space
CORNERS = 8  # asked of each box, all coordinates at their bounds


def answered_box(oracle: Counting, rng: np.random.Generator) -> Domain | None:
    """The largest box [-w, w], else [0, w], whose corners are all answered with finite numbers; None if there is none.

    Cost: at most 8 rows for each of 15 sizes, for both kinds of box.
    """
    signs = rng.choice([-1.0, 1.0], (CORNERS - 1, oracle.dim))
    corners = np.concatenate([np.ones((1, oracle.dim)), signs])
    with oracle.stage("reach", expected=CORNERS * len(WIDTHS)):
        for low, unit in ((-1.0, corners), (0.0, (corners + 1) / 2)):
            answered = 0
            while answered < len(WIDTHS) and _answers(oracle, WIDTHS[answered] * unit):
                answered += 1
            if answered:
                width = WIDTHS[answered - 1]
                return Domain(low * width, width)
    return None


def _answers(oracle: Counting, rows: FloatArray) -> bool:
    try:
        return bool(np.isfinite(ask(oracle, rows)).all())
    except TargetError:
        return False
