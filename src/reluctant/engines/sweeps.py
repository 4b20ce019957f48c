"""Independent pieces of a sweep: one after the other, on several processes, or on the workers of an engine.

Every piece is a function of its item alone, so that results do not depend on where or when it was run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from reluctant.engines.cluster import Cluster, Engine
from reluctant.errors import UnusableEngine
from reluctant.optional import require

__all__ = ["as_they_end", "in_order", "spread"]

Item = TypeVar("Item")
Value = TypeVar("Value")
Numbered = tuple[int, Value]


def spread(
    function: Callable[[Item], Value], items: Sequence[Item], *, jobs: int = 1, engine: Engine | None = None
) -> Iterator[Value]:
    """The function of each item, in the order of the items.

    Arguments:
        function: what to do with one; on an engine it must be importable there.
        items: pieces that do not depend on each other.
        jobs: processes of this machine.
        engine: "dask://host:port" or a Client: its workers instead.
    """
    return in_order(as_they_end(function, items, jobs=jobs, engine=engine))


def as_they_end(
    function: Callable[[Item], Value], items: Sequence[Item], *, jobs: int = 1, engine: Engine | None = None
) -> Iterator[Numbered[Value]]:
    """As `spread`, but each with its number and as soon as it is there."""
    numbered = [(k, item) for k, item in enumerate(items)]
    if engine is not None:
        yield from _on_cluster(function, numbered, engine)
    elif jobs == 1 or len(items) < 2:
        yield from (_piece(function, k, item) for k, item in numbered)
    else:
        joblib = require("joblib", extra="dask", purpose="Several pieces at a time")
        yield from _pieces(joblib.Parallel(n_jobs=jobs, **SETTINGS), function, numbered)


SETTINGS: dict[str, Any] = {"return_as": "generator_unordered", "batch_size": 1}


def _on_cluster(
    function: Callable[[Item], Value], numbered: Sequence[tuple[int, Item]], engine: Engine
) -> Iterator[Numbered[Value]]:
    joblib = require("joblib", extra="dask", purpose="Sweeps on an engine")
    library = require("distributed", extra="dask", purpose="An engine")
    with Cluster.reach(engine) as cluster:
        with joblib.parallel_config("dask", client=cluster.client):
            parallel = joblib.Parallel(n_jobs=-1, **SETTINGS)
        try:
            yield from _pieces(parallel, function, numbered)
        except library.KilledWorker as error:
            raise UnusableEngine.about(
                "engine", got=f"a piece during which {error.allowed_failures + 1} workers died, one after the other",
                expected="workers that live through it", fix="Look at their logs; most often it is memory.",
            ) from error  # fmt: skip


def _pieces(
    parallel: Any, function: Callable[[Item], Value], numbered: Sequence[tuple[int, Item]]
) -> Iterator[Numbered[Value]]:
    delayed = require("joblib", extra="dask", purpose="Several pieces at a time").delayed
    yield from parallel(delayed(_piece)(function, k, item) for k, item in numbered)


def _piece(function: Callable[[Item], Value], k: int, item: Item) -> Numbered[Value]:
    return k, function(item)


def in_order(numbered: Iterable[Numbered[Value]]) -> Iterator[Value]:
    """Values in the order of their numbers 0, 1, ..., each as soon as all before it are there."""
    early: dict[int, Value] = {}
    following = 0
    for k, value in numbered:
        early[k] = value
        while following in early:
            yield early.pop(following)
            following += 1
