"""`compare`: network against network by weights; only this module and `testing` see true weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.messages import Diagnosis
from reluctant.networks import Matching, ReLUNetwork, match
from reluctant.numerics import FloatArray, Rng, as_generator

__all__ = ["Alignment", "compare"]


@dataclass(frozen=True)
class Alignment:
    """A recovered network beside the true one.

    output_error: largest difference over random inputs, relative to the output's standard deviation.
    matching: neurons paired up to order and scale, None if the widths differ.
    """

    widths: tuple[int, ...]
    true_widths: tuple[int, ...]
    output_error: float
    matching: Matching | None

    def __str__(self) -> str:
        shapes = {"widths": self.widths, "true_widths": self.true_widths}
        errors = {"output_error": self.output_error, "parameter_error": self.parameter_error}
        return str(Diagnosis("widths-differ" if self.matching is None else "networks-differ-by", errors | shapes))

    @property
    def parameter_error(self) -> float:
        """Largest parameter error after matching; inf if the widths differ."""
        return float("inf") if self.matching is None else self.matching.max_error

    @property
    def neuron_errors(self) -> tuple[FloatArray, ...]:
        """Errors of every matched hidden neuron, layer by layer."""
        return () if self.matching is None else self.matching.errors


def compare(network: ReLUNetwork, true: ReLUNetwork, *, rng: Rng = 0, points: int = 10_000) -> Alignment:
    """Measure a network against the true one on random inputs and parameter by parameter."""
    rows = as_generator(rng).standard_normal((points, true.dim))
    truth = true(rows)
    spread = truth.std(axis=0)
    error = float((np.abs(network(rows) - truth) / np.where(spread > 0, spread, 1.0)).max())
    return Alignment(network.canonical().widths, true.canonical().widths, error, match(network, true))
