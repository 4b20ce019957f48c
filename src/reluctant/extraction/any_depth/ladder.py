"""Layer upon layer: each rung is the search for one layer. A neuron found late in a lower one rebuilds those above."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reluctant.extraction.any_depth.asker import Asker
from reluctant.extraction.any_depth.kink_store import Store
from reluctant.extraction.any_depth.known import Known
from reluctant.extraction.any_depth.layer import Search
from reluctant.extraction.failures import StageFailed
from reluctant.oracles import Counting

__all__ = ["Ladder"]

MOST_LAYERS = 8
MOST_REPAIRS = 2
REPAIR_LINES = 4
MOST_REENTRIES = 3


class Ladder:
    """The searches of all layers so far; below each, sides are decided."""

    def __init__(self, oracle: Counting, asker: Asker, store: Store) -> None:
        self.oracle, self.asker, self.store = oracle, asker, store
        self.searches: list[Search] = []

    @property
    def top(self) -> Search:
        """The search of the last layer."""
        return self.searches[-1]

    def known(self) -> Known:
        """All layers, the last one with open sides."""
        return self.top.known.extended(self.top.layer()) if self.searches else Known(self.store.dim)

    def climb(self, is_last: Callable[[Known], bool]) -> None:
        """Find layers until one is the last."""
        repairs = 0
        while len(self.searches) < MOST_LAYERS:
            number = len(self.searches) + 1
            search = Search(self.asker, self.store, self.known())
            with self.oracle.stage(f"layer {number}"):
                search.run()
                if not (search.neurons and search.known.sided):
                    repairs += 1
                    if repairs > MOST_REPAIRS or not self.repair(search):
                        raise _failure(number, search)
                    continue
            self.push(search)
            if is_last(self.known()):
                return
        raise StageFailed("layers", "kinks that no layer explains", number=MOST_LAYERS, limit=MOST_LAYERS)

    def push(self, search: Search) -> None:
        """One rung more; the sides it found are those of the rung below."""
        if search.turned is not None:
            self.top.learn_sides(search.turned)
        self.searches.append(search)

    def repair(self, failed: Search) -> bool:
        """Something is missing below: creases that run straight through the last layer, or kinks on new lines."""
        if not self.searches:
            return False
        before = len(self.top.neurons)
        self.top.adopt(failed.misplaced())
        if len(self.top.neurons) == before:
            self.store.scan_random(REPAIR_LINES)
        return self.reenter() or len(self.top.neurons) > before

    def look_again(self) -> None:
        """After new lines: what they speak against is dropped, what they close is closed, what is new is followed."""
        self.top.review()
        self.top.close()
        for _ in range(MOST_REENTRIES):  # layers that were rebuilt may have lost neurons, whose kinks are there again
            if not self.reenter():
                return

    def reenter(self) -> bool:
        """Try kinks that nothing explains in every layer, from the lowest; True if a neuron was found."""
        unexplained = self.store.unexplained(self.known())
        for number, search in enumerate(self.searches):
            search.tried |= set(np.flatnonzero(~unexplained).tolist())
            if search.try_everything():
                self.rebuild(number + 1)
                return True
        return False

    def rebuild(self, start: int) -> None:
        """Solve all creases from this rung on in the features of the layers below as they are now."""
        above, self.searches = self.searches[start:], self.searches[:start]
        for old in above:
            search = Search(self.asker, self.store, self.known())
            search.adopt(old.neurons)
            if not search.known.sided:
                search.try_everything()
                search.settle_sides(final=True)
            if not (search.neurons and search.known.sided):
                raise _failure(len(self.searches) + 1, search)
            self.push(search)


def _failure(number: int, search: Search) -> StageFailed:
    if not search.neurons:
        return StageFailed(f"layer {number}", "no crease could be followed", number=0, limit=1)
    open_ = int(search.known.layers[-1].undecided.sum())
    return StageFailed(f"layer {number}", f"sides of neurons of layer {number - 1} stay open", number=open_, limit=0)
