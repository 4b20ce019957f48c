"""From gradients to a network, and the last digits: output weights, biases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.depth_two.linear import design_matrix, solve_weighted
from reluctant.extraction.depth_two.main_pass import Gradients
from reluctant.geometry import FramedNetwork
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.verification import HeldOut
from reluctant.verification.points import crease_points

__all__ = ["assemble", "refine_outputs", "refit_biases"]

REFIT_SHARE = 1.5  # inputs for each unknown
REFIT_EXTRA = 10
REFIT_STEPS = 4
HALF_WAY = 0.5  # to the next crease
CLOSE_BY = 1e-4  # of a typical input: how far beside a crease the network is looked at
RANK = 1e-10  # relative; a neuron that no input activates keeps the bias it has


def assemble(known: FramedNetwork, measured: Gradients, outputs: FloatArray) -> tuple[ReLUNetwork, FloatArray]:
    """Solve for all weights, then for all biases; also the standard error of a weight of each neuron."""
    h, m = known.neurons, len(outputs)
    design = design_matrix(measured.base.active, outputs)
    solution = solve_weighted(design, measured.weights)
    found = solution @ measured.gradients
    errors = np.sqrt(((solution / measured.weights) ** 2).sum(axis=1))[:h]
    w, skip = found[:h], found[h:]
    rest = measured.answers - (measured.base.active * (measured.points @ w.T)) @ outputs.T - measured.points @ skip.T
    constants = solve_weighted(design, np.ones(len(design))) @ rest.reshape(len(rest) * m)
    return ReLUNetwork([w, outputs], [constants[:h], constants[h:]], skip), errors


def refine_outputs(oracle: Counting, network: ReLUNetwork, measured: Gradients) -> tuple[FloatArray, HeldOut]:
    """Directions (m, h) of the output weights, from the change of slope across each crease.

    Each neuron's crease is met head on, half way to the next one on both sides. The answers just before and
    just behind it are kept to verify the network: two neurons with opposite outputs that were taken for one
    show there. Cost: 3 rows a neuron, a fourth where no base point is in view.
    """
    views = _views(network, measured.points)
    near_side = np.sign(views.values)[:, None] * network.hyperplanes()[0]
    close = np.minimum(CLOSE_BY * np.sqrt(oracle.dim), views.room / 4)[:, None] * near_side
    far = HALF_WAY * views.room[:, None] * near_side
    hidden = np.flatnonzero(~views.clear)
    rows = [views.feet - far, views.feet - close, views.feet + close, (views.feet + far)[hidden]]
    count = len(views.feet)
    with oracle.stage("outputs", expected=3 * count + len(hidden)):
        at_far, behind, before, at_near = np.split(oracle.query(np.concatenate(rows)), [count, 2 * count, 3 * count])
    length = np.linalg.norm(far - close, axis=1, keepdims=True)
    gradients = measured.gradients.reshape(len(measured.points), oracle.outputs, oracle.dim)
    near_slope = np.einsum("hmd,hd->hm", gradients[views.base], near_side)
    near_slope[hidden] = (at_near - before[hidden]) / length[hidden]
    bend = near_slope - (behind - at_far) / length  # along a neuron's outputs, whichever side is the active one
    outputs = (bend / np.linalg.norm(bend, axis=1, keepdims=True)).T
    return outputs, HeldOut(np.concatenate(rows[1:3]), np.concatenate([behind, before]))


def look_beside_creases(oracle: Counting, network: ReLUNetwork, rng: np.random.Generator) -> HeldOut:
    """Answers just before and just behind a random point of each crease, kept to verify the network.

    With several outputs a crease is not looked at from both sides when it is found. Cost: 2 rows a neuron.
    """
    on = crease_points(network, oracle.facts.domain, rng)
    normals = network.hyperplanes()[0][on.neurons[:, 1]]
    close = CLOSE_BY * np.sqrt(oracle.dim) * normals
    rows = np.concatenate([on.points - close, on.points + close])
    with oracle.stage("creases", expected=len(rows)):
        return HeldOut(rows, oracle.query(rows))


@dataclass(frozen=True)
class _Views:
    """How each neuron's crease is seen from a base point.

    feet: the point of the crease below the base point. room: distance from there to the next crease, straight
    across. clear: no other crease lies between the base point and its foot. values: at the base point.
    """

    feet: FloatArray
    room: FloatArray
    base: IntArray
    clear: BoolArray
    values: FloatArray


def _views(network: ReLUNetwork, points: FloatArray) -> _Views:
    """For each neuron the base point with the clearest and widest view of its crease."""
    w = network.weights[0]
    gram, values = w @ w.T, network.preactivations(points)[0]
    lengths, each = np.sqrt(np.diag(gram)), np.arange(len(w))
    room = np.array([_room_at_feet(z, gram, lengths) for z in values])  # (n, h)
    clear = room > np.abs(values) / lengths
    base = np.lexsort([room, clear], axis=0)[-1]
    chosen = values[base, each]
    limit = np.linalg.norm(points, axis=1).max()
    feet = points[base] - (chosen / lengths**2)[:, None] * w
    return _Views(feet, np.minimum(room[base, each], limit), base, clear[base, each], chosen)


def _room_at_feet(z: FloatArray, gram: FloatArray, lengths: FloatArray) -> FloatArray:
    """Below one base point: distance from each neuron's crease to the next, straight across."""
    at_foot = z[None, :] - (z / lengths**2)[:, None] * gram
    with np.errstate(divide="ignore"):
        distance = np.abs(at_foot) / (np.abs(gram) / lengths[:, None])
    np.fill_diagonal(distance, np.inf)
    return np.asarray(distance.min(axis=1))


def refit_biases(
    oracle: Counting, network: ReLUNetwork, rng: np.random.Generator, share: float = REFIT_SHARE
) -> ReLUNetwork:
    """Fit biases anew at random inputs of the scale of use: far creases lose digits in theirs.

    Cost: `share` rows for every m unknowns, and 10.
    """
    (w, a), (b, c) = network.weights, network.biases
    h, m = len(b), len(c)
    count = int(share * (h + m) / m) + REFIT_EXTRA
    rows = rng.standard_normal((count, oracle.dim))
    with oracle.stage("biases", expected=count):
        answers = oracle.query(rows)
    for _ in range(REFIT_STEPS):
        network = ReLUNetwork([w, a], [b, c], network.skip)
        active = network.patterns(rows)[0]
        change = np.linalg.lstsq(design_matrix(active, a), (answers - network(rows)).reshape(-1), rcond=RANK)[0]
        b, c = b + change[:h], c + change[h:]
    return ReLUNetwork([w, a], [b, c], network.skip)
