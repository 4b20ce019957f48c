"""Sweeps over families, shapes and seeds: a few stand for all in the fast run, the others are marked `slow`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

__all__ = ["sweep"]


def sweep(values: Iterable[Any], fast: Collection[Any], arguments: int = 1) -> list[Any]:
    """Parameters for `parametrize`: the `fast` ones as they are, the others for `make test-slow`.

    With several arguments each value is a tuple of so many.
    """
    values = list(values)
    missing = [each for each in fast if each not in values]
    assert not missing, f"not in the sweep: {missing}"
    slow = pytest.mark.slow
    return [
        each if each in fast else pytest.param(*(each if arguments > 1 else (each,)), marks=slow) for each in values
    ]
