"""A cheap look at random points before more is spent: a bad line costs a few per cent, not everything."""

from __future__ import annotations

import numpy as np

from reluctant.extraction.failures import StageFailed
from reluctant.geometry import FramedNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["probe"]

POINTS = 16
LARGEST_ERROR = 1e-4  # of the spread; the subspace only has to tell on which side of its creases a point is
SURPRISE = 5.0  # times the error that the neurons' own errors explain: on a crowded line two may have passed for one


def probe(oracle: Counting, known: FramedNetwork, rng: np.random.Generator, *, crowded: bool = False) -> None:
    """Compare target and model at random points of the frame. Cost: 16 rows.

    A crowded line may hide a neuron too small to matter there, for which the main pass would be spent in vain: then
    the model has to be as good as it says it is.
    """
    scale = np.sqrt(oracle.dim)
    y = scale * rng.standard_normal((POINTS, len(known.frame.basis)))
    with oracle.stage("probe", expected=POINTS):
        answers = oracle.query(known.frame.points(y))
    error, spread = np.abs(known.network(y) - answers).max(axis=1), answers.std()
    limits = np.full(POINTS, LARGEST_ERROR * spread)
    if crowded:
        limits = np.minimum(limits, SURPRISE * _explained(known, y))
    worst = int(np.argmax(error / limits))
    if not error[worst] < limits[worst]:
        number, limit = float(error[worst] / spread), float(limits[worst] / spread)
        raise StageFailed("probe", "the subspace model is wrong", number=number, limit=limit, partial=known)


def _explained(known: FramedNetwork, y: FloatArray) -> FloatArray:
    """Standard deviation (n,) of the model at these points that follows from that of its weights."""
    return np.asarray(np.linalg.norm(known.network.patterns(y)[0] * known.sd_at(y), axis=1))
