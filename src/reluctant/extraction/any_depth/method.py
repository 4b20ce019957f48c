"""AnyDepth: the stages in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.asker import Asker
from reluctant.extraction.any_depth.completion import segments_across
from reluctant.extraction.any_depth.kink_store import Store
from reluctant.extraction.any_depth.known import Known
from reluctant.extraction.any_depth.layer import Search
from reluctant.extraction.any_depth.memory import Memory
from reluctant.extraction.any_depth.top import deviations, fit_most, fit_readout, oriented_network
from reluctant.extraction.candidate import Candidate
from reluctant.extraction.depth_two.affine import affine_map
from reluctant.extraction.failures import StageFailed
from reluctant.extraction.polish import polish
from reluctant.geometry import DistanceNoise, Frame
from reluctant.geometry.samples import BoolArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["AnyDepth"]

FIRST_LINES = 8
MOST_LAYERS = 8
FITTED_ROWS = 3.0  # for every parameter
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
        frame = Frame(np.zeros(oracle.dim), np.eye(oracle.dim))
        memory = Memory(lambda rows: oracle.query(frame.points(rows)))
        store = Store(memory, len(frame.basis), noise, rng)
        with oracle.stage("lines"):
            store.scan_random(FIRST_LINES)
        if not len(store.kinks):
            return Candidate(affine_map(oracle))
        asker = Asker(memory, noise, rng, store.scale, store.spacing())
        search = self._layers(oracle, asker, store, memory)
        known = self._complete(oracle, search, memory, rng)
        return Candidate(self._top(known, memory, noise, rng))

    def _layers(self, oracle: Counting, asker: Asker, store: Store, memory: Memory) -> Search:
        known = Known(store.dim)
        for number in range(1, MOST_LAYERS + 1):
            search = Search(asker, store, known)
            with oracle.stage(f"layer {number}"):
                search.run()
            if not search.neurons or not search.known.sided:
                raise StageFailed(f"layer {number}", "sides", number=len(search.neurons), limit=1)
            known = search.known.extended(search.layer())
            rows, answers = _rows_for_fit(known, memory, asker.rng)
            off = deviations(known, fit_most(known, rows, answers), rows, answers)
            if np.mean(off > FITS) < MOST_WRONG:
                return search
        raise StageFailed("layers", "kinks left that no layer explains", number=0, limit=0)

    def _complete(self, oracle: Counting, search: Search, memory: Memory, rng: np.random.Generator) -> Known:
        """Look for neurons that are still missing where the answers are not explained."""
        rows, answers = np.empty((0, search.known.dim)), np.empty((0, oracle.outputs))
        for _ in range(MOST_COMPLETIONS):
            known = search.known.extended(search.layer())
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
                search.store.scan(segments_across(seen, wrong, off, rng))
                search.review()
                search.try_all()
        raise StageFailed("top", "answers that the layers found do not explain", number=float(wrong.mean()), limit=0)

    def _top(self, known: Known, memory: Memory, noise: DistanceNoise, rng: np.random.Generator) -> ReLUNetwork:
        rows, answers = _rows_for_fit(known, memory, rng)
        readout = fit_readout(known, rows, answers)
        return polish(oriented_network(known, readout, rows, answers), rows, answers, noise, 2)


def _rows_for_fit(known: Known, memory: Memory, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    return memory.near(FITTED_DISTANCE * np.sqrt(known.dim), int(FITTED_ROWS * known.parameters), rng)


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
