"""AnyDepth: row space, lines, layer upon layer, completion, output layer, polish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.completion import complete, mostly_explained
from reluctant.extraction.any_depth.features import KnownLayers
from reluctant.extraction.any_depth.kinks import Asker, KinkStore
from reluctant.extraction.any_depth.last_digits import certify, polish_to_all, refine_first_weights
from reluctant.extraction.any_depth.layer import Ladder
from reluctant.extraction.any_depth.readout import (
    fit_readout,
    oriented_network,
    rows_for_fit,
    rows_on_rare_sides,
    without_outputs,
)
from reluctant.extraction.linear import affine_map
from reluctant.extraction.memory import Memory
from reluctant.extraction.method import Candidate, StageFailed
from reluctant.geometry import DistanceNoise, Frame
from reluctant.geometry.row_space import row_space
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting

__all__ = ["AnyDepth"]

MANY_INPUTS = 50  # from here on it pays to look for the directions that matter first
FIRST_LINES = 8


LIMITS = (
    "Layers after the first are known where their creases were met. Answers were checked out to ten times the scale of "
    "use; farther out, or on a few inputs in a thousand, a neuron may be missing. Neurons that no answer tells apart "
    "stand as often as they are needed, so layers may be wider than the target's."
)


@dataclass(frozen=True)
class AnyDepth:
    """Exact extraction of a network of any depth and any widths, by following creases."""

    def run(
        self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]
    ) -> Candidate:
        """One attempt; raises StageFailed where it gets stuck."""
        frame = _frame(oracle, noise, rng)
        memory = Memory()
        ask = memory.listening(lambda rows: oracle.query(frame.points(rows)))
        store = KinkStore(ask, len(frame.basis), noise, rng)
        with oracle.stage("lines"):
            store.scan_random(FIRST_LINES)
        if not len(store.kinks):
            return Candidate(affine_map(oracle))
        ladder = Ladder(oracle, Asker(ask, noise, rng, store.scale, store.spacing()), store)

        def is_last(known: KnownLayers) -> bool:
            keep(_lifted_network(without_outputs(known, oracle.outputs), frame))
            return mostly_explained(known, memory, rng)

        known = _all_layers(ladder, memory, rng, is_last, lambda part: _lifted_network(part, frame))
        rare = rows_on_rare_sides(known, memory, rng)
        if len(rare):
            with oracle.stage("fit", expected=len(rare)):
                ask(rare)
        rows, answers = rows_for_fit(known, memory, rng)
        network = oriented_network(known, fit_readout(known, rows, answers), rows, answers)
        network = polish_to_all(network, rows, answers, memory, noise)
        certificate = certify(network, known, rows, ladder.asker)
        network = _lifted_network(network, frame)
        if len(frame.basis) < oracle.dim and network.skip is None:
            network = refine_first_weights(oracle, network, noise, rng)
        return Candidate(network, certificate=certificate, limits=LIMITS)


def _all_layers(
    ladder: Ladder,
    memory: Memory,
    rng: np.random.Generator,
    is_last: Callable[[KnownLayers], bool],
    lifted: Callable[[ReLUNetwork], ReLUNetwork],
) -> KnownLayers:
    """All layers; a failure says which were found, with the output that suits them best if none seemed missing."""
    partial = None
    try:
        ladder.climb(is_last)
        partial = _best_guess(ladder.known(), memory, rng)
        return complete(ladder, memory, rng)
    except StageFailed as failure:
        if partial is None and ladder.searches:
            partial = without_outputs(ladder.known(), ladder.oracle.outputs)
        failure.partial = None if partial is None else lifted(partial)
        raise


def _best_guess(known: KnownLayers, memory: Memory, rng: np.random.Generator) -> ReLUNetwork:
    """The layers as they are, with the outputs that fit most answers."""
    rows, answers = rows_for_fit(known, memory, rng)
    return oriented_network(known, fit_readout(known, rows, answers), rows, answers)


def _frame(oracle: Counting, noise: DistanceNoise, rng: np.random.Generator) -> Frame:
    """The directions that matter, where inputs are many; else all."""
    if oracle.dim < MANY_INPUTS:
        return Frame(np.zeros(oracle.dim), np.eye(oracle.dim))
    with oracle.stage("row space"):
        found = row_space(oracle.query, oracle.dim, noise, rng)
    return found.frame


def _lifted_network(network: ReLUNetwork, frame: Frame) -> ReLUNetwork:
    """The network as a function of the input itself."""
    first, *others = network.weights
    skip = None if network.skip is None else network.skip @ frame.basis
    return ReLUNetwork([first @ frame.basis, *others], network.biases, skip)
