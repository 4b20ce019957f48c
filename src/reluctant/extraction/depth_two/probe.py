"""A cheap look at random points before more is spent: a bad line costs a few per cent, not everything."""

from __future__ import annotations

import numpy as np

from reluctant.extraction.failures import StageFailed
from reluctant.geometry import FramedNetwork
from reluctant.oracles import Counting

__all__ = ["probe"]

POINTS = 16
LARGEST_ERROR = 1e-4  # of the spread; the subspace only has to tell on which side of its creases a point is


def probe(oracle: Counting, known: FramedNetwork, rng: np.random.Generator) -> None:
    """Compare target and model at random points of the frame. Cost: 16 rows."""
    scale = np.sqrt(oracle.dim)
    y = scale * rng.standard_normal((POINTS, len(known.frame.basis)))
    with oracle.stage("probe", expected=POINTS):
        answers = oracle.query(known.frame.points(y))
    error = float(np.abs(known.network(y) - answers).max() / answers.std())
    if not error < LARGEST_ERROR:
        raise StageFailed(
            "probe", "the subspace model is wrong", number=error, limit=LARGEST_ERROR, partial=known.lifted()
        )
