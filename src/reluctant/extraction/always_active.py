"""A linear term of hidden values as neurons: those values are never negative, so s·y = max(s⁺·y, 0) - max(s⁻·y, 0).

Neurons that are always on show as such a sum only: which ones they were no answer tells.
"""

from __future__ import annotations

import numpy as np

from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["always_active"]

ROUNDING = 1e4 * unit_roundoff(np.float64)  # of the largest entry of a row: its parts below this are nothing


def always_active(skip: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
    """Rows (r, k) that are not negative, and output weights (m, r): together the term skip (m, k) of values y ≥ 0.

    Two neurons for each output, or for each dimension of the term where those are fewer; what is smaller than
    `least` is left out.
    """
    outputs, rows = _in_few_dimensions(skip, least)
    rows = np.concatenate([np.maximum(rows, 0), np.maximum(-rows, 0)])
    seen = rows.max(axis=1, initial=0) > ROUNDING * np.abs(rows).max(initial=0)
    return rows[seen], np.hstack([outputs, -outputs])[:, seen]


def _in_few_dimensions(skip: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
    """Two factors of the term: the outputs themselves, or its singular vectors where they are fewer."""
    left, sizes, right = np.linalg.svd(skip, full_matrices=False)
    kept = sizes > least
    if kept.sum() < len(skip):
        return left[:, kept] * sizes[kept], right[kept]
    return np.eye(len(skip)), skip
