"""Last stages of depth two: from gradients at base points to a network, then the digits of outputs and biases.

One least-squares solution gives all weights. With several outputs the change of slope across each crease gives the
output weights, and the answers there are kept for verification. Biases are fitted anew at random inputs of the
scale of use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from reluctant.arrays import Array, Arrays
from reluctant.extraction.depth_two.main_pass import BaseGradients
from reluctant.extraction.linear import MANY_NEURONS, Design, design_matrix, normal_solver
from reluctant.fitting.least_squares import Linearisation, StepRules, least_squares
from reluctant.geometry import FramedNetwork
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.verification import HeldOutRows

__all__ = ["assemble", "refine_outputs", "refit_biases", "refit_rows"]


def assemble(
    known: FramedNetwork, measured: BaseGradients, outputs: FloatArray | None = None
) -> tuple[ReLUNetwork, FloatArray]:
    """Solve for all weights, then for all biases; also the standard error of a weight of each neuron.

    With other `outputs` (m, h) than were known when the gradients were measured, if they are given.
    """
    arrays, h = measured.base.design.arrays, known.neurons
    active, design = measured.base.active, measured.base.design
    if outputs is None:
        outputs = known.network.weights[1]
    else:
        design = Design.of(active, outputs, arrays)
    solution, points = design.solution(measured.weights), arrays.put(measured.points)
    found = arrays.get(solution @ measured.gradients)
    errors = arrays.get(arrays.xp.sqrt(((solution / arrays.put(measured.weights)) ** 2).sum(axis=1)))[:h]
    w, skip = found[:h], found[h:]
    of_neurons = (active * (points @ arrays.put(w).T)) @ arrays.put(outputs).T
    rest = measured.answers - arrays.get(of_neurons) - measured.points @ skip.T
    constants = arrays.get(solution @ arrays.put(rest.reshape(-1)))
    return ReLUNetwork([w, outputs], [constants[:h], constants[h:]], skip), errors


def refine_outputs(oracle: Counting, network: ReLUNetwork, measured: BaseGradients) -> tuple[FloatArray, HeldOutRows]:
    """Directions (m, h) of the output weights, from the change of slope across each crease.

    From the base point with the best view each neuron's crease is met head on. On the near side the slope is
    known from the main pass; on the far side it is measured, half way to the next crease. The answers on the
    creases are kept to verify the network. Cost: 2 rows a neuron, a third where no base point has a clear view.
    """
    half_way = 0.5  # to the next crease
    views = _crease_views(network, measured.points)
    near_side = np.sign(views.values)[:, None] * network.hyperplanes()[0]
    length = half_way * views.room[:, None]
    hidden = np.flatnonzero(~views.clear)
    rows = [views.feet - length * near_side, views.feet, (views.feet + length * near_side)[hidden]]
    count = len(views.feet)
    with oracle.stage("outputs", expected=2 * count + len(hidden)):
        far, on, near = np.split(oracle.query(np.concatenate(rows)), [count, 2 * count])
    gradients = oracle.arrays.get(measured.gradients).reshape(len(measured.points), oracle.outputs, oracle.dim)
    near_slope = np.einsum("hmd,hd->hm", gradients[views.base], near_side)
    near_slope[hidden] = (near - on[hidden]) / length[hidden]
    bend = near_slope - (on - far) / length  # along a neuron's outputs, whichever side is the active one
    return (bend / np.linalg.norm(bend, axis=1, keepdims=True)).T, HeldOutRows(views.feet, on)


@dataclass(frozen=True)
class _CreaseViews:
    """How each neuron's crease is seen from a base point.

    feet: the point of the crease below the base point. room: distance from there to the next crease, straight
    across. clear: no other crease lies between the base point and its foot. values: at the base point.
    """

    feet: FloatArray
    room: FloatArray
    base: IntArray
    clear: BoolArray
    values: FloatArray


def _crease_views(network: ReLUNetwork, points: FloatArray) -> _CreaseViews:
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
    return _CreaseViews(feet, np.minimum(room[base, each], limit), base, clear[base, each], chosen)


def _room_at_feet(z: FloatArray, gram: FloatArray, lengths: FloatArray) -> FloatArray:
    """Below one base point: distance from each neuron's crease to the next, straight across."""
    at_foot = z[None, :] - (z / lengths**2)[:, None] * gram
    with np.errstate(divide="ignore"):
        distance = np.abs(at_foot) / (np.abs(gram) / lengths[:, None])
    np.fill_diagonal(distance, np.inf)
    return np.asarray(distance.min(axis=1))


