"""AnyDepth: the stages in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.asker import Asker
from reluctant.extraction.any_depth.kink_store import Store
from reluctant.extraction.any_depth.known import Known
from reluctant.extraction.any_depth.layer import Search
from reluctant.extraction.any_depth.memory import Memory
from reluctant.extraction.any_depth.top import fit_readout, oriented_network
from reluctant.extraction.candidate import Candidate
from reluctant.extraction.depth_two.affine import affine_map
from reluctant.extraction.failures import StageFailed
from reluctant.extraction.polish import polish
from reluctant.geometry import DistanceNoise, Frame
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["AnyDepth"]

FIRST_LINES = 4
MOST_LAYERS = 8
FITTED_ROWS = 3.0  # for every parameter
FITTED_DISTANCE = 30.0  # in units of the scale
FITS = 1e-6  # relative residual of the output layer: a larger one means that the layers below are not complete
CHECKED_SCALES = (0.1, 10.0)


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
        known = self._layers(oracle, asker, store)
        network = self._top(oracle, known, memory, noise, rng)
        return Candidate(network)

    def _layers(self, oracle: Counting, asker: Asker, store: Store) -> Known:
        known = Known(store.dim)
        for number in range(1, MOST_LAYERS + 1):
            search = Search(asker, store, known)
            with oracle.stage(f"layer {number}"):
                search.run()
            if not search.neurons or not search.known.sided:
                raise StageFailed(f"layer {number}", "sides", number=len(search.neurons), limit=1)
            known = search.known.extended(search.layer())
            if not search.unexplained().any():
                return known
        raise StageFailed("layers", "kinks left that no layer explains", number=0, limit=0)

    def _top(
        self, oracle: Counting, known: Known, memory: Memory, noise: DistanceNoise, rng: np.random.Generator
    ) -> ReLUNetwork:
        parameters = sum(layer.weights.size + len(layer) for layer in known.layers)
        rows, answers = memory.near(FITTED_DISTANCE * np.sqrt(known.dim), int(FITTED_ROWS * parameters), rng)
        readout = fit_readout(known, rows, answers)
        if readout.residual > FITS:
            raise StageFailed("top", "fit", number=readout.residual, limit=FITS)
        return polish(oriented_network(known, readout, rows, answers), rows, answers, noise, 2)
