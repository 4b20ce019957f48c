"""Which side of its hyperplane each neuron is on: turning neurons round until the affine remainder is gone.

a max(z, 0) = a max(-z, 0) + a z, so the skip term is a sum over the neurons that are the wrong way round.
With no more neurons than equations least squares finds them, with up to about twice as many a linear
programme; beyond that the affine term stays: it is a freedom of the representation, and the network is
exact with it.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["orient"]

CLEAR = 0.1  # distance from 0 or 1 at which a choice is no longer clear
LP_RATIO = 2.0  # neurons over equations up to which a linear programme is tried
MOST_LP_NEURONS = 400  # a larger one takes minutes
GONE = 1e-6  # of the largest term: what may be left of the skip


def orient(network: ReLUNetwork) -> ReLUNetwork:
    """The same function without a skip term where the sides can be found, else the network as it is."""
    if network.skip is None or network.depth != 2:
        return network
    a, w = network.weights[1], network.weights[0]
    terms = (a[:, None, :] * w.T[None]).reshape(-1, len(w))  # (m·d, h): what each neuron would add
    missing = -network.skip.reshape(-1)
    choice = _least_squares(terms, missing) if len(w) <= len(terms) else _linear_programme(terms, missing)
    if choice is None:
        return network
    rest = missing - terms @ choice
    if np.abs(rest).max() > GONE * np.abs(terms).max():
        return network
    return _turned(network, choice.astype(bool))


def _least_squares(terms: FloatArray, missing: FloatArray) -> FloatArray | None:
    return _rounded(np.asarray(np.linalg.lstsq(terms, missing, rcond=None)[0], dtype=np.float64))


def _linear_programme(terms: FloatArray, missing: FloatArray) -> FloatArray | None:
    equations, neurons = terms.shape
    if neurons > min(LP_RATIO * equations, MOST_LP_NEURONS):
        return None
    objective = np.random.default_rng(0).standard_normal(neurons)  # any corner will do: the answer is unique
    found = linprog(objective, A_eq=terms, b_eq=missing, bounds=(0, 1), method="highs")
    return _rounded(found.x) if found.status == 0 else None


def _rounded(found: FloatArray) -> FloatArray | None:
    choice = np.round(found)
    clear = np.abs(found - choice).max(initial=0) < CLEAR and set(np.unique(choice)) <= {0.0, 1.0}
    return choice if clear else None


def _turned(network: ReLUNetwork, flip: np.ndarray) -> ReLUNetwork:
    """Turn these neurons round and drop the skip term, which they account for."""
    (w, a), (b, c) = network.weights, network.biases
    sign = np.where(flip, -1.0, 1.0)
    return ReLUNetwork([sign[:, None] * w, a], [sign * b, c + a[:, flip] @ b[flip]])
