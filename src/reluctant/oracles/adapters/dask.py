"""Adapter for a target on the workers of a dask cluster (extra `dask`).

One call of `answer` is one task, on one worker. `Parallel` above it cuts a question into such calls and keeps
several under way, so that each is counted, repeated and recorded by itself. The cut depends on the number of rows
alone, never on the workers: a target whose last bits depend on the size of a batch answers the same on any cluster.

Rows travel inside the task: the scheduler keeps them until they are answered, and asks another worker if one dies.
The target travels the same way, once, sealed; each worker opens its own copy and asks it from one thread at a time.
What it raises there comes back as data and is raised again here, so that dask neither repeats nor wraps it.
"""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from reluctant import engines as clusters
from reluctant import errors
from reluctant.engines import Cluster, Engine
from reluctant.errors import (
    MissingDependency,
    ReluctantError,
    TargetUnavailable,
    UnknownTarget,
    UnusableEngine,
    require,
    words,
)
from reluctant.numerics import FLOAT_BYTES, FloatArray
from reluctant.oracles.adapters.dispatch import call_target
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Explained, Facts, Oracle, layers
from reluctant.oracles.explanations import GradientFace
from reluctant.oracles.ledger import Counting, Timed
from reluctant.oracles.parallel import Parallel

SHARDS = 16  # into so many parts a question is cut, if they do not become too small or too large
SHARD_BYTES = 2**22  # of rows, at most, in one task: the scheduler keeps them all
TASKS_IN_FLIGHT = 32  # tasks that are given to the scheduler at a time
RUN_AGAIN = "Run again with the same transcript: what was answered is kept."


class DaskOracle(Oracle):
    """Asks a target of which every worker holds a copy.

    Arguments:
        cluster: where; closed with the oracle, if it was opened here.
        sealed: the target, as `seal` gives it.
        gradients: the target gives them.
    """

    def __init__(self, cluster: Cluster, sealed: bytes, *, gradients: bool = False) -> None:
        self._cluster, self._gradients = cluster, gradients
        self._library = require("distributed", extra="dask", purpose="An engine")
        self._parcel = self._send(sealed)
        # Every worker opens the target now, and holds a copy: one that cannot is heard of before anything is asked.
        tasks = [
            self._task(describe_target, self._parcel, workers=[worker], allow_other_workers=True)
            for worker in self._cluster.client.nthreads()
        ]
        facts: list[Facts] = [self._value_of(task, 0) for task in tasks]
        self._facts = facts[0]

    def _send(self, sealed: bytes) -> Any:
        config = require("dask", extra="dask", purpose="An engine").config
        with config.set({"distributed.admin.large-graph-warning-threshold": len(sealed) + SHARD_BYTES}):
            return self._cluster.client.submit(SealedTarget, sealed, key=f"reluctant-target-{uuid.uuid4()}")

    @property
    def facts(self) -> Facts:
        """The target's facts on a worker; outputs of a callable once it has answered."""
        return self._facts

    def answer(self, rows: FloatArray) -> FloatArray:
        """One task on one worker."""
        answers: FloatArray = self._value_of(self._task(answer_rows, self._parcel, rows), len(rows))
        if self._facts.outputs == UNKNOWN_OUTPUTS:
            self._facts = replace(self._facts, outputs=answers.shape[1])
        return answers

    @property
    def explained(self) -> Oracle | None:
        """Values and gradients, where the target gives them."""
        return GradientFace(self) if self._gradients else None

    def with_gradients(self, rows: FloatArray) -> Explained:
        """One task on one worker."""
        task = self._task(answer_rows, self._parcel, rows, gradients=True)
        return Explained.unpacked(self._value_of(task, len(rows)), self._facts.dim)

    def _task(self, function: Callable[..., Any], *arguments: Any, **where: Any) -> Any:
        """Hand a task to the scheduler."""
        try:
            return self._cluster.client.submit(function, *arguments, pure=False, **where)
        except Exception as error:  # a client that is closed, or was closed by its scheduler
            raise _lost_cluster(error) from error

    def _value_of(self, task: Any, rows: int) -> Any:
        """What a task gives; errors of the target as they were raised there, those of the cluster in plain words."""
        try:
            answer = self._wait(task)
        except self._library.KilledWorker as error:
            raise TargetUnavailable(
                f"engine: {error.allowed_failures + 1} workers died, one after the other, while they had {rows} rows "
                f"to answer. Look at their logs; most often it is memory. {RUN_AGAIN}"
            ) from error
        except (Exception, self._library.CancelledError) as error:  # closed, cut off, restarted: dask has many words
            raise _lost_cluster(error) from error
        if isinstance(answer, RemoteError):
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


def _lost_cluster(error: BaseException) -> TargetUnavailable:
    return TargetUnavailable(f"engine: lost ({type(error).__name__}: {error}). {RUN_AGAIN}")