def refit_biases(oracle: Counting, network: ReLUNetwork, rng: np.random.Generator, share: float) -> ReLUNetwork:
    """Fit biases anew at random inputs of the scale of use: far creases lose digits in theirs.

    Cost: `share` rows for every m unknowns, and 10.
    """
    h, m = network.widths[1], network.outputs
    count = refit_rows(h, m, share)
    rows = oracle.arrays.get(oracle.arrays.normals(rng, (count, oracle.dim)))
    with oracle.stage("biases", expected=count):
        answers = oracle.query(rows)
    return _BiasFit(network, rows, answers, oracle.arrays).run()


def refit_rows(h: int, m: int, share: float) -> int:
    """Rows that a fit of the biases of h neurons and m outputs asks."""
    refit_extra = 10
    return int(share * (h + m) / m) + refit_extra


@dataclass(frozen=True)
class _Biases:
    """Biases (h,) and (m,), which neurons are on at each row, and how many the last step switched.

    solve: the solver of the state before, where no neuron was switched since.
    """

    b: FloatArray
    c: FloatArray
    active: Array
    switched: float = np.inf
    solve: Callable[[FloatArray], FloatArray] | None = None


class _BiasFit:
    """Gauss–Newton on the biases alone: what the weights make of the rows is worked out once."""

    def __init__(self, network: ReLUNetwork, rows: FloatArray, answers: FloatArray, arrays: Arrays) -> None:
        self.network, self.arrays = network, arrays
        (w, self.outputs), skip = network.weights, network.skip
        self.products = arrays.put(rows) @ arrays.put(w).T
        self.answers = answers if skip is None else answers - rows @ skip.T

    def run(self) -> ReLUNetwork:
        """The network with the biases that fit best."""
        refit_steps = 4
        (b, c), network = self.network.biases, self.network
        start = _Biases(b, c, self.products + self.arrays.put(b) > 0)
        rules = StepRules(
            refit_steps, accept=lambda *_: True, enough=lambda before, after: before < np.inf and not after
        )
        found = least_squares(start, self.linearised, rules).state
        return ReLUNetwork(network.weights, [found.b, found.c], network.skip)

    def linearised(self, at: _Biases) -> Linearisation[_Biases, FloatArray]:
        """Equations with these neurons on; what a state leaves is the number of neurons that its step switched."""
        solve, h = at.solve or self.solver(at.active), self.network.widths[1]

        def move(change: FloatArray) -> tuple[_Biases, float]:
            b, c = at.b + change[:h], at.c + change[h:]
            active = self.products + self.arrays.put(b) > 0
            switched = float((active != at.active).sum())
            return _Biases(b, c, active, switched, None if switched else solve), switched

        return Linearisation(at, at.switched, lambda _: solve(self.residual(at.b, at.c)), move)

    def residual(self, b: FloatArray, c: FloatArray) -> FloatArray:
        """What biases (h,) and (m,) leave of the answers."""
        hidden = self.arrays.xp.clip(self.products + self.arrays.put(b), 0, None)
        predicted = self.arrays.get(hidden @ self.arrays.put(self.outputs).T) + c
        return np.asarray(self.answers - predicted).reshape(-1)

    def solver(self, active: Array) -> Callable[[FloatArray], FloatArray]:
        """From a residual to the change of the biases that explains it, these neurons being on."""
        bias_rank = 1e-10  # relative; a neuron that no input activates keeps the bias it has
        arrays, design = self.arrays, design_matrix(active, self.outputs, self.arrays)
        if design.shape[1] >= MANY_NEURONS:
            solve = normal_solver(design, arrays)
            return lambda residual: arrays.get(solve(arrays.put(residual)))
        rows = arrays.get(design)
        return lambda residual: scipy.linalg.lstsq(
            rows, residual, cond=bias_rank, lapack_driver="gelsy", check_finite=False
        )[0]
