"""AnyDepth: the stages in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.asker import Asker
from reluctant.extraction.any_depth.completion import segments_across
from reluctant.extraction.any_depth.kink_store import Store
from reluctant.extraction.any_depth.known import Known
from reluctant.extraction.any_depth.ladder import Ladder
from reluctant.extraction.any_depth.memory import Memory
from reluctant.extraction.any_depth.top import deviations, fit_most, fit_readout, oriented_network
from reluctant.extraction.candidate import Candidate
from reluctant.extraction.depth_two.affine import affine_map
from reluctant.extraction.failures import StageFailed
from reluctant.extraction.polish import polish
from reluctant.geometry import DistanceNoise, Frame
from reluctant.geometry.row_space import row_space
from reluctant.geometry.samples import BoolArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["AnyDepth"]

MANY_INPUTS = 50  # from here on it pays to look for the directions that matter first
FIRST_LINES = 8
FITTED_ROWS = 3.0  # for every parameter
RARE_ROWS = 3.0  # for every weight of a neuron
FITTED_DISTANCE = 30.0  # in units of the scale
FITS = 1e-6  # relative residual of the output layer: a larger one means that the layers below are not complete
CHECKED_SCALES = (0.1, 10.0)
FEWEST_CHECKED, CHECKED = 4000, 0.5  # fresh points: a part of space that is never met is larger than 3 in so many

MOST_COMPLETIONS = 10
MOST_WRONG = 0.4  # of the rows: beyond, the others are no majority


@dataclass(frozen=True)
class AnyDepth:
    """Exact extraction of a network of any depth and any widths, by following creases."""

    def run(
        self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]
    ) -> Candidate:
        """One attempt; raises StageFailed where it gets stuck."""
        frame = _frame(oracle, noise, rng)
        memory = Memory(lambda rows: oracle.query(frame.points(rows)))
        store = Store(memory, len(frame.basis), noise, rng)
        with oracle.stage("lines"):
            store.scan_random(FIRST_LINES)
        if not len(store.kinks):
            return Candidate(affine_map(oracle))
        asker = Asker(memory, noise, rng, store.scale, store.spacing())
        ladder = Ladder(oracle, asker, store)
        nothing = np.empty((0, store.dim)), np.empty((0, oracle.outputs))
        ladder.climb(lambda known: _unexplained(known, memory, *nothing, rng)[0].mean() < MOST_WRONG)
        known = self._complete(oracle, ladder, memory, rng)
        return Candidate(_lifted(self._top(known, memory, noise, rng), frame))

    def _complete(self, oracle: Counting, ladder: Ladder, memory: Memory, rng: np.random.Generator) -> Known:
        """Look for neurons that are still missing where the answers are not explained."""
        rows, answers = np.empty((0, ladder.store.dim)), np.empty((0, oracle.outputs))
        for _ in range(MOST_COMPLETIONS):
            known = ladder.known()
            wrong, off, seen = _unexplained(known, memory, rows, answers, rng)
            if not wrong.any():
                with oracle.stage("check"):
                    fresh = _points(max(FEWEST_CHECKED, int(CHECKED * known.parameters)), known.dim, rng)
                    rows, answers = np.concatenate([rows, fresh]), np.concatenate([answers, memory(fresh)])
                wrong, off, seen = _unexplained(known, memory, rows, answers, rng)
                if not wrong.any():
                    return known
            if wrong.mean() > MOST_WRONG:
                break
            with oracle.stage("completion"):
                ladder.store.scan(segments_across(seen, wrong, off, rng))
                ladder.top.review()
                ladder.top.close()
                ladder.reenter()
        raise StageFailed("top", "answers that the layers found do not explain", number=float(wrong.mean()), limit=0)

    def _top(self, known: Known, memory: Memory, noise: DistanceNoise, rng: np.random.Generator) -> ReLUNetwork:
        rows, answers = _rows_for_fit(known, memory, rng)
        readout = fit_readout(known, rows, answers)
        return polish(oriented_network(known, readout, rows, answers), rows, answers, noise, 2)


def _frame(oracle: Counting, noise: DistanceNoise, rng: np.random.Generator) -> Frame:
    """The directions that matter, where inputs are many; else all."""
    if oracle.dim < MANY_INPUTS:
        return Frame(np.zeros(oracle.dim), np.eye(oracle.dim))
    with oracle.stage("row space"):
        found = row_space(oracle.query, oracle.dim, noise, rng)
    return found.frame


def _lifted(network: ReLUNetwork, frame: Frame) -> ReLUNetwork:
    """The network as a function of the input itself."""
    first, *others = network.weights
    skip = None if network.skip is None else network.skip @ frame.basis
    return ReLUNetwork([first @ frame.basis, *others], network.biases, skip)


def _rows_for_fit(known: Known, memory: Memory, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Random rows, and for every neuron enough on the side of its crease that is met less often."""
    rows, answers = memory.near(FITTED_DISTANCE * np.sqrt(known.dim))
    order = rng.permutation(len(rows))
    rows, answers = rows[order], answers[order]
    chosen = np.arange(len(rows)) < FITTED_ROWS * known.parameters
    active = known.patterns(rows)
    rare = np.where(active.mean(axis=0) < 0.5, active, ~active)
    enough = np.concatenate([np.full(len(layer), RARE_ROWS * layer.weights.shape[1]) for layer in known.layers])
    chosen |= (rare & (np.cumsum(rare, axis=0) <= enough)).any(axis=1)
    return rows[chosen], answers[chosen]


def _unexplained(
    known: Known, memory: Memory, rows: FloatArray, answers: FloatArray, rng: np.random.Generator
) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Which rows the best fit to most of them does not explain, by how much, and the rows."""
    some_rows, some_answers = _rows_for_fit(known, memory, rng)
    rows, answers = np.concatenate([rows, some_rows]), np.concatenate([answers, some_answers])
    off = deviations(known, fit_most(known, rows, answers), rows, answers)
    return off > FITS, off, rows


def _points(count: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """Random points, half of them at the scale of use, the others at scales around it."""
    low, high = np.log(CHECKED_SCALES)
    scale = np.where(rng.random(count) < 0.5, 1.0, np.exp(rng.uniform(low, high, count)))
    return scale[:, None] * rng.standard_normal((count, dim))
