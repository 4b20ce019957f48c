"""The most that a run may ask by lines: a target that is no one-hidden-layer network has creases without end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reluctant.oracles import Counting
from reluctant.oracles.guard import guarded

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


def limited(oracle: Counting, most: Callable[[], int]) -> Counting:
    """The same target, to which no more than `most` rows are sent; the limit may grow."""

    @contextmanager
    def enough(passed: int, asked: int) -> Iterator[None]:
        if passed + asked > most():
            raise EnoughAsked(most())
        yield

    return guarded(oracle, enough)
