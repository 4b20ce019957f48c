"""DepthThree: first layer, top layers, rows again, fit; each stage is tried again by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.extraction.depth_three.first_layer import EXACT_ROW, FirstLayer, find_first_layer
from reluctant.extraction.depth_three.rows_again import WANTED_ERROR, remeasure_rows
from reluctant.extraction.depth_three.top import compose, fit_above, recover_top
from reluctant.extraction.memory import remember
from reluctant.extraction.method import Candidate, Certificate, StageFailed
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting

__all__ = ["DepthThree"]

STAGE_TRIES = 3  # of each stage

T = TypeVar("T")


@dataclass(frozen=True)
class DepthThree:
    """Exact extraction of f(x) = A max(V max(W x + b, 0) + c, 0) + e with at most as many rows of W as inputs.

    Assumes that the rows of W are independent. Any number of second-layer neurons and outputs.

    Arguments:
        fit_share: rows asked for every m parameters above the first weights, to fit them once more. 0 is frugal
            and measures only the poorest rows again; it costs about three digits.
    """

    fit_share: float = 1.0

    def __post_init__(self) -> None:
        if not self.fit_share >= 0:
            raise InvalidInput.about("fit_share", got=self.fit_share, expected="a number of at least 0")

    def run(
        self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Callable[[ReLUNetwork], None]
    ) -> Candidate:
        """One attempt; raises StageFailed where it gets stuck."""
        layer = _again(lambda: find_first_layer(oracle, noise, rng))
        keep(first_layer_alone(layer, oracle.outputs))
        remembering, memory = remember(oracle)
        top = _again(lambda: recover_top(remembering, layer, noise, rng, keep))
        network = compose(layer, top.network)
        keep(network)
        wanted = WANTED_ERROR if self.fit_share else EXACT_ROW
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


def _again(stage: Callable[[], T]) -> T:
    """Hard luck in a stage is tried again with other random choices, without repeating the stages before."""
    for _ in range(STAGE_TRIES - 1):
        try:
            return stage()
        except StageFailed:
            continue
    return stage()
