"""Independent pieces of a sweep: one after the other, on several processes, or on the workers of an engine.

Every piece is a function of its item alone, so that results do not depend on where or when it was run.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from reluctant.engines import cluster as clusters
from reluctant.engines.cluster import Cluster, Engine, check_engine
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
        function: what to do with one; it and the items are sent to an engine by pickle.
        items: pieces that do not depend on each other.
        jobs: processes of this machine.
        engine: address of a dask scheduler, or a Client: its workers instead.
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
    check_engine(engine)
    sealed = [_seal(function, item) for item in items]
    with Cluster.reach(engine) as cluster:
        tasks = {cluster.client.submit(_run_sealed, each, pure=False): k for k, each in enumerate(sealed)}
        try:
            while tasks:
                for task in _some_done(library, cluster, list(tasks)):
                    yield tasks.pop(task), _value_of(library, task)
        finally:
            cluster.client.cancel(list(tasks))


def _some_done(library: Any, cluster: Cluster, tasks: list[Any]) -> list[Any]:
    """Those that are done, once one is."""
    look = cluster.patience()
    while True:
        try:
            with cluster.client.as_current():
                return list(library.wait(tasks, timeout=clusters.LOOK_SECONDS, return_when="FIRST_COMPLETED").done)
        except library.CancelledError as error:
            raise _not_done(error) from error
        except library.TimeoutError:
            _look(look)


def _look(look: Callable[[], None]) -> None:
    try:
        look()
    except TimeoutError as error:
        raise _not_done(error) from error


def _value_of(library: Any, task: Any) -> Any:
    """What a piece gave; what it raised is its own, a TimeoutError too."""
    try:
        value = task.result()
    except (library.KilledWorker, library.CancelledError) as error:
        raise _not_done(error) from error
    if isinstance(value, _NotOpened):
        raise UnusableEngine.about(
            "engine", got=f"workers that cannot open a piece ({value.why})",
            expected="the module of its function, and what that needs, where the workers run",
            fix="Install it there, or start scheduler and workers in its folder: PYTHONPATH=. dask worker HOST:8786.",
        )  # fmt: skip
    return value


def _not_done(error: BaseException) -> UnusableEngine:
    return UnusableEngine.about(
        "engine", got=f"a piece that was not done ({error})", expected="workers that live through it",
        fix="Look at their logs; most often it is memory.",
    )  # fmt: skip


@dataclass(frozen=True)
class _NotOpened:
    """Why a worker could not unpack a piece."""

    why: str


def _seal(function: Callable[[Item], Value], item: Item) -> bytes:
    """A piece as bytes: what cannot be sent is heard of here, what cannot be opened there is no error of the piece."""
    pickles = require("cloudpickle", extra="dask", purpose="Sending a piece to workers")
    try:
        return bytes(pickles.dumps((function, item)))
    except Exception as error:  # pickling runs the code of what is pickled
        raise UnusableEngine.about(
            "function, items", got=f"what cannot be sent to workers ({type(error).__name__}: {error})",
            expected="a function and items that pickle can carry", fix="Leave engine= out, or make them of plain data.",
        ) from error  # fmt: skip


def _run_sealed(sealed: bytes) -> Any:
    """On a worker: the piece."""
    try:
        function, item = pickle.loads(sealed)
    except Exception as error:  # unpickling runs the code of what is unpickled
        return _NotOpened(f"{type(error).__name__}: {error}")
    return function(item)


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
