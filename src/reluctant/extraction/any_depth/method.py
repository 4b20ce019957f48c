"""`AnyDepth`: row space, lines, layers one by one, completion, output layer, last digits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from reluctant.extraction.any_depth.completion import CHECK_DISTANCES, Completion, complete, wrong_share
from reluctant.extraction.any_depth.features import KnownLayers
from reluctant.extraction.any_depth.kinks import Asker, KinkStore
from reluctant.extraction.any_depth.layer import MOST_WRONG, Ladder, LayerLimits
from reluctant.extraction.any_depth.output_layer import (
    certify,
    fit_readout,
    fitted_top,
    oriented_network,
    polish_to_all,
    rows_for_fit,
    rows_on_rare_sides,
    without_outputs,
)
from reluctant.extraction.any_depth.search_space import SearchSpace
from reluctant.extraction.method import (
    Candidate,
    FittedTop,
    Hybrid,
    Keep,
    Memory,
    Method,
    OrientedHyperplanes,
    StageFailed,
    affine_map,
    check_settings,
)
from reluctant.geometry import DistanceNoise, Question
from reluctant.messages import Diagnosis, Notes
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray, one_blas_thread
from reluctant.oracles import Counting

LIMITS = Notes((Diagnosis("layers-where-met"),))


@dataclass(frozen=True)
class AnyDepth(Method):
    """Exact extraction of a network of any depth and any widths, by following creases.

    Arguments:
        first_lines: random lines to scan before the search for the first layer.
        many_inputs: with so many inputs or more the method first recovers the input subspace that matters.
        search: limits of the search for each layer.
        completion: limits of the search for missing neurons, after which the layers count as complete.
        fit_rounds: fits of all parameters. Each one adds the rows that the last fit missed.
        first: known hyperplanes of the first layer. The search then begins above them.
        through: inputs (n, d) that the network must also explain, such as those that contradicted an earlier one.
        lines_end: length of the lines, in typical inputs; None for as far as there are creases.
    """

    needs_space: ClassVar[bool] = True

    first_lines: int = 8
    many_inputs: int = 50
    search: LayerLimits = field(default_factory=LayerLimits)
    completion: Completion = field(default_factory=Completion)
    fit_rounds: int = 4
    lines_end: float | None = None
    first: OrientedHyperplanes | None = None
    through: FloatArray | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_settings(self, may_be_zero=("many_inputs", "fit_rounds"))

    def run(self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Keep) -> Candidate:
        """One attempt; raises StageFailed where it gets stuck. Its systems are small: more threads would wait."""
        with one_blas_thread():
            return self.searched(oracle, noise, rng, keep)

    def searched(self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Keep) -> Candidate:
        """The same in the threads there are."""
        if self.first is None:
            many = self.many_inputs if oracle.facts.domain.is_space else oracle.dim + 1
            space = SearchSpace.of(oracle, noise, rng, many)
        else:
            space = SearchSpace.around(self.first, oracle.dim)
        memory = Memory()
        ask = memory.listening(Question.of(oracle).within(space.frame, space.unit))
        domain = oracle.facts.domain.within_rounding(space.scale)
        store = KinkStore(ask, space.dim, space.noise(noise), rng, self.lines_end, domain)
        with oracle.stage("lines"):
            store.scan_random(self.first_lines)
            if self.through is not None:
                ask(space.coordinates(self.through))
        if not len(store.kinks):
            return Candidate(affine_map(oracle))
        asker = Asker(ask, store.noise, rng, store.scale, store.spacing(), domain)
        ladder = Ladder(oracle, asker, store, self.search, space.first)

        parts: list[Hybrid] = []

        def left_wrong(known: KnownLayers) -> float:
            keep(space.lifted(without_outputs(known, oracle.outputs)))
            share = wrong_share(known, memory, rng, self.completion)
            if share >= MOST_WRONG and not ladder.both:
                with oracle.stage("fitted top", expected=TOP_ROWS):
                    parts.append(_hybrid(space, known, memory, ask, rng))
                keep(parts[-1])
            return share

        known = _all_layers(ladder, memory, rng, self.completion, left_wrong, space.lifted, parts).with_both_halves()
        rare = rows_on_rare_sides(known, memory, rng)
        if len(rare):
            with oracle.stage("fit", expected=len(rare)):
                ask(rare)
        rows, answers = rows_for_fit(known, memory, rng)
        network = oriented_network(known, fit_readout(known, rows, answers), rows, answers)
        network = polish_to_all(network, rows, answers, memory, store.noise, self.fit_rounds)
        certificate = certify(network, known, rows, ladder.asker, CHECK_DISTANCES[-1] * store.scale)
        network = space.whole(oracle, network, noise, rng)
        return Candidate(network, certificate=certificate, limits=LIMITS)


def _all_layers(
    ladder: Ladder,
    memory: Memory,
    rng: np.random.Generator,
    completion: Completion,
    left_wrong: Callable[[KnownLayers], float],
    lifted: Callable[[ReLUNetwork], ReLUNetwork],
    parts: list[Hybrid],
) -> KnownLayers:
    """All layers; a failure says which were found, with the output that suits them best if none seemed missing."""
    partial = None
    try:
        ladder.climb(left_wrong)
        partial = _best_guess(ladder.known(), memory, rng)
        return complete(ladder, memory, rng, completion)
    except StageFailed as failure:
        if partial is None and parts:
            failure.partial = parts[-1]
        else:
            if partial is None and ladder.searches:
                partial = without_outputs(ladder.known(), ladder.oracle.outputs)
            failure.partial = None if partial is None else lifted(partial)
        raise


TOP_ROWS = 100  # fresh inputs that tell how far a fitted top is right


def _hybrid(
    space: SearchSpace,
    known: KnownLayers,
    memory: Memory,
    ask: Callable[[FloatArray], FloatArray],
    rng: np.random.Generator,
) -> Hybrid:
    """The layers that are certain, with the output that fits best, and how far it is right. Cost: 100 rows."""
    right_to = 1e-6  # of the deviation of the answers
    network = fitted_top(known, *rows_for_fit(known, memory, rng))
    rows = known.domain.sample(rng, TOP_ROWS, known.dim)
    answers = ask(rows)
    off = np.abs(network(rows) - answers).max(axis=1) / max(float(answers.std(axis=0).max()), DOUBLE.tiny)
    top = FittedTop(len(known.layers), float((off <= right_to).mean()), float(np.median(off)), TOP_ROWS)
    return Hybrid(space.lifted(network), top)


def _best_guess(known: KnownLayers, memory: Memory, rng: np.random.Generator) -> ReLUNetwork:
    """The layers as they are, with the outputs that fit most answers."""
    known = known.with_both_halves()
    rows, answers = rows_for_fit(known, memory, rng)
    return oriented_network(known, fit_readout(known, rows, answers), rows, answers)
