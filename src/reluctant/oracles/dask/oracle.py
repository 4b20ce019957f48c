"""Adapter for a target that lives on the workers of a dask cluster.

One call of `answer` is one task, on one worker. `Parallel` above it cuts a question into such calls and keeps several
under way, so that each is counted, repeated and recorded by itself. The cut depends on the number of rows alone, never
on the workers: a target whose last bits depend on the size of a batch answers the same on any cluster.

Rows travel inside the task, not as data of their own: the scheduler keeps them until they are answered, and asks
another worker if one dies. The target travels the same way, once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from reluctant.engines import Cluster
from reluctant.engines import cluster as clusters
from reluctant.errors import TargetUnavailable
from reluctant.numerics import FLOAT_BYTES, FloatArray
from reluctant.optional import require
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Facts, Oracle
from reluctant.oracles.dask.fault import Fault
from reluctant.oracles.dask.parcel import Parcel, answer_rows, describe

__all__ = ["IN_FLIGHT", "SHARDS", "DaskOracle", "shard_rows"]

SHARDS = 16  # into so many parts a question is cut, if they do not become too small or too large
SHARD_BYTES = 2**22  # of rows, at most, in one task: the scheduler keeps them all
IN_FLIGHT = 32  # tasks that are given to the scheduler at a time
AGAIN = "Run again with the same transcript: what was answered is kept."


class DaskOracle(Oracle):
    """Asks a target of which every worker holds a copy.

    Arguments:
        cluster: where; closed with the oracle, if it was opened here.
        sealed: the target, as `seal` gives it.
    """

    def __init__(self, cluster: Cluster, sealed: bytes) -> None:
        self._cluster = cluster
        self._library = require("distributed", extra="dask", purpose="An engine")
        self._parcel = self._send(sealed)
        self._facts = self._opened_everywhere()

    def _send(self, sealed: bytes) -> Any:
        config = require("dask", extra="dask", purpose="An engine").config
        with config.set({"distributed.admin.large-graph-warning-threshold": len(sealed) + SHARD_BYTES}):
            return self._cluster.client.submit(Parcel, sealed, key=f"reluctant-target-{uuid.uuid4()}")

    def _opened_everywhere(self) -> Facts:
        """Facts, after every worker has opened the target: one that cannot is heard of before anything is asked.

        Each then holds a copy of its own, and none is looked for on a worker that has died.
        """
        tasks = [
            self._task(describe, self._parcel, workers=[worker], allow_other_workers=True)
            for worker in self._cluster.client.nthreads()
        ]
        facts: list[Facts] = [self._value_of(task, 0) for task in tasks]
        return facts[0]

    @property
    def facts(self) -> Facts:
        """As the target has them on a worker; outputs of a callable once it has answered."""
        return self._facts

    def answer(self, rows: FloatArray) -> FloatArray:
        """One task on one worker."""
        answers: FloatArray = self._value_of(self._task(answer_rows, self._parcel, rows), len(rows))
        if self._facts.outputs == UNKNOWN_OUTPUTS:
            self._facts = replace(self._facts, outputs=answers.shape[1])
        return answers

    def _task(self, function: Callable[..., Any], *arguments: Any, **where: Any) -> Any:
        """Hand a task to the scheduler."""
        try:
            return self._cluster.client.submit(function, *arguments, pure=False, **where)
        except Exception as error:  # a client that is closed, or was closed by its scheduler
            raise _lost(error) from error

    def _value_of(self, task: Any, rows: int) -> Any:
        """What a task gives; errors of the target as they were raised there, those of the cluster in plain words."""
        try:
            answer = self._wait(task)
        except self._library.KilledWorker as error:
            raise TargetUnavailable(
                f"engine: {error.allowed_failures + 1} workers died, one after the other, while they had {rows} rows "
                f"to answer. Look at their logs; most often it is memory. {AGAIN}"
            ) from error
        except (Exception, self._library.CancelledError) as error:  # closed, cut off, restarted: dask has many words
            raise _lost(error) from error
        if isinstance(answer, Fault):
            raise answer.error()
        return answer

    def _wait(self, future: Any) -> Any:
        """The result of a task; a cluster without workers is waited for, but not for ever."""
        look = self._cluster.patience()
        while True:
            try:
                return future.result(timeout=clusters.LOOK_SECONDS)
            except TimeoutError:
                look()

    def close(self) -> None:
        """Let go of the copies on the workers, and of the connection if it was made here."""
        self._parcel.release()
        self._cluster.close()

    def __repr__(self) -> str:
        return f"DaskOracle({self._facts.name})"


def _lost(error: BaseException) -> TargetUnavailable:
    return TargetUnavailable(f"engine: lost ({type(error).__name__}: {error}). {AGAIN}")


def shard_rows(dim: int) -> int:
    """Rows of one task at most."""
    return max(1, SHARD_BYTES // (FLOAT_BYTES * dim))
