"""`DepthThree`: first layer, top layers, rows again, fit; each stage may be repeated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

import numpy as np

from reluctant.extraction.bounded import Bounded
from reluctant.extraction.depth_three.first_layer import WORST_ROW, FirstLayer, find_first_layer
from reluctant.extraction.depth_three.rows_again import remeasure_rows
from reluctant.extraction.depth_three.top import compose, fit_above, recover_top
from reluctant.extraction.linear import remember
from reluctant.extraction.method import Candidate, Certificate, Method, StageFailed, check_settings
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting

T = TypeVar("T")


@dataclass(frozen=True)
class DepthThree(Method):
    """Exact extraction of f(x) = A max(V max(W x + b, 0) + c, 0) + e with at most as many rows of W as inputs.

    Assumes that the rows of W are independent. Any number of second-layer neurons and outputs.

    Arguments:
        fit_share: rows asked for every m parameters above the first weights, to fit them once more. 0 is frugal
            and measures only the poorest rows again; it costs about three digits.
        tries: how often each stage is tried with other random choices, without the stages before it.
        row_error: largest error to be expected of a first-layer row with which the layers above are looked for.
        exact_row: the same of a row that stays as it is where nothing is fitted. wanted_row: where upper layers are.
        inside: settings for the layers above, which are found on the hidden values of the first.
    """

    needs_space: ClassVar[bool] = True

    fit_share: float = 1.0
    tries: int = 3
    row_error: float = WORST_ROW
    exact_row: float = 1e-9
    wanted_row: float = 1.5e-13
    inside: Bounded = field(default_factory=Bounded)

    def __post_init__(self) -> None:
        check_settings(self, may_be_zero=("fit_share",))

    def run(
        self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]
    ) -> Candidate:
        """One attempt; raises StageFailed where it gets stuck."""
        layer = _again(lambda: find_first_layer(oracle, noise, rng, self.row_error), self.tries)
        keep(first_layer_alone(layer, oracle.outputs))
        remembering, memory = remember(oracle)
        top = _again(lambda: recover_top(remembering, layer, noise, rng, keep, self.inside), self.tries)
        network = compose(layer, top.network)
        keep(network)
        wanted = self.wanted_row if self.fit_share else self.exact_row
        network = remeasure_rows(oracle, network, layer.row_errors, noise, rng, wanted)
        fitted = fit_above(remembering, memory, network, noise, rng, self.fit_share)
        return replace(top, network=fitted, certificate=second_layer_certificate(top, layer, fitted))


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
        except StageFailed:
            continue
    return stage()
