"""`DepthThree`: first layer, top layers, rows again, fit; each stage may be repeated.

The hidden values y ≥ 0 are those of the input x = W⁺(y - b), for W has a right inverse W⁺ (Section 3.5.4 of the
extraction paper). So the layers above are a target of their own on the positive orthant, in the same account, and
depth two inside a domain recovers them. At the end everything above the first weights is fitted to answers in input
space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np

from reluctant.domains import Domain
from reluctant.extraction.bounded import BOUNDED, Bounded, recover_inside
from reluctant.extraction.depth_three.first_layer import WORST_ROW, FirstLayer, find_first_layer
from reluctant.extraction.depth_three.mirrored_pairs import joined_sides
from reluctant.extraction.depth_three.rows import remeasure_rows
from reluctant.extraction.method import Candidate, Certificate, Memory, Method, StageFailed, check_settings, remember
from reluctant.extraction.orientation import always_active, orient
from reluctant.fitting.network_fit import MOST_PARAMETERS, polish
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting, Explained, Facts, Oracle, Wrapper
from reluctant.oracles.explanations import Rewritten

T = TypeVar("T")


@dataclass(frozen=True)
class DepthThree(Method):
    """Exact extraction of f(x) = A max(V max(W x + b, 0) + c, 0) + e with at most as many rows of W as inputs.

    Assumes that the rows of W are independent. Any number of second-layer neurons and outputs.

    Arguments:
        fit_share: rows asked for every m parameters above the first weights, to fit them once more. 0 is frugal
            and measures only the poorest rows again; it costs about three digits.
        tries: how often each stage is tried with other random choices, without the stages before it.
        starts: how often the method begins again with the first layer.
        explained: error at random inputs below which the method does not begin again.
        row_error: largest expected error of a first-layer row at which the search above it begins.
        exact_row: the same for a row that no fit improves. wanted_row: for a row that a later fit improves.
        inside: settings for the layers above, which the method recovers from the hidden values of the first.
    """

    needs_space: ClassVar[bool] = True

    fit_share: float = 1.0
    tries: int = 3
    starts: int = 2
    explained: float = 1e-6
    row_error: float = WORST_ROW
    exact_row: float = 1e-9
    wanted_row: float = 1.5e-13
    inside: Bounded = BOUNDED

    def __post_init__(self) -> None:
        check_settings(self, may_be_zero=("fit_share",))

    def run(
        self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]
    ) -> Candidate:
        """One attempt; raises StageFailed where it gets stuck.

        A first layer that lacks a neuron shows in the layers above, or in answers that the network does not explain:
        then it is looked for anew.
        """
        best: tuple[Candidate, float] | None = None
        for left in reversed(range(self.starts)):
            try:
                found = self._once(oracle, noise, rng, keep)
            except StageFailed as failure:
                if best is None and (failure.certain or not left):
                    raise
                continue
            best = found if best is None or found[1] < best[1] else best
            if best[1] < self.explained:
                break
        assert best is not None
        return best[0]

    def _once(
        self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]
    ) -> tuple[Candidate, float]:
        """A network, and by how much it is off where it was fitted, in deviations of the answers."""
        layer = _again(lambda: find_first_layer(oracle, noise, rng, self.row_error), self.tries)
        paired = len(layer.mirrored) > 0
        keep(first_layer_alone(layer, oracle.outputs))
        remembering, memory = remember(oracle)

        def above(layer: FirstLayer) -> Candidate:
            return _again(lambda: recover_top(remembering, layer, noise, rng, keep, self.inside), self.tries)

        top = above(layer)
        if paired:
            others = [above(layer.turned(int(neuron))).network for neuron in layer.mirrored]
            top = replace(top, network=joined_sides(layer, top.network, others, *memory.everything()))
            layer = layer.with_pairs()
        network = compose(layer, top.network)
        keep(network)
        if not paired:
            wanted = self.wanted_row if self.fit_share else self.exact_row
            network = remeasure_rows(oracle, network, layer.row_errors, noise, rng, wanted)
        fitted = fit_above(remembering, memory, network, noise, rng, self.fit_share)
        candidate = replace(top, network=fitted, certificate=second_layer_certificate(top, layer, fitted))
        return candidate, largest_deviation(fitted, memory)


def largest_deviation(network: ReLUNetwork, memory: Memory) -> float:
    """By how much a network is off at the last rows that were asked, in deviations of the answers there."""
    rows, answers = memory.rows[-1], memory.answers[-1]
    return float(np.abs(network(rows) - answers).max() / max(float(answers.std(axis=0).max()), DOUBLE.tiny))


def second_layer_certificate(top: Candidate, layer: FirstLayer, network: ReLUNetwork) -> Certificate | None:
    """What the top layers' certificate says, with what the first layer adds."""
    if top.certificate is None:
        return None
    sums = network.widths[2] - top.certificate.width if network.depth == 3 else 0
    return replace(top.certificate, condition=layer.condition, sums=sums, layer="second")


