"""The most that a run may ask by lines: a target that is no one-hidden-layer network has creases without end."""

from __future__ import annotations

from collections.abc import Callable

from reluctant.numerics import FloatArray
from reluctant.oracles import Counting, Oracle, Wrapper

__all__ = ["EnoughAsked", "limited", "most_rows"]

SEARCHES = 20  # times the points of one search
ROWS_A_NEURON = 100  # times d + 5: the hardest targets that are learned take half of it
LEAST_NEURONS = 100


class EnoughAsked(Exception):
    """The limit of a run is reached."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"Stopped after {most} rows, more than a network with the neurons found takes: the target may not have "
            "one hidden layer. Use extract if it has several."
        )


def most_rows(points: int, dim: int, neurons: int) -> int:
    """Rows for a search with so many points and so many neurons found, at least a hundred."""
    return SEARCHES * points + ROWS_A_NEURON * (dim + 5) * max(neurons, LEAST_NEURONS)


class _Limited(Wrapper):
    """Refuses what goes beyond the limit, which may grow."""

    transparent = True

    def __init__(self, inner: Oracle, most: Callable[[], int]) -> None:
        super().__init__(inner)
        self.most, self.rows = most, 0

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, unless that is too much."""
        self.rows += len(rows)
        if self.rows > self.most():
            raise EnoughAsked(self.most())
        return self.inner.answer(rows)


def limited(oracle: Counting, most: Callable[[], int]) -> Counting:
    """The same target, to which no more than `most` rows are sent."""
    return Counting(_Limited(oracle.inner, most), oracle.ledger, oracle.facts.domain)
