"""First-layer weights once more, coordinate by coordinate: the row space they were found in has few digits.

Where the activation pattern is known, a gradient is a known combination of the first-layer weights. Points far from
every crease allow long steps; as many gradients as neurons, and some more, give all weights by least squares.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from reluctant.geometry import DistanceNoise, gradients
from reluctant.geometry.samples import IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["refine_first_weights"]

POOL = 2000  # random points from which those far from every crease are taken
ROOMY = 0.2  # share of them that is looked at
SHARE = 1.25  # points for every neuron, where there is one output
LEAST_SHARE = 0.5  # where there are many: each neuron is on at half of the points
STEP = 0.5  # of the room, in the steepest coordinate
RANK = 1e-3  # relative; what the gradients hardly say stays as it is


def refine_first_weights(
    oracle: Counting, network: ReLUNetwork, noise: DistanceNoise, rng: np.random.Generator
) -> ReLUNetwork:
    """Weights of the first layer from gradients. Cost: about 1.25 (d + 2) rows a neuron, less with several outputs."""
    points = rng.standard_normal((POOL, network.dim))
    room = _room(network, points)
    roomy = np.argsort(-room)[: int(ROOMY * POOL)]
    points, room = points[roomy], room[roomy]
    combinations = _by_first_layer(network, points)  # (n, m, h)
    h = network.widths[1]
    chosen = _spanning(combinations, int(h * max(SHARE / network.outputs, LEAST_SHARE)) + 1)
    with oracle.stage("first weights", expected=len(chosen) * (network.dim + 2)):
        found = gradients(oracle.query, points[chosen], None, STEP * room[chosen], noise, rng)
    if not found.good.any():
        return network
    left = combinations[chosen][found.good].reshape(-1, h)
    first = network.weights[0]
    rest = found.slope[found.good].reshape(len(left), -1) - left @ first
    change = np.linalg.lstsq(left, rest, rcond=RANK)[0]
    return ReLUNetwork([first + change, *network.weights[1:]], network.biases)


def _room(network: ReLUNetwork, points: FloatArray) -> FloatArray:
    """Longest step (n,) along any coordinate that crosses no crease."""
    room = np.full(len(points), np.inf)
    h, slopes = points, np.broadcast_to(np.eye(network.dim), (1, network.dim, network.dim))
    for w, b in zip(network.weights[:-1], network.biases[:-1], strict=True):
        values, slopes = h @ w.T + b, w @ slopes
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.abs(values) / np.abs(slopes).max(axis=2)  # not a number where a value neither is nor becomes any
        room = np.minimum(room, np.where(np.isnan(reach), np.inf, reach).min(axis=1))
        h, slopes = np.maximum(values, 0), np.where((values > 0)[:, :, None], slopes, 0.0)
    return room


def _by_first_layer(network: ReLUNetwork, points: FloatArray) -> FloatArray:
    """Derivatives (n, m, h) of the outputs by the values of the first layer."""
    active = network.patterns(points)
    slopes = np.broadcast_to(network.weights[-1], (len(points), *network.weights[-1].shape))
    for w, on in zip(network.weights[-2:0:-1], active[:0:-1], strict=True):
        slopes = (slopes * on[:, None, :]) @ w
    return slopes * active[0][:, None, :]


def _spanning(combinations: FloatArray, count: int) -> IntArray:
    """Points whose combinations differ most, chosen one after the other; rounds of as many as there are neurons."""
    n, m, h = combinations.shape
    chosen: list[int] = []
    while len(chosen) < count:
        rest = np.setdiff1d(np.arange(n), chosen)
        order = scipy.linalg.qr(combinations[rest].reshape(len(rest) * m, h).T, mode="r", pivoting=True)[1]
        points = list(dict.fromkeys((order[:h] // m).tolist()))
        chosen += rest[points][: count - len(chosen)].tolist()
    return np.array(chosen, dtype=np.intp)
