"""Sweeps of benchmarks whose runs do not depend on each other, and whose figures are no times: here, or on an engine.

    python -m benchmarks honesty survival --engine dask://scheduler:8786

Scheduler and workers import this package: start both in the root of the repository, with PYTHONPATH=. before `dask`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from reluctant.engines import spread

__all__ = ["Sweeping"]

Item = TypeVar("Item")
Value = TypeVar("Value")


class Sweeping:
    """Where sweeps are run; `engine` is set by the command line."""

    engine: str | None = None

    @classmethod
    def over(cls, function: Callable[[Item], Value], items: Sequence[Item]) -> Iterator[Value]:
        """The function of each item, in their order."""
        return spread(function, items, engine=cls.engine)
