"""Rows of neurons that are seen only with others: what the others add is known, and is taken away. No queries.

The gradient at a point is a combination of the active neurons' rows. In the subspace all rows are known to the last
digit, so the combination is too; the gradient in all of input space then gives the one row that is missing there, or
a few gradients the few that are missing in them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.numerics import FloatArray

__all__ = ["Mixed", "solve_mixed"]


@dataclass(frozen=True)
class Mixed:
    """Gradients at points where these neurons are active with others, one point for each."""

    neurons: IntArray  # (p,): rows that are not known
    slopes: FloatArray  # (p, m, d)
    sd: FloatArray  # (p,)
    active: BoolArray  # (p, n)


def solve_mixed(
    mixed: Mixed, rows: FloatArray, errors: FloatArray, normals: FloatArray, basis: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Unit rows (p, d) and their errors, from the other neurons' rows (n, d) and their errors (n,).

    `normals` (n, k): what the rows are in the subspace, those that are not known up to a factor.
    """
    unknown = mixed.neurons
    parts = [_combination(slope @ basis.T, normals, on) for slope, on in zip(mixed.slopes, mixed.active, strict=True)]
    combinations = np.stack([part for part, _ in parts])  # (p, m, n)
    blur = mixed.sd * np.array([spread for _, spread in parts])
    others = np.isin(np.arange(len(normals)), unknown, invert=True)
    rest = mixed.slopes - combinations[:, :, others] @ rows[others]
    inverse = np.linalg.pinv(combinations[:, :, unknown].reshape(-1, len(unknown)))  # (p, p·m)
    found = inverse @ rest.reshape(-1, rest.shape[2])
    sizes = np.linalg.norm(found, axis=1)
    m, d = mixed.slopes.shape[1:]
    borrowed = np.sqrt((combinations[:, :, others] ** 2 @ errors[others] ** 2).max(axis=1))
    noise = np.sqrt(d * mixed.sd**2 + (blur * max(1.0, float(sizes.max()))) ** 2 + borrowed**2)
    return found / sizes[:, None], np.sqrt(inverse**2 @ np.repeat(noise, m) ** 2) / sizes


def _combination(slope: FloatArray, normals: FloatArray, active: BoolArray) -> tuple[FloatArray, float]:
    """The parts (m, n) of a gradient (m, k) along the normals of active neurons, and how much noise grows in them."""
    inverse = np.linalg.pinv(normals[active])
    parts = np.zeros((len(slope), len(normals)))
    parts[:, active] = slope @ inverse
    return parts, float(np.linalg.norm(inverse))
