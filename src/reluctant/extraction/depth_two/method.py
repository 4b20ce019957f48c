"""`DepthTwo`: the stages for one hidden layer, in order.

Line, scaffold, probe, base points, main pass, outputs, slivers, biases. A network of up to 1300 parameters measures
all directions on the line and is then fitted to every answer; a bounded domain goes to `bounded`, a target that answers
gradients to `jump_lines`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from reluctant.extraction.bounded import BOUNDED, Bounded, recover_inside
from reluctant.extraction.depth_two.assembly import (
    assemble,
    check_digits,
    close_pairs,
    refine_outputs,
    refine_slivers,
    refit_biases,
)
from reluctant.extraction.depth_two.crowded_line import look_again, tell_close_creases_apart
from reluctant.extraction.depth_two.jump_lines import JumpLines, recover_from_gradients
from reluctant.extraction.depth_two.main_pass import (
    MAIN_PASS,
    BaseGradients,
    choose_base_points,
    measure_gradients,
)
from reluctant.extraction.depth_two.other_line import seen_from_another_line
from reluctant.extraction.depth_two.scaffold import (
    CROWD,
    NoCrease,
    Regions,
    grow_scaffold,
    neurons_on_a_line,
    probe_subspace,
)
from reluctant.extraction.method import (
    Candidate,
    Certificate,
    Keep,
    Memory,
    Method,
    Shows,
    StageFailed,
    affine_map,
    check_settings,
    remember,
)
from reluctant.fitting.network_fit import polish
from reluctant.geometry import DistanceNoise, FramedNetwork
from reluctant.geometry.lines import FAR_END
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting


@dataclass(frozen=True)
class DepthTwo(Method):
    """Exact extraction of f(x) = A max(W x + b, 0) + S x + c, any width, unknown width.

    Assumes that a random line separates the creases of different neurons. On a bounded domain it asks nothing
    outside, and the network has only neurons that bend the function inside.

    Arguments:
        directions: dimensions of the subspace of base points, besides the line. More give longer steps and so
            more digits; each costs a row a region. None takes five, or ten for wide
            networks, several outputs and thousands of inputs, where that is a small part of the whole, else three.
        lines: how many random lines are scanned until one shows creases that are apart.
        other_lines: how many lines besides the first are scanned in a crowd of creases.
        polished_parameters: up to so many parameters the line measures all directions, and a fit to every answer
            replaces the main pass.
        polished_share: random inputs for each bias if that fit follows. bias_share: if it does not.
        spread: share of each piece of the line over which the rows of these directions lie. They then read the whole
            line, and meet ridges that its creases do not show.
        random_error: largest error at random inputs before that fit, of the answers' deviation.
        probe_points, probe_error: random points of the subspace that the model must explain before the main pass,
            and the largest error there, of the answers' deviation.
        repairs: how often the main pass shortens steps that cross a crease.
        weight_error: largest error of a weight, of the typical length of a neuron's weights. Beyond it neurons are too
            similar to separate.
        inside: settings for a bounded domain.
        by_gradients: settings for a target that answers gradients.
    """

    reads_gradients: ClassVar[bool] = True
    depth_known_from: ClassVar[str] = MAIN_PASS
    crowd: ClassVar[int] = CROWD  # creases on a line, from which on some are too close to each other

    directions: int | None = None
    lines: int = 5
    other_lines: int = 4
    polished_parameters: int = 1300
    polished_share: float = 0.8
    bias_share: float = 1.5
    spread: float = 0.5
    random_error: float = 1e-3
    probe_points: int = 16
    probe_error: float = 1e-4
    repairs: int = 6
    weight_error: float = 1e-8
    inside: Bounded = BOUNDED
    by_gradients: JumpLines = field(default_factory=JumpLines)

    def __post_init__(self) -> None:
        check_settings(self, may_be_zero=("other_lines", "polished_parameters", "spread"))

    def run(self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Keep) -> Candidate:
        """One attempt; raises StageFailed where it gets stuck."""
        if oracle.explained is not None:
            return recover_from_gradients(oracle, noise, rng, keep, self.by_gradients)
        most_remembered = 20_000  # rows: many times what a network with so few parameters takes
        if not oracle.facts.domain.is_space:
            return recover_inside(oracle, noise, rng, keep, self.inside)
        remembering, memory = remember(oracle, most_remembered)
        try:
            on_line, regions = neurons_on_a_line(remembering, noise, rng, lines=self.lines)
        except NoCrease:
            return Candidate(affine_map(oracle))
        keep(on_line)
        parameters = on_line.neurons * (oracle.dim + 1 + oracle.outputs)
        if parameters > self.polished_parameters:
            return _ByBasePoints(oracle, noise, rng, keep, self).run(on_line, regions)
        known = grow_scaffold(remembering, on_line, regions, oracle.dim - 1, noise, rng, spread=self.spread)
        keep(known)
        fitted = refit_biases(remembering, known.lifted(), rng, share=self.polished_share)
        _check_random_inputs(fitted, memory, self.random_error)
        network = polish(fitted, *memory.everything(), noise, thorough=True)
        return Candidate(network, certificate=_certificate(on_line, known.weight_sd, oracle.dim))


@dataclass(frozen=True)
class _ByBasePoints:
    """The stages after the line: neurons in a few more directions, base points there, gradients from each."""

    oracle: Counting
    noise: DistanceNoise
    rng: np.random.Generator
    keep: Keep
    settings: DepthTwo

    def run(self, on_line: FramedNetwork, regions: Regions) -> Candidate:
        """All of them."""
        known = self.grown(on_line, regions)
        if known.neurons >= CROWD and self.oracle.outputs == 1:
            known, measured = self.measured_in_a_crowd(known, regions)
        else:
            measured = self.measured(known, regions)
        (network, errors), held_out = assemble(known, measured), None
        self.keep(network)
        if self.oracle.outputs > 1:
            outputs, held_out = refine_outputs(self.oracle, network, measured)
            network, errors = assemble(known, measured, outputs)
        pairs = close_pairs(network, errors)
        if pairs:
            # What was kept was asked near the slivers' points; verification has to look elsewhere too.
            network, errors = refine_slivers(self.oracle, network, errors, pairs, measured, self.noise, self.rng)
            held_out = None
        check_digits(network, errors, self.settings.weight_error)
        fitted = refit_biases(self.oracle, network, self.rng, self.settings.bias_share)
        return Candidate(fitted, held_out, _certificate(on_line, errors, self.oracle.dim))

    def grown(self, on_line: FramedNetwork, regions: Regions) -> FramedNetwork:
        """The neurons on the line, in a few more directions."""
        dim, outputs = self.oracle.dim, self.oracle.outputs
        directions = min(self.settings.directions or directions_worth(dim, outputs, on_line.neurons), dim - 1)
        crowded = on_line.neurons >= CROWD  # rows that are written out, and little room between creases
        spread = 0.0 if crowded else self.settings.spread
        return grow_scaffold(self.oracle, on_line, regions, directions, self.noise, self.rng, spread=spread)

    def measured(self, known: FramedNetwork, regions: Regions) -> BaseGradients:
        """Gradients at base points, if the known part explains random points."""
        self.keep(known)
        settings, crowded = self.settings, known.neurons >= CROWD
        points, largest = settings.probe_points, settings.probe_error
        probe_subspace(self.oracle, known, self.rng, points=points, largest=largest, crowded=crowded)
        base = choose_base_points(known, regions, self.noise, self.rng, self.oracle.arrays)
        return measure_gradients(self.oracle, known, base, self.noise, self.rng, settings.repairs)

    def measured_in_a_crowd(self, known: FramedNetwork, regions: Regions) -> tuple[FramedNetwork, BaseGradients]:
        """The known part, and gradients at base points.

        A crowded line shows some neurons badly and hides others. These are looked for beside it, then on other lines
        in the same directions: all of that costs little, beside a main pass.
        """
        failures = []
        from_another = partial(seen_from_another_line, lines=self.settings.lines)
        for look in (None, tell_close_creases_apart, *(from_another,) * self.settings.other_lines):
            try:
                if look is not None:
                    known = look(self.oracle, known, self.noise, self.rng)
                known = look_again(self.oracle, known, known.reach(regions.scale), self.noise, self.rng)
                return known, self.measured(known, regions)
            except StageFailed as failure:
                if failure.stage == MAIN_PASS:
                    raise
                failures.append(failure)
        raise failures[-1]


def directions_worth(dim: int, outputs: int, neurons: int) -> int:
    """How many dimensions of the subspace are worth their rows, besides the line."""
    few_directions, more_directions, most_directions = 3, 5, 10
    many_inputs = 500  # from here on a direction costs less than 0.2 % of the main pass
    most_inputs = 2000  # from here on ten directions cost less than 0.5 % of it
    wide_layer = 500  # from here on there is little room between creases, and more directions have more of it
    worth_ten = outputs > 1 or neurons >= wide_layer or dim >= most_inputs
    generous = most_directions if worth_ten else more_directions
    return generous if dim >= many_inputs else few_directions


def _check_random_inputs(network: ReLUNetwork, memory: Memory, largest: float) -> None:
    """The answers that biases were fitted to come from all of input space: no other kind of target explains them."""
    rows, answers = memory.rows[-1], memory.answers[-1]
    spread, off = float(answers.std()), float(np.abs(answers - network(rows)).max())
    error = off / spread if spread > 0 else np.inf  # answers that never change say nothing
    if not error < largest:
        reason = "random inputs are not explained by the creases of a line"
        raise StageFailed("biases", reason, number=error, limit=largest, partial=network, shows=Shows.OTHER_CREASES)


def _certificate(on_line: FramedNetwork, weight_errors: FloatArray, dim: int) -> Certificate:
    resolution = DOUBLE.bend * float(np.median(on_line.weight_sd))
    return Certificate(weight_errors, resolution, FAR_END * float(np.sqrt(dim)))
