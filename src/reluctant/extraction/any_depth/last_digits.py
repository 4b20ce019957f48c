"""The final fit to the last digits, and the certificate of its errors.

All parameters are fitted to some of the answers, then to those as well that this did not serve. Where the search
went on in a row space, which has few digits, the first-layer weights are measured once more, coordinate by
coordinate: at points far from every crease a gradient is a known combination of them. The certificate counts units
that stand for sums apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg

from reluctant.extraction.any_depth.completion import CHECK_DISTANCES
from reluctant.extraction.any_depth.features import KnownLayers
from reluctant.extraction.any_depth.kinks import Asker
from reluctant.extraction.any_depth.readout import FITTED_DISTANCE
from reluctant.extraction.linear import Memory
from reluctant.extraction.method import Certificate
from reluctant.fitting.least_squares import Linearisation, StepRules, least_squares
from reluctant.fitting.network_fit import neuron_errors, polish
from reluctant.geometry import DistanceNoise, gradients
from reluctant.geometry.lines import IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting

FEW_PARAMETERS = 2000  # beyond, a thorough fit takes minutes


def polish_to_all(
    network: ReLUNetwork, rows: FloatArray, answers: FloatArray, memory: Memory, noise: DistanceNoise, rounds: int
) -> ReLUNetwork:
    """Fit to these rows, then to the worst of all others too, as long as that helps, in so many rounds at most.

    Two neurons that are hardly ever on together leave a weight to few rows; those are where the fit is worst.
    """
    added_rows = 0.5  # rows for every parameter, in a round
    every_row, every_answer = memory.near(FITTED_DISTANCE * np.sqrt(network.dim))
    sd = noise.at(np.linalg.norm(every_row, axis=1))

    def deviations(candidate: ReLUNetwork) -> FloatArray:
        return np.asarray(np.abs(candidate(every_row) - every_answer).max(axis=1) / sd)

    def linearise(at: _Covered) -> Linearisation[_Covered, ReLUNetwork] | None:
        if at.all_explained:
            return None
        polished = polish(at.best, at.rows, at.answers, noise, thorough=network.parameters <= FEW_PARAMETERS)
        return Linearisation(at, at.off, lambda _: polished, partial(covered, at))

    def covered(at: _Covered, polished: ReLUNetwork) -> tuple[_Covered, float]:
        now = deviations(polished)
        off = float(now.max())
        best, least = (polished, off) if off < at.off else (at.best, at.off)
        worst = np.argsort(-now)[: int(added_rows * network.parameters)]
        worst = worst[now[worst] > DOUBLE.in_line]  # also of a fit that ran away: these rows hold it
        more = np.concatenate([at.rows, every_row[worst]]), np.concatenate([at.answers, every_answer[worst]])
        return _Covered(best, least, *more, all_explained=not len(worst)), off

    start = _Covered(network, float(deviations(network).max()), rows, answers)
    return least_squares(start, linearise, StepRules(rounds, accept=lambda *_: True)).state.best


@dataclass(frozen=True)
class _Covered:
    """The best network, its largest deviation anywhere, and the rows it is fitted to."""

    best: ReLUNetwork
    off: float
    rows: FloatArray
    answers: FloatArray
    all_explained: bool = False


def refine_first_weights(
    oracle: Counting, network: ReLUNetwork, noise: DistanceNoise, rng: np.random.Generator
) -> ReLUNetwork:
    """Weights of the first layer from gradients. Cost: about 1.25 (d + 2) rows a neuron, less with several outputs."""
    roomy_pool = 2000  # random points from which those far from every crease are taken
    roomy_share = 0.2  # share of them that is looked at
    points_share = 1.25  # points for every neuron, where there is one output
    least_share = 0.5  # where there are many: each neuron is on at half of the points
    room_step = 0.5  # of the room, in the steepest coordinate
    gradient_rank = 1e-3  # relative; what the gradients hardly say stays as it is
    points = rng.standard_normal((roomy_pool, network.dim))
    room = _room_of_coordinates(network, points)
    roomy = np.argsort(-room)[: int(roomy_share * roomy_pool)]
    points, room = points[roomy], room[roomy]
    combinations = _by_first_layer(network, points)  # (n, m, h)
    h = network.widths[1]
    chosen = _spanning(combinations, int(h * max(points_share / network.outputs, least_share)) + 1)
    with oracle.stage("first weights", expected=len(chosen) * (network.dim + 2)):
        found = gradients(oracle.query, points[chosen], None, room_step * room[chosen], noise, rng)
    if not found.good.any():
        return network
    left = combinations[chosen][found.good].reshape(-1, h)
    first = network.weights[0]
    rest = found.slope[found.good].reshape(len(left), -1) - left @ first
    change = np.linalg.lstsq(left, rest, rcond=gradient_rank)[0]
    return ReLUNetwork([first + change, *network.weights[1:]], network.biases)


def _room_of_coordinates(network: ReLUNetwork, points: FloatArray) -> FloatArray:
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


def certify(network: ReLUNetwork, known: KnownLayers, rows: FloatArray, asker: Asker) -> Certificate | None:
    """The certificate of a network that was fitted to these rows; None where that would take minutes.

    Neurons that stand for sums, or carry others on, come last in their layer and are counted apart.
    """
    if network.parameters > FEW_PARAMETERS:
        return None
    own = [np.arange(width) < len(layer) for width, layer in zip(network.widths[1:-1], known.layers, strict=True)]
    seen = np.concatenate(own)
    piece = asker.spacing * asker.scale
    resolution = DOUBLE.bend * float(asker.noise.at(np.array([asker.scale]))[0]) / piece
    errors = neuron_errors(network, rows, asker.noise)
    return Certificate(errors[seen], resolution, CHECK_DISTANCES[-1] * asker.scale, sums=int((~seen).sum()))
