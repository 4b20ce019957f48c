"""Where probabilities do not saturate: a box around the origin in which every log-ratio is finite.

Far from the origin one class has all the probability there is, the others underflow to 0, and their log-ratio is
infinite. Inside a box that keeps away from there the network is recovered as in any other domain.
"""

from __future__ import annotations

import numpy as np

from reluctant.domains import Domain
from reluctant.oracles import Counting

__all__ = ["smaller", "unsaturated_box"]

HALF_WIDTHS = 4.0 ** np.arange(5, -5, -1)  # from the largest: 1024 to 1/256
CORNERS = 12  # asked of each box
MARGIN = 4.0  # random corners are not the worst ones; the next smaller box is safe


def unsaturated_box(oracle: Counting, rng: np.random.Generator) -> Domain | None:
    """The largest box whose random corners are answered with finite numbers, less a margin; None if there is none.

    Cost: 120 rows.
    """
    corners = rng.choice([-1.0, 1.0], (CORNERS, oracle.dim))
    rows = (HALF_WIDTHS[:, None, None] * corners).reshape(-1, oracle.dim)
    with oracle.stage("reach", expected=len(rows)):
        finite = np.asarray(np.isfinite(oracle.answer(rows))).reshape(len(HALF_WIDTHS), -1).all(axis=1)
    unbroken = int(np.cumprod(np.flip(finite)).sum())  # boxes from the smallest that are sound
    if unbroken == 0:
        return None
    half = float(HALF_WIDTHS[-unbroken] / MARGIN)
    return Domain(-half, half)


def smaller(box: Domain) -> Domain:
    """The next box to try, where rows inside this one saturated after all."""
    return Domain(box.low / MARGIN, box.high / MARGIN)
