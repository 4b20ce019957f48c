"""What travels to a worker: a sealed target, opened there once, and rows to answer.

This is all that runs on workers. A target is asked by one thread at a time in each of their processes, since it may
not bear more.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable

import numpy as np

from reluctant.errors import MissingDependency, ReluctantError, UnknownTarget, UnusableEngine
from reluctant.numerics import FloatArray
from reluctant.optional import require
from reluctant.oracles.base import Facts, Oracle
from reluctant.oracles.callable import call_target
from reluctant.oracles.dask.fault import Fault

__all__ = ["Parcel", "answer_rows", "describe", "seal"]

WAYS_OUT = (
    "Name it as module:attribute, which each worker imports for itself, or save it to a file (.onnx, .npz), which is "
    "sent along."
)


class Parcel:
    """A sealed target. dask keeps one in each worker process that was asked, and drops it with its last reference.

    What goes from worker to worker is the sealed form: each opens its own.
    """

    def __init__(self, sealed: bytes) -> None:
        self._sealed = sealed
        self._opened: Oracle | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Parcel], tuple[bytes]]:
        return Parcel, (self._sealed,)

    def facts(self) -> Facts:
        """Facts of the target, once it is open."""
        with self._lock:
            return self._open().facts

    def answer(self, rows: FloatArray) -> FloatArray:
        """Ask the target."""
        with self._lock:
            return self._open().answer(np.array(rows))  # what arrives may be read-only

    def _open(self) -> Oracle:
        if self._opened is None:
            self._opened = _opened(self._sealed)
        return self._opened


def seal(make: Callable[[], Oracle], name: str) -> bytes:
    """A function that gives an oracle, as bytes; a target that no bytes can stand for is refused."""
    pickles = require("cloudpickle", extra="dask", purpose="Sending a target to workers")
    try:
        return bytes(pickles.dumps(make))
    except Exception as error:  # pickling runs the target's own code
        raise UnusableEngine.about(
            "target", got=f"{name}, which cannot be sent to workers ({type(error).__name__}: {error})",
            expected="one that pickle can carry", fix=WAYS_OUT,
        ) from error  # fmt: skip


def _opened(sealed: bytes) -> Oracle:
    """The oracle that was sealed; what is missing on this worker is said so that the one who asks can put it there."""
    try:
        oracle: Oracle = pickle.loads(sealed)()
    except (UnknownTarget, MissingDependency) as error:
        raise _not_here(error) from error
    except ReluctantError:
        raise
    except Exception as error:  # unpickling runs the target's own code
        raise _not_here(error) from error
    return oracle


def _not_here(error: Exception) -> UnusableEngine:
    return UnusableEngine.about(
        "target", got=f"one that a worker cannot open ({type(error).__name__}: {error})",
        expected="its module, and the libraries it needs, where the workers run",
        fix="Install them there, or start the workers in its folder: PYTHONPATH=. dask worker HOST:8786. A file "
        "(.onnx, .npz) is sent along.",
    )  # fmt: skip


def describe(parcel: Parcel) -> Facts | Fault:
    """On a worker: facts of the target."""
    try:
        return parcel.facts()
    except ReluctantError as error:
        return Fault.of(error)


def answer_rows(parcel: Parcel, rows: FloatArray) -> FloatArray | Fault:
    """On a worker: answers to the rows, or what went wrong."""
    try:
        return np.asarray(call_target(parcel.answer, rows))
    except ReluctantError as error:
        return Fault.of(error)