def shard_rows(dim: int) -> int:
    """Rows of one task at most."""
    return max(1, SHARD_BYTES // (FLOAT_BYTES * dim))


def open_on_engine(
    engine: Engine, make: Callable[[], Oracle], name: str, timeout: float | None, *, gradients: bool = False
) -> DaskOracle:
    """Send what `make` opens to the workers of an engine; each call there is given up after `timeout` seconds."""
    sealed = seal_target(partial(_open_timed, make, timeout), name)
    cluster = Cluster.reach(engine)
    try:
        return DaskOracle(cluster, sealed, gradients=gradients)
    except BaseException:
        cluster.close()
        raise


def in_shards(sender: Oracle, most: int | None = None) -> Parallel:
    """Questions cut into tasks of at most so many rows, several under way; the cut is the same on every cluster."""
    size = shard_rows(sender.dim)
    return Parallel(sender, TASKS_IN_FLIGHT, size if most is None else min(size, most), spread=SHARDS)


def as_sent(oracle: Oracle) -> Oracle:
    """The oracle itself, unless copies of it on workers would each keep an account, or random numbers, of their own."""
    for layer in layers(oracle):
        if isinstance(layer, Counting):
            raise UnusableEngine.about(
                "target", got="one that is opened already, with an account of its own", expected="the bare target",
                fix=words("Give {engine} where it is opened: open_oracle(model, ...)."),
            )  # fmt: skip
        if layer.draws:
            raise UnusableEngine.about(
                "target", got="one that adds random noise: every worker would draw the same",
                expected="the target behind the noise",
                fix=words("Open that with {engine}, the noise before it: defend(open_oracle(model, ...), ...)."),
            )  # fmt: skip
    return oracle


def _open_timed(make: Callable[[], Oracle], seconds: float | None) -> Oracle:
    """On a worker, where waiting for one's turn does not count."""
    return make() if seconds is None else Timed(make(), seconds)


WAYS_OUT = (
    "Name it as module:attribute, which each worker imports for itself, or save it to a file (.onnx, .npz), which is "
    "sent along."
)


class SealedTarget:
    """A sealed target. dask keeps one in each worker process that was asked, and drops it with its last reference.

    What goes from worker to worker is the sealed form: each opens its own.
    """

    def __init__(self, sealed: bytes) -> None:
        self._sealed = sealed
        self._opened: Oracle | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[SealedTarget], tuple[bytes]]:
        return SealedTarget, (self._sealed,)

    def facts(self) -> Facts:
        """Facts of the target, once it is open."""
        with self._lock:
            return self._open().facts

    def answer(self, rows: FloatArray, *, gradients: bool = False) -> FloatArray:
        """Ask the target, for values or for gradients too."""
        with self._lock:
            oracle = self._open().explained if gradients else self._open()
            assert oracle is not None  # it was opened with them
            return oracle.answer(np.array(rows))  # what arrives may be read-only

    def _open(self) -> Oracle:
        if self._opened is None:
            self._opened = _open_sealed(self._sealed)
        return self._opened


def seal_target(make: Callable[[], Oracle], name: str) -> bytes:
    """A function that gives an oracle, as bytes; a target that no bytes can stand for is refused."""
    pickles = require("cloudpickle", extra="dask", purpose="Sending a target to workers")
    try:
        return bytes(pickles.dumps(make))
    except Exception as error:  # pickling runs the target's own code
        raise UnusableEngine.about(
            "target", got=f"{name}, which cannot be sent to workers ({type(error).__name__}: {error})",
            expected="one that pickle can carry", fix=WAYS_OUT,
        ) from error  # fmt: skip


def _open_sealed(sealed: bytes) -> Oracle:
    """The oracle that was sealed; an error names the package that this worker lacks."""
    try:
        oracle: Oracle = pickle.loads(sealed)()
    except (UnknownTarget, MissingDependency) as error:
        raise _unopened(error) from error
    except ReluctantError:
        raise
    except Exception as error:  # unpickling runs the target's own code
        raise _unopened(error) from error
    return oracle


def _unopened(error: Exception) -> UnusableEngine:
    return UnusableEngine.about(
        "target", got=f"one that a worker cannot open ({type(error).__name__}: {error})",
        expected="its module, and the libraries it needs, where the workers run",
        fix="Install them there, or start the workers in its folder: PYTHONPATH=. dask worker HOST:8786. A file "
        "(.onnx, .npz) is sent along.",
    )  # fmt: skip


def describe_target(parcel: SealedTarget) -> Facts | RemoteError:
    """On a worker: facts of the target."""
    try:
        return parcel.facts()
    except ReluctantError as error:
        return RemoteError.of(error)


def answer_rows(parcel: SealedTarget, rows: FloatArray, *, gradients: bool = False) -> FloatArray | RemoteError:
    """On a worker: answers to the rows, with gradients if they are asked for, or what went wrong."""
    try:
        return np.asarray(call_target(partial(parcel.answer, gradients=gradients), rows))
    except ReluctantError as error:
        return RemoteError.of(error)


@dataclass(frozen=True)
class RemoteError:
    """An error of this library: its class by name, since a class of the user's may not be known here."""

    kind: str
    arguments: tuple[Any, ...]
    state: dict[str, Any]

    @classmethod
    def of(cls, error: ReluctantError) -> RemoteError:
        """The error as it can be raised elsewhere; a class from outside the library becomes its nearest base here."""
        kind = next(base for base in type(error).__mro__ if getattr(errors, base.__name__, None) is base)
        if kind is not type(error):
            return cls(kind.__name__, (str(error),), {})
        return cls(kind.__name__, error.args, dict(vars(error)))

    def error(self) -> ReluctantError:
        """The error again, without going through a constructor of its own."""
        kind: type[ReluctantError] = getattr(errors, self.kind)
        error = kind.__new__(kind, *self.arguments)
        error.args = self.arguments
        vars(error).update(self.state)
        return error
