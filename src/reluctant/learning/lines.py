"""Lines through what a network does not explain, and the hyperplanes they meet, until it explains enough."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reluctant.extraction.memory import Memory, remember
from reluctant.extraction.polish import MOST_PARAMETERS, polish
from reluctant.geometry import DistanceNoise, Lines
from reluctant.learning.checks import Drawn, check_network
from reluctant.learning.following import follow
from reluctant.learning.gates import look_for_gate
from reluctant.learning.hyperplanes import Hyperplanes
from reluctant.learning.looking import line_through, look_along
from reluctant.learning.models import Model, fitted_model
from reluctant.oracles import Counting

__all__ = ["improve_by_lines"]

MOST_LINES = 40
WITHOUT_ANY = 2  # a line that brings no hyperplane counts for so many that make nothing better
BETTER = 0.5  # of the error before: what counts as better
COMPLETE = 1e-4  # error of a network that lacks no neuron: the digits of its hyperplanes are what is wrong
FARTHEST_FITTED = 5.0  # from the origin, in typical inputs, may an answer be to which all parameters are fitted
AMONG_WORST = 8  # unexplained points of which one is taken


def improve_by_lines(
    oracle: Counting,
    model: Model,
    drawn: Drawn,
    noise: DistanceNoise,
    rng: np.random.Generator,
    *,
    eps: float,
    patience: int,
    keep: Callable[[Model], Model],
) -> Model:
    """Add the hyperplanes of one line after the other; the best model met on the way.

    Ends at an error of eps, or after `patience` lines in a row that make nothing better; `keep` is told of each that
    is the best so far.

    Cost: for each line what `look_along` and `follow` ask, and for each that brings something a new fit.
    """
    best, waiting = model, 0
    oracle, memory = remember(oracle)
    for _ in range(MOST_LINES):
        if best.good_for(eps) or not len(model.checked.unexplained) or waiting >= patience:
            break
        found = _new_planes(oracle, model, noise, rng)
        if len(found):
            model = fitted_model(oracle, model.planes + found, drawn, noise, rng)
            model = model if model.good_for(eps) else _polished(oracle, model, memory, drawn, noise, rng)
        better = model.checked.accuracy.error < BETTER * best.checked.accuracy.error
        waiting = 0 if better else waiting + (1 if len(found) else WITHOUT_ANY)
        best = keep(model) if model.better_than(best) else best
    return best


def _polished(
    oracle: Counting, model: Model, memory: Memory, drawn: Drawn, noise: DistanceNoise, rng: np.random.Generator
) -> Model:
    """All parameters fitted to all answers, if nothing is missing any more and that is better."""
    if model.checked.accuracy.error > COMPLETE or model.network.parameters > MOST_PARAMETERS:
        return model
    network = polish(model.network, *memory.near(FARTHEST_FITTED * np.sqrt(oracle.dim)), noise)
    polished = Model(network, model.planes, check_network(oracle, network, drawn, noise, rng))
    return polished if polished.better_than(model) else model


def _new_planes(oracle: Counting, model: Model, noise: DistanceNoise, rng: np.random.Generator) -> Hyperplanes:
    """Hyperplanes on a line through one of the worst points that are not among the model's."""
    worst = min(AMONG_WORST, model.checked.standing_out)
    line = line_through(model.checked.rows[rng.choice(model.checked.unexplained[:worst])], rng)
    bends = model.planes.chosen(~model.planes.gate)  # a gate hides creases that may be told apart after all
    with oracle.stage("lines"):
        looked = look_along(oracle.query, line, noise, rng, bends)
    with oracle.stage("hyperplanes"):
        found = follow(oracle.query, looked.planes, looked.noise, rng)
    found = found.chosen(~found.close_to(bends))
    return found if len(found) else _new_gate(oracle, model, line, noise, rng)


def _new_gate(
    oracle: Counting, model: Model, line: Lines, noise: DistanceNoise, rng: np.random.Generator
) -> Hyperplanes:
    """A step on a line whose creases could not be followed, or nothing."""
    with oracle.stage("gates"):
        gate = look_for_gate(lambda rows: oracle.query(rows) - model.network(rows), line, noise, rng)
    none = model.planes.chosen(np.zeros(len(model.planes), dtype=bool))
    return none if gate is None or gate.close_to(model.planes).any() else gate
