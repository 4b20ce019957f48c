"""Planted networks: random ones whose creases are known. Tests and benchmarks share them.

Families of such that break general position are in `reluctant.testing.degenerate` and `reluctant.testing.worst_case`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import Rng, as_generator

__all__ = ["Family", "planted"]

Family: TypeAlias = Callable[[Rng], ReLUNetwork]


def planted(
    widths: Sequence[int],
    rng: Rng = 0,
    *,
    bias: float = 1.0,
    skip: bool = False,
    zero_output_bias: bool = False,
) -> ReLUNetwork:
    """A Gaussian network of these widths, scaled so that values stay of order one through the layers."""
    generator = as_generator(rng)
    pairs = list(pairwise(widths))
    weights = [generator.standard_normal((out, into)) * np.sqrt(2 / into) for into, out in pairs]
    biases = [bias * generator.standard_normal(out) for _, out in pairs]
    if zero_output_bias:
        biases[-1] = np.zeros(widths[-1])
    affine = generator.standard_normal((widths[-1], widths[0])) / np.sqrt(widths[0]) if skip else None
    return ReLUNetwork(weights, biases, affine)
