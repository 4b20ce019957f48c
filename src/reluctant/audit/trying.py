"""The defenses of a sweep, tried one after the other or at the same time on the workers of an engine.

Each is tried on a copy of its own, so that what one makes of it (the state of its noise) does not reach the others:
the rows of the table do not depend on where, or in which order, they were found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import TypeAlias

from reluctant.audit.leak import NO_DEFENSE, Leak
from reluctant.audit.leaking import SECONDS
from reluctant.engines import Engine, as_they_end, in_order
from reluctant.oracles import Oracle
from reluctant.oracles.limits import Clock

__all__ = ["MORE_THAN_A_SHARE", "Cell", "Trial", "TryOne", "Watch", "try_in_turn", "try_on_engine"]

Trial: TypeAlias = tuple[str, ...]  # names of defenses, the first next to the model
Cell: TypeAlias = Leak | tuple[str, str]  # a row of the sweep, or the name and why it could not be tried
TryOne: TypeAlias = Callable[..., Leak]
Watch: TypeAlias = Callable[[int, int, str], None]

MORE_THAN_A_SHARE = 2.0  # of the time left for each defense: most need less than theirs


def try_in_turn(
    copy: Oracle, trials: Sequence[Trial], known: Mapping[Trial, Leak], try_one: TryOne, seconds: float, watch: Watch
) -> list[Cell]:
    """One after the other; what one does not need of its time is left to the others."""
    clock, cells = Clock(seconds, len(trials)), list[Cell]()
    for k, names in enumerate(trials):
        share = clock.share(MORE_THAN_A_SHARE) or 0.0
        if names in known:
            cells.append(known[names])
            continue
        watch(k, len(trials), _called(names))
        cells.append(_tried(try_one, deepcopy(copy), (names, share)))
    watch(len(trials), len(trials), "")
    return cells


def try_on_engine(
    engine: Engine, copy: Oracle, trials: Sequence[Trial], known: Mapping[Trial, Leak], try_one: TryOne,
    seconds: float, watch: Watch,
) -> list[Cell]:  # fmt: skip
    """At the same time; each may take what the first of them could if they were tried in turn."""
    share = min(1.0, MORE_THAN_A_SHARE / len(trials)) * seconds
    open_ = [names for names in trials if names not in known]
    ended = as_they_end(partial(_tried, try_one, copy), [(names, share) for names in open_], engine=engine)
    found = dict(zip(open_, in_order(_watched(ended, len(trials), watch)), strict=True))
    return [known[names] if names in known else found[names] for names in trials]


def _watched(ended: Iterator[tuple[int, Cell]], of: int, watch: Watch) -> Iterator[tuple[int, Cell]]:
    watch(0, of, "")
    for done, cell in enumerate(ended, 1):
        watch(done, of, "")
        yield cell
    watch(of, of, "")


def _tried(try_one: TryOne, copy: Oracle, trial: tuple[Trial, float]) -> Cell:
    names, seconds = trial
    try:
        return try_one(copy, names, seconds=min(SECONDS, seconds))
    except Exception as error:  # one cell must not cost the others
        return _called(names), f"{type(error).__name__}: {error}"


def _called(names: Trial) -> str:
    return ", ".join(names) or NO_DEFENSE
