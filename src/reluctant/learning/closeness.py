"""Neurons that no search on a line tells apart: Sections 3.2 to 3.6 of "Efficiently Learning Any One Hidden Layer
ReLU Network From Queries" (Chen, Klivans and Meka, 2021).

A neuron (v, b) is the function max(⟨v, x⟩ - b, 0): b is a threshold, the negative of a bias. Neurons are rows v
(n, d) with thresholds b (n,) and signs s (n,) of their outputs.

The corner case. What a search sees of a cluster of close neurons is the sum (v*, b*) of the changes at all of its
kinks. Where that is not small it stands for the whole cluster (Lemma 3.21, 2.). Where the neurons cancel it is
close to zero and says nothing about where they are, but then the cluster is nearly an affine function (Lemma
3.19). Nearly as measured by the square error: max(⟨v, x⟩ - b, 0) - max(⟨v', x⟩ - b', 0) with v and v' at an angle
θ is the affine function ⟨v - v', x⟩ - (b - b') on one side of the hyperplane and zero on the other. Both are of
size θ, so is the error of ℓ, and so is the cluster itself: ℓ is right for ε well above θ² and useless below.
"""

from __future__ import annotations

import numpy as np

from reluctant.extraction.paper import AffineMap
from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray

__all__ = ["corner_case", "orientation", "representative"]


def orientation(v: FloatArray) -> BoolArray:
    """Definition 3.10: which neurons (n,) of a cluster are in S₁, turned like the first; the others are in S₂."""
    return np.asarray(v @ v[0] >= 0)


def representative(v: FloatArray, b: FloatArray, s: FloatArray) -> tuple[FloatArray, float]:
    """Lemma 3.21: (v*, b*), the change of the affine map across all kinks of a cluster."""
    turned = np.where(orientation(v), s, -s)
    return turned @ v, float(turned @ b)


def corner_case(v: FloatArray, b: FloatArray, s: FloatArray, separation: float) -> AffineMap | None:
    """Lemma 3.19: the affine function ℓ close to a cluster whose v* is as small as (6) asks; None if it is not."""
    v_star, _ = representative(v, b, s)
    largest = np.linalg.norm(v, axis=1).max()
    if np.linalg.norm(v_star) > (separation * largest) ** (2 / 9):
        return None
    first = np.where(orientation(v), s, 0.0)
    return AffineMap(first @ v, -float(first @ b))
