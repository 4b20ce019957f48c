"""Weights and outputs of the neurons on a ray, from gradients between its creases.

From one piece to a later one the gradient changes by Σ a_j w_jᵀ over the neurons between. With m outputs one
change serves several neurons if their outputs a_j are known from the bends on the ray; from gradients alone
they could not be told apart. A neuron by itself gets its outputs from the change as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.bounded.pieces import Group, directions_of_bends
from reluctant.extraction.bounded.rays import Ray
from reluctant.extraction.linear import solve_weighted
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.numerics import FloatArray

__all__ = ["Factors", "factorise"]


@dataclass(frozen=True)
class Factors:
    """Neurons at these creases of a ray: weights (n, d), outputs (m, n) of norm one, and the noise of both."""

    creases: IntArray
    weights: FloatArray
    outputs: FloatArray
    weight_sd: FloatArray
    output_sd: FloatArray

    def chosen(self, which: BoolArray) -> Factors:
        """Some of them."""
        return Factors(
            self.creases[which], self.weights[which], self.outputs[:, which], self.weight_sd[which],
            self.output_sd[which],
        )  # fmt: skip


def factorise(groups: list[Group], changes: FloatArray, sd: FloatArray, ray: Ray) -> Factors:
    """Neurons of all groups from the changes (groups, m, d) of the gradient over each."""
    outputs, output_sd = directions_of_bends(ray)
    weights, weight_sd = np.empty((len(ray), changes.shape[2])), np.empty(len(ray))
    for group, change, change_sd in zip(groups, changes, sd, strict=True):
        which = group.neurons
        if len(which) == 1:
            outputs[:, which[0]], output_sd[which] = _of_rank_one(change, change_sd, outputs[:, which[0]])
        solution = solve_weighted(outputs[:, which], np.ones(len(outputs)))
        weights[which] = solution @ change
        mixed = output_sd[which] @ np.sqrt((weights[which] ** 2).mean(axis=1)) if len(which) > 1 else 0.0
        weight_sd[which] = np.linalg.norm(solution, axis=1) * np.hypot(change_sd, mixed)
    found = np.concatenate([group.neurons for group in groups])
    return Factors(found, weights[found], outputs[:, found], weight_sd[found], output_sd[found])


def _of_rank_one(change: FloatArray, sd: float, rough: FloatArray) -> tuple[FloatArray, float]:
    """Outputs (m,) of the one neuron between two gradients, and their noise."""
    left, sizes, _ = np.linalg.svd(change, full_matrices=False)
    outputs = left[:, 0] * np.sign(left[:, 0] @ rough)
    return outputs, 0.0 if len(rough) == 1 else sd / float(sizes[0])
