"""From gradients to a network, and the last digits: output weights, biases."""

from __future__ import annotations

import numpy as np

from reluctant.extraction.depth_two.linear import design_matrix, solve_weighted
from reluctant.extraction.depth_two.main_pass import Gradients
from reluctant.geometry import FramedNetwork
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.verification import HeldOut

__all__ = ["assemble", "refine_outputs", "refit_biases"]

REFIT_SHARE = 1.5  # inputs for each unknown
REFIT_EXTRA = 10
REFIT_STEPS = 4
HALF_WAY = 0.5  # to the next crease


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


def refine_outputs(oracle: Counting, network: ReLUNetwork, points: FloatArray) -> tuple[FloatArray, HeldOut]:
    """Directions (m, h) of the output weights, from second differences across each crease.

    The answers on the creases themselves hold nothing that the network is made from but these directions,
    and are kept to verify it.

    From the base point with the most room each neuron's crease is met head on, half way to the next one.
    Cost: 3 rows a neuron.
    """
    feet, room = _feet(network, points)
    normals, _ = network.hyperplanes()
    steps = HALF_WAY * room[:, None] * normals
    with oracle.stage("outputs", expected=3 * len(feet)):
        ahead, behind, on = np.split(oracle.query(np.concatenate([feet + steps, feet - steps, feet])), 3)
    bend = ahead + behind - 2 * on
    return (bend / np.linalg.norm(bend, axis=1, keepdims=True)).T, HeldOut(feet, on)


def _feet(network: ReLUNetwork, points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For each neuron the point of its crease with the most room to the others, and that room."""
    w = network.weights[0]
    gram, values = w @ w.T, network.preactivations(points)[0]
    lengths = np.sqrt(np.diag(gram))
    best, best_room = np.zeros(len(w), dtype=int), np.zeros(len(w))
    for r, z in enumerate(values):
        at_foot = z[None, :] - (z / lengths**2)[:, None] * gram
        with np.errstate(divide="ignore"):
            distance = np.abs(at_foot) / (np.abs(gram) / lengths[:, None])
        np.fill_diagonal(distance, np.inf)
        room = distance.min(axis=1)
        best, best_room = np.where(room > best_room, r, best), np.maximum(room, best_room)
    limit = np.linalg.norm(points, axis=1).max()
    feet = points[best] - (values[best, np.arange(len(w))] / lengths**2)[:, None] * w
    return feet, np.minimum(best_room, limit)


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


RANK = 1e-10  # relative; a neuron that no input activates keeps the bias it has
