"""How many rows are built and asked together: enough to be quick, few enough to fit."""

from __future__ import annotations

__all__ = ["batches"]

BATCH_BYTES = 2**24  # of float64


def batches(n: int, rows_each: int, dim: int) -> list[slice]:
    """Parts of n things of so many rows each that are asked together."""
    size = max(1, BATCH_BYTES // (8 * max(rows_each, 1) * dim))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
