"""A candidate network: output weights fitted to known hyperplanes, superfluous neurons pruned, errors checked.

The fit is least squares over one ReLU for each hyperplane, x and 1 (LEARNFROMQUERIES of the paper). Gaussian
samples say nothing of a neuron that none of them activates, so there are samples in a strip around each
hyperplane, and a prior: the gradient's jump across it is its output weight. A hyperplane found twice, the first
time badly, would stay twice. The paper calls neurons (Δ, α)-close (Definition 3.7) if their angle is at most Δ and
their thresholds differ by at most α; a close one is left out if the answers are explained as well without it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from reluctant.errors import InvalidInput
from reluctant.extraction.any_position.accuracy import DrawnPoints, NetworkCheck, check_closely, check_network
from reluctant.extraction.any_position.crease_planes import CreasePlanes
from reluctant.extraction.orientation import orient
from reluctant.geometry import DistanceNoise
from reluctant.geometry.lines import BoolArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Counting
from reluctant.oracles.base import Ask
from reluctant.oracles.ledger import check_time

SAMPLES_AN_UNKNOWN, EXTRA_SAMPLES = 1.5, 20  # Gaussian samples for each unknown, and more
SAMPLES_IN_STRIP = 4  # samples around each hyperplane
WIDEST_STRIP = 0.3  # of a strip, or of the room


@dataclass(frozen=True)
class OutputSample:
    """Rows, answers, and how much each answer weighs: one over its noise."""

    rows: FloatArray
    answers: FloatArray
    weight: FloatArray  # (n, 1)

    def misfit(self, network: ReLUNetwork) -> float:
        """Sum of the squared residuals, in deviations of the noise."""
        return float(((self.weight * (self.answers - network(self.rows))) ** 2).sum())


def draw_sample(ask: Ask, planes: CreasePlanes, noise: DistanceNoise, rng: np.random.Generator) -> OutputSample:
    """Gaussian rows and rows around every hyperplane. Cost: 1.5 rows for each unknown and 4 a hyperplane."""
    dim = planes.normals.shape[1]
    unknowns = len(planes) + dim + 1 + dim * int(planes.gate.sum())
    gaussian = rng.standard_normal((int(SAMPLES_AN_UNKNOWN * unknowns) + EXTRA_SAMPLES, dim))
    rows = np.concatenate([gaussian, _strip_rows(planes, rng)])
    return OutputSample(rows, ask(rows), 1 / noise.at(np.linalg.norm(rows, axis=1))[:, None])


def fit_outputs(planes: CreasePlanes, sample: OutputSample) -> ReLUNetwork:
    """The network with these hyperplanes. No queries."""
    plain, gates = planes.chosen(~planes.gate), planes.chosen(planes.gate)
    rows, h = sample.rows, len(plain)
    inputs = np.column_stack([rows, np.ones(len(rows))])
    features = np.column_stack([np.maximum(plain.distance(rows), 0), *_gate_features(gates, rows, inputs), inputs])
    least = 1 / float(sample.weight.max())
    prior = np.where(np.isfinite(plain.jump_sd), 1 / np.maximum(plain.jump_sd, least), 0.0)[:, None]
    weight = sample.weight * _sure_of_gates(gates, rows)[:, None]
    design = np.concatenate([weight * features, prior * np.eye(h, features.shape[1])])
    wanted = np.concatenate([weight * sample.answers, prior * plain.jump])
    scale = np.linalg.norm(design, axis=0)
    scale[scale == 0] = 1.0
    found = scipy.linalg.lstsq(design / scale, wanted, lapack_driver="gelsd", check_finite=False)[0] / scale[:, None]
    neurons = [(plain.normals, plain.offsets, found[:h].T)]
    maps = found[h : -inputs.shape[1]].reshape(len(gates), inputs.shape[1], sample.answers.shape[1])
    neurons += [_gate_pair(gates.normals[k], gates.offsets[k], maps[k]) for k in range(len(gates))]
    w, b, a = (list(parts) for parts in zip(*neurons, strict=True))
    affine = found[-inputs.shape[1] :]
    return ReLUNetwork([np.concatenate(w), np.hstack(a)], [np.concatenate(b), affine[-1]], affine[:-1].T)


def _gate_features(gates: CreasePlanes, rows: FloatArray, inputs: FloatArray) -> list[FloatArray]:
    """For each gate x and 1 where it is open, and zero elsewhere."""
    return [np.where(side[:, None] > 0, inputs, 0.0) for side in gates.distance(rows).T]


def _sure_of_gates(gates: CreasePlanes, rows: FloatArray) -> FloatArray:
    """Zero for rows so close to a gate that it may be open or not, else one."""
    return np.asarray(1.0 - (np.abs(gates.distance(rows)) < gates.uncertainty(rows)).any(axis=1))


def _gate_pair(normal: FloatArray, offset: float, switched: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """An affine map (d + 1, m) that is on beyond a hyperplane, as pairs of neurons: max(Mz + ℓ, 0) - max(Mz, 0).

    The larger M, the narrower the slab in which they are wrong, and the more digits they lose; both errors are of
    the size of a third of the digits for this M.
    """
    outputs = switched.shape[1]
    steep = np.linalg.norm(switched, axis=0) * unit_roundoff(np.float64) ** (-2 / 3)
    weights = steep[:, None] * normal
    first = np.concatenate([weights + switched[:-1].T, weights])
    bias = np.concatenate([steep * offset + switched[-1], steep * offset])
    return first, bias, np.hstack([np.eye(outputs), -np.eye(outputs)])


def _strip_rows(planes: CreasePlanes, rng: np.random.Generator) -> FloatArray:
    h, dim = planes.normals.shape
    rows = rng.standard_normal((h, SAMPLES_IN_STRIP, dim))
    off = np.einsum("hkd,hd->hk", rows, planes.normals) + planes.offsets[:, None]
    width = WIDEST_STRIP * np.minimum(planes.room, 1.0)[:, None] * rng.uniform(-1, 1, (h, SAMPLES_IN_STRIP))
    return np.asarray((rows + (width - off)[:, :, None] * planes.normals[:, None]).reshape(-1, dim))


def pair_sines(v: FloatArray) -> FloatArray:
    """|sin ∠(v_i, v_j)| for all pairs (n, n), from sums and differences, which keep the digits of small angles."""
    u = _unit_rows(v)
    apart = np.linalg.norm(u[:, None] - u, axis=2)
    return np.asarray(apart * np.linalg.norm(u[:, None] + u, axis=2) / 2)


def pair_offsets(v: FloatArray, b: FloatArray) -> FloatArray:
    """‖b_i v_j - b_j v_i‖ / (‖v_i‖ ‖v_j‖) for all pairs (n, n)."""
    u, beta = _unit_rows(v), b / np.linalg.norm(v, axis=1)
    return np.asarray(np.linalg.norm(beta[:, None, None] * u - beta[None, :, None] * u[:, None], axis=2))


def are_close(v: FloatArray, b: FloatArray, separation: float, alpha: float) -> BoolArray:
    """Definition 3.7: which pairs (n, n) are (Δ, α)-close. Opposite neurons are close to each other too."""
    return np.asarray((pair_sines(v) <= separation) & (pair_offsets(v, b) <= alpha))


def _unit_rows(v: FloatArray) -> FloatArray:
    norms = np.linalg.norm(v, axis=1, keepdims=True)
    if not norms.all():
        raise InvalidInput.about("v", got="a neuron without weights", expected="vectors that have a direction")
    return np.asarray(v / norms)


CLOSE_ANGLE, CLOSE_THRESHOLD = 0.05, 0.05  # Δ and α
NO_WORSE = 1.1  # times the sum of squares with all of them


def prune(planes: CreasePlanes, sample: OutputSample) -> CreasePlanes:
    """The hyperplanes without those that a close one makes superfluous. No queries."""
    close = are_close(planes.normals, -planes.offsets, CLOSE_ANGLE, CLOSE_THRESHOLD)
    kept = np.ones(len(planes), dtype=bool)
    misfit = None
    for i in reversed(range(len(planes))):
        check_time()
        if close[i, kept].sum() == 1:  # to itself
            continue
        misfit = sample.misfit(fit_outputs(planes.chosen(kept), sample)) if misfit is None else misfit
        kept[i] = False
        left = sample.misfit(fit_outputs(planes.chosen(kept), sample))
        kept[i] = left > NO_WORSE * misfit
        misfit = misfit if kept[i] else left
    return planes.chosen(kept)


SAME_ERROR = 1e-2  # of the error: a network that differs by less, or by noise, is the same
TERM_ROUNDINGS = 4.0  # of the largest term that an answer is the sum of


@dataclass(frozen=True)
class Model:
    """A network, the hyperplanes it bends along, and its check."""

    network: ReLUNetwork
    planes: CreasePlanes
    checked: NetworkCheck

    def good_for(self, eps: float) -> bool:
        """True if the error is at most eps, at the upper end of its interval."""
        return self.checked.accuracy.high <= eps

    def better_than(self, other: Model | None) -> bool:
        """True if its error is the smaller one."""
        return other is None or self.checked.accuracy.error < other.checked.accuracy.error


def model_of(
    oracle: Counting, network: ReLUNetwork, drawn: DrawnPoints, noise: DistanceNoise, rng: np.random.Generator
) -> Model:
    """A network found elsewhere. Cost: 256 rows."""
    checked = check_network(oracle, network, drawn, noise, rng)
    return Model(network, CreasePlanes.of(network, checked.typical), checked)


def fitted_model(
    oracle: Counting, planes: CreasePlanes, drawn: DrawnPoints, noise: DistanceNoise, rng: np.random.Generator
) -> Model:
    """The best network with these hyperplanes, or those of them that are needed.

    Cost: 256 rows, 1.5 for each unknown, and 4 a hyperplane.
    """
    with oracle.stage("outputs"):
        sample = draw_sample(oracle.query, planes, noise, rng)
    planes = prune(planes, sample)
    network = fit_outputs(planes, sample)
    return Model(network, planes, check_network(oracle, network, drawn, noise, rng))


def oriented_network(network: ReLUNetwork, rows: FloatArray, allowed: float) -> ReLUNetwork:
    """The network without its skip term, if that changes answers to `rows` by no more than `allowed` and roundings.

    In a cluster every digit counts. A network without neurons is an affine one.
    """
    if network.skip is None or network.depth != 2:
        return network
    if not network.widths[1]:
        return ReLUNetwork([network.skip], [network.biases[1]])
    answers = network(rows)
    terms = network.preactivations(rows)[0] * np.abs(network.weights[1]).max(axis=0)
    allowed += TERM_ROUNDINGS * unit_roundoff(np.float64) * float(np.abs(terms).max(initial=0))
    for other in (ReLUNetwork(network.weights, network.biases), orient(network)):
        if np.abs(other(rows) - answers).max() <= allowed:
            return other
    return network


def oriented_model(
    oracle: Counting, model: Model, drawn: DrawnPoints, noise: DistanceNoise, rng: np.random.Generator
) -> Model:
    """The same, oriented if that can be had without loss, and checked at new points. Cost: 256 rows."""
    accuracy = model.checked.accuracy
    allowed = SAME_ERROR * float(np.sqrt(accuracy.error * accuracy.variance)) + noise.near
    network = oriented_network(model.network, model.checked.rows, allowed)
    return Model(network, model.planes, check_network(oracle, network, drawn, noise, rng))


def closely_checked(
    oracle: Counting, model: Model, drawn: DrawnPoints, noise: DistanceNoise, rng: np.random.Generator, eps: float
) -> Model:
    """The same, its error measured where it is, if it is close to eps. Cost: up to 768 rows."""
    return replace(model, checked=check_closely(oracle, model.network, model.checked, drawn, noise, rng, eps))
