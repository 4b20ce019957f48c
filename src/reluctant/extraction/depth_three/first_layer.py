"""The first layer of a target whose first layer can be inverted: hyperplanes, signs, refinement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.depth_three.refine import refine_rows
from reluctant.extraction.depth_three.search import find_hyperplanes
from reluctant.extraction.depth_three.signs import orient_hyperplanes
from reluctant.geometry import DistanceNoise
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["FirstLayer", "find_first_layer"]


@dataclass(frozen=True)
class FirstLayer:
    """Hidden values max(weights @ x + biases, 0), the rows of norm one.

    condition: of the weights; digits of the layers above are lost by it. sign_margins: how far from zero each
    neuron's part in the gradients is on its inactive side, relative to the other. row_errors: to be expected.
    """

    weights: FloatArray  # (n, d)
    biases: FloatArray  # (n,)
    condition: float
    sign_margins: FloatArray  # (n,)
    row_errors: FloatArray  # (n,)

    def __len__(self) -> int:
        return len(self.biases)


def find_first_layer(oracle: Counting, noise: DistanceNoise, rng: np.random.Generator) -> FirstLayer:
    """Recover the first layer; raises StageFailed. Cost: about d rows a neuron, and some 100 a neuron besides."""
    planes, margins = orient_hyperplanes(find_hyperplanes(oracle, noise, rng))
    refined = refine_rows(oracle, planes, noise, rng)
    singular = np.linalg.svd(refined.weights, compute_uv=False)
    return FirstLayer(refined.weights, refined.biases, float(singular[0] / singular[-1]), margins, refined.errors)
