"""Which side each neuron is on, before the last fit: without the skip term it has fewer unknowns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reluctant.extraction.few_digits.polish import Fit
from reluctant.extraction.orientation import find_turned
from reluctant.networks import ReLUNetwork

__all__ = ["turned"]

GONE = 1e-2  # of the largest term: what few digits may leave of the skip; the last fit tells if it was wrong


def turned(fit: Fit) -> Fit:
    """The same fit without a skip term where the sides can be found, else as it is."""
    (w, a), (b, c), skip = fit.core.weights, fit.core.biases, fit.core.skip
    own = fit.extension
    if skip is None:
        return fit
    weights = np.concatenate([w, own.weights.T], axis=1)
    missing = -np.concatenate([skip, own.skip.T], axis=1)
    terms = (a[:, None, :] * weights.T[None]).reshape(-1, len(w))
    flip = find_turned(terms, missing.reshape(-1), gone=GONE)
    if flip is None:
        return fit
    sign = np.where(flip, -1.0, 1.0)
    core = ReLUNetwork([sign[:, None] * w, a], [sign * b, c + a[:, flip] @ b[flip]])
    return replace(fit, core=core, extension=replace(own, weights=sign * own.weights, skip=np.zeros_like(own.skip)))