def first_layer_alone(layer: FirstLayer, outputs: int) -> ReLUNetwork:
    """A part: the first layer, with nothing known above it."""
    return ReLUNetwork([layer.weights, np.zeros((outputs, len(layer)))], [layer.biases, np.zeros(outputs)])


def _again(stage: Callable[[], T], tries: int) -> T:
    """Hard luck in a stage is tried again with other random choices, without repeating the stages before."""
    for _ in range(tries - 1):
        try:
            return stage()
        except StageFailed as failure:
            if failure.certain:
                raise
    return stage()


LEAST_HIDDEN = 1e-6  # hidden value: on a hyperplane itself nobody could say on which side rounding puts an input


class Peeled(Wrapper):
    """Answers hidden values of the first layer as the target answers an input that has them."""

    def __init__(self, inner: Oracle, layer: FirstLayer) -> None:
        super().__init__(inner)
        self.layer = layer
        self._inverse = np.linalg.pinv(layer.weights)

    @property
    def facts(self) -> Facts:
        """As many inputs as the first layer has neurons, all of them positive."""
        orthant = Domain(LEAST_HIDDEN, np.inf)
        return replace(super().facts, dim=len(self.layer), domain=orthant, name=f"{self.inner.facts.name}, peeled")

    def inputs(self, hidden: FloatArray) -> FloatArray:
        """Inputs (n, d) whose hidden values are these rows."""
        return (hidden - self.layer.biases) @ self._inverse.T

    def answer(self, rows: FloatArray) -> FloatArray:
        """Ask the target at inputs with these hidden values."""
        return self.inner.answer(self.inputs(rows))

    def explaining(self, inner: Oracle) -> Oracle:
        """Gradients along hidden values."""
        return Rewritten(self, inner, self._along_hidden, self.inputs)

    def _along_hidden(self, found: Explained) -> Explained:
        return Explained(found.values, found.gradients @ self._inverse)


def peel(oracle: Counting, layer: FirstLayer) -> Counting:
    """The opened target without its first layer, with the same ledger."""
    return Counting(Peeled(oracle.inner, layer), oracle.ledger)


def recover_top(
    oracle: Counting,
    layer: FirstLayer,
    noise: DistanceNoise,
    rng: np.random.Generator,
    keep: Callable[[ReLUNetwork], None],
    settings: Bounded,
) -> Candidate:
    """The layers above as a network of hidden values, by depth two on the positive orthant."""
    peeled = peel(oracle, layer)

    def keep_whole(top: ReLUNetwork) -> None:
        keep(compose(layer, top))

    return recover_inside(peeled, hidden_noise(noise, layer), rng, keep_whole, settings)


def hidden_noise(noise: DistanceNoise, layer: FirstLayer) -> DistanceNoise:
    """Noise of answers by the size of hidden values: inputs grow with them by the inverse of the weights."""
    inverse = np.linalg.pinv(layer.weights)
    stretch = float(np.linalg.norm(inverse) / np.sqrt(len(layer)))
    origin = np.linalg.norm(inverse @ layer.biases)
    return DistanceNoise(float(noise.at(np.array([origin]))[0]), noise.growth * stretch)


def compose(layer: FirstLayer, top: ReLUNetwork) -> ReLUNetwork:
    """First layer and top as one network without skip term."""
    top = with_always_active(orient(top))
    return ReLUNetwork([layer.weights, *top.weights], [layer.biases, *top.biases])


def with_always_active(top: ReLUNetwork) -> ReLUNetwork:
    """A network of values that are never negative, its skip term carried by neurons that are always on."""
    vanished_skip = 1e-12  # of the largest weight: a skip term that is rounding
    if top.skip is None or top.depth != 2:
        return top
    (v, a), (c, e) = top.weights, top.biases
    largest = max(float(np.abs(v).max(initial=0)), float(np.abs(top.skip).max(initial=0)))
    rows, outputs = always_active(top.skip, vanished_skip * largest)
    weights = [np.vstack([v, rows]), np.column_stack([a, outputs])]
    return ReLUNetwork(weights, [np.concatenate([c, np.zeros(len(rows))]), e])


def fit_above(
    oracle: Counting,
    memory: Memory,
    network: ReLUNetwork,
    noise: DistanceNoise,
    rng: np.random.Generator,
    share: float,
) -> ReLUNetwork:
    """Fit biases and upper layers to all answers of the top stages and new ones at random inputs.

    The first weights are known better than any fit would tell; its biases come from single creases and are not.
    Cost: `share` rows for every m parameters that are fitted.
    """
    smallest_input, largest_input = 0.5, 4.0  # inputs, in units of the scale of use
    parameters = sum(part.size for part in (*network.weights[1:], *network.biases))
    count = int(share * parameters / oracle.outputs)
    if parameters > MOST_PARAMETERS or not count:
        return network
    scales = np.exp(rng.uniform(np.log(smallest_input), np.log(largest_input), (count, 1)))
    with oracle.stage("fit", expected=count):
        oracle.query(scales * rng.standard_normal((count, oracle.dim)))
    return polish(network, *memory.everything(), noise, first_weights=False)
