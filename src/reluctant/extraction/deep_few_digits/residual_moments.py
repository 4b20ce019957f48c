"""Neurons that a fit lacks, from second moments of what it leaves at random inputs. No rows are asked.

A neuron a max(w · y + b, 0) that is missing leaves a second moment a φ wwᵀ at inputs of all directions, whatever the
fit has made of its mean and slope; so w is a leading eigenvector. Weak neurons, as weight decay leaves them, show so
where no line tells their normal. Neurons of the last hidden layer show the same in the values of the layer below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.deep_few_digits.layers_fit import Layers, Weighed
from reluctant.numerics import FloatArray

OUTPUT_DIRECTIONS, EIGENVECTORS = 3, 2  # of the residuals, that are tried
PLACES = 13  # of a crease along its normal, that are tried
LEAST_GAIN = 0.04  # of the squares that are left: chance explains less
MOST_PULL = 5.0  # of one answer, in medians of the residuals


@dataclass(frozen=True)
class _Hinge:
    """max(normal · s + offset, 0) of values s, and the part of the squares that it explains."""

    normal: FloatArray
    offset: float
    gain: float


def neuron_from_moments(network: Layers, answers: Weighed) -> Layers | None:
    """The network with one more neuron of either layer; None if no direction explains enough.

    answers: at inputs of all directions alike.
    """
    left = -answers.left_by(network)
    sizes = np.abs(left).max(axis=1)
    left = left * np.minimum(1.0, MOST_PULL * np.median(sizes) / np.maximum(sizes, 1e-300))[:, None]
    lengths = np.maximum(np.linalg.norm(answers.y, axis=1), 1e-300)
    lengths = lengths / np.median(lengths)
    hidden = np.maximum(network.states(answers.y)[-2], 0)
    first = None if network.between else _best_hinge(answers.y, lengths, left)  # three layers begin with a whole first
    second = _best_hinge(hidden, lengths, left)
    if second is not None and (first is None or second.gain > first.gain):
        return _with_last(network, second, answers, left)
    return None if first is None else _with_first(network, first, answers, left)


def _best_hinge(values: FloatArray, lengths: FloatArray, left: FloatArray) -> _Hinge | None:
    """The hinge in these values (n, k) that explains most of the residuals (n, m)."""
    k = values.shape[1]
    scaled = values / lengths[:, None]
    middle = scaled.mean(axis=0)
    covariance = np.cov(scaled.T).reshape(k, k)
    live = covariance.diagonal() > 1e-10 * covariance.diagonal().max(initial=1e-300)
    if live.sum() < 2:
        return None
    root = np.linalg.cholesky(covariance[np.ix_(live, live)] + 1e-9 * np.trace(covariance) / k * np.eye(live.sum()))
    z = np.linalg.solve(root, (scaled - middle)[:, live].T).T
    columns = np.column_stack([z, np.ones(len(z))])
    q = left / lengths[:, None]
    q = q - columns @ np.linalg.lstsq(columns, q, rcond=None)[0]
    outputs = np.linalg.svd(q, full_matrices=False)[2][:OUTPUT_DIRECTIONS]
    best: _Hinge | None = None
    for along in outputs:
        moment = (z * (q @ along)[:, None]).T @ z / len(z)
        moment -= np.eye(len(moment)) * np.trace(moment) / len(moment)
        sizes, vectors = np.linalg.eigh(moment)
        for i in np.argsort(-np.abs(sizes))[:EIGENVECTORS]:
            normal = np.zeros(k)
            normal[live] = np.linalg.solve(root.T, vectors[:, i])
            hinge = _placed(normal, values, left)
            if best is None or hinge.gain > best.gain:
                best = hinge
    return best if best is not None and best.gain > LEAST_GAIN else None


def _placed(normal: FloatArray, values: FloatArray, left: FloatArray) -> _Hinge:
    """With the place and the side that explain most, beside a line and a constant."""
    along = values @ normal
    columns = np.column_stack([along, np.ones(len(along))])
    rest = left - columns @ np.linalg.lstsq(columns, left, rcond=None)[0]
    total, best = float((left**2).sum()), _Hinge(normal, 0.0, 0.0)
    for place in np.quantile(along, np.linspace(0.02, 0.98, PLACES)):
        feature = np.maximum(along - place, 0)
        feature = feature - columns @ np.linalg.lstsq(columns, feature, rcond=None)[0]
        square = float(feature @ feature)
        gain = float(((feature @ rest) ** 2).sum()) / square / total if square > 0 else 0.0
        if gain > best.gain:
            best = _Hinge(normal, -float(place), gain)
    return best


def _with_first(network: Layers, hinge: _Hinge, answers: Weighed, left: FloatArray) -> Layers:
    """One more neuron of the first layer, into those of the second that are on; of the side that explains more."""
    by = network.sensitivities(network.states(answers.y), 1) / answers.sd[:, :, None]  # (n, m, h)
    best, least = network, np.inf
    for side in (1.0, -1.0):
        w, b = side * hinge.normal, side * hinge.offset
        feature = np.maximum(answers.y @ w + b, 0)
        slopes = by * feature[:, None, None]
        matrix = slopes.reshape(-1, slopes.shape[2])
        scale = np.linalg.norm(matrix, axis=0)
        scale = np.where(scale > 0, scale, 1.0)  # 0: never on together, and no weight is asked for
        column = np.linalg.lstsq(matrix / scale, left.ravel(), rcond=1e-6)[0] / scale
        rest = float(((matrix @ column - left.ravel()) ** 2).sum())
        if rest < least:
            least, best = rest, network.with_first(w, b, column)
    return best


def _with_last(network: Layers, hinge: _Hinge, answers: Weighed, left: FloatArray) -> Layers:
    """One more neuron of the last hidden layer, of the side that explains more."""
    hidden = np.maximum(network.states(answers.y)[-2], 0)
    best, least = network, np.inf
    for side in (1.0, -1.0):
        v, c = side * hinge.normal, side * hinge.offset
        feature = np.maximum(hidden @ v + c, 0)[:, None] / answers.sd
        a = (feature * left).sum(axis=0) / np.maximum((feature**2).sum(axis=0), 1e-300)
        rest = float(((feature * a - left) ** 2).sum())
        if rest < least:
            least = rest
            best = replace(
                network, v=np.concatenate([network.v, v[None]]), c=np.append(network.c, c),
                a=np.column_stack([network.a, a]),
            )  # fmt: skip
    return best
