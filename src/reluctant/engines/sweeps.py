"""Independent pieces of a sweep: one after the other, on several processes, or on the workers of an engine.

Every piece is a function of its item alone, so that results do not depend on where or when it was run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from reluctant.engines import cluster as clusters
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
    if engine is not None:
        return _on_cluster(function, items, engine)
    if jobs == 1 or len(items) < 2:
        return ((k, function(item)) for k, item in enumerate(items))
    return _on_processes(function, items, jobs)


def _on_processes(function: Callable[[Item], Value], items: Sequence[Item], jobs: int) -> Iterator[Numbered[Value]]:
    joblib = require("joblib", extra="dask", purpose="Several pieces at a time")
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    yield from parallel(joblib.delayed(_piece)(function, k, item) for k, item in enumerate(items))


def _on_cluster(function: Callable[[Item], Value], items: Sequence[Item], engine: Engine) -> Iterator[Numbered[Value]]:
    """Through the Client itself: joblib's backend for dask waits for ever for a piece whose workers died."""
    library = require("distributed", extra="dask", purpose="An engine")
    with Cluster.reach(engine) as cluster:
        tasks = {cluster.client.submit(function, item, pure=False): k for k, item in enumerate(items)}
        try:
            while tasks:
                for task in _some_done(library, cluster, list(tasks)):
                    yield tasks.pop(task), task.result()
        except (library.KilledWorker, library.CancelledError, library.TimeoutError) as error:
            raise UnusableEngine.about(
                "engine", got=f"a piece that was not done ({error})", expected="workers that live through it",
                fix="Look at their logs; most often it is memory.",
            ) from error  # fmt: skip
        finally:
            cluster.client.cancel(list(tasks))


def _some_done(library: Any, cluster: Cluster, tasks: list[Any]) -> list[Any]:
    """Those that are done, once one is."""
    look = cluster.patience()
    while True:
        try:
            with cluster.client.as_current():
                return list(library.wait(tasks, timeout=clusters.LOOK_SECONDS, return_when="FIRST_COMPLETED").done)
        except library.TimeoutError:
            look()


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
