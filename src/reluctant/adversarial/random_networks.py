"""The random networks of the paper on adversarial examples: no biases, every layer halves the square of its input."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.numerics import Rng, as_generator

__all__ = ["random_network"]


def random_network(widths: Sequence[int], rng: Rng = 0) -> ReLUNetwork:
    """NN-DEF: weights N(0, 1/width of the layer below), biases zero; any widths, narrow ones are bottlenecks.

    Arguments:
        widths: inputs, hidden layers, outputs: (1000, 1000, 20, 1000, 1).
    """
    if len(widths) < 2 or min(widths) < 1:
        raise InvalidInput.about("widths", got=tuple(widths), expected="two or more numbers above 0")
    generator, pairs = as_generator(rng), list(pairwise(widths))
    weights = [generator.standard_normal((out, into)) / np.sqrt(into) for into, out in pairs]
    return ReLUNetwork(weights, [np.zeros(out) for _, out in pairs])
