"""Work outside this process: a dask cluster, and sweeps over processes or cluster workers.

A cluster is reached by the address of its scheduler or through a caller's own Client. Before anything is sent it is
checked: somebody answers, there are workers, and this library has the same version there as here. What was opened
here is closed here; a caller's Client stays as it was.

A sweep is a function of independent items. It runs one item after the other, on several processes, or on the
workers of an engine. Each piece depends on its item alone, so results do not depend on where or when it ran.
"""

from __future__ import annotations

import pickle
import pkgutil
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar
from urllib.parse import urlsplit

from reluctant._version import __version__
from reluctant.errors import UnusableEngine, require, words

Engine: TypeAlias = Any  # "dask://host:port", an address as a scheduler prints it, or a distributed.Client


def _minor_version(version: str) -> str:
    return ".".join(version.split(".")[:2])


DASK_SCHEME = "dask"  # dask's own way to connect
PRINTED_SCHEMES = ("tcp", "tls")  # what a scheduler prints in front of its address
PORT = 8786  # where a scheduler listens if nothing else is said
THIS_PYTHON = _minor_version(platform.python_version())
EXPECTED_ENGINE = '"dask://host:port", a scheduler\'s own tcp:// or tls:// address, or a Client of dask.distributed'
CONNECT_SECONDS = 10.0
LOOK_SECONDS = 5.0  # between two looks whether there is anybody left to wait for
ALONE_SECONDS = 60.0  # without a single worker, until work is given up: a nanny starts one again in seconds
WORKER_SECONDS = 30.0  # for the first worker: clusters that start them on demand need some time
START_WORKER = "`dask worker {} --nworkers 4 --nthreads 1`"
START_SCHEDULER = (
    f"Start one with `dask scheduler`, and on each machine {START_WORKER.format(f'HOST:{PORT}')}; check host, port and "
    "firewall."
)
SAME_VERSION = "Install the same version where the scheduler and the workers run: pip install 'reluctant[dask]=={}'."


@dataclass(frozen=True)
class Cluster:
    """A cluster with workers that can do our work; `owned` if the connection was made here."""

    client: Any
    owned: bool

    @classmethod
    def reach(cls, engine: Engine) -> Cluster:
        """Connect, or take the Client that is given; raise `UnusableEngine` if it cannot do the work."""
        check_engine(engine)
        cluster = cls(_connect(engine), True) if isinstance(engine, str) else cls(engine, False)
        try:
            _check_client(cluster.client)
        except BaseException:
            cluster.close()
            raise
        return cluster

    def patience(self) -> Callable[[], None]:
        """To be called now and then while something is waited for: raises `TimeoutError` if no worker comes back."""
        met = time.monotonic()

        def look() -> None:
            nonlocal met
            met = time.monotonic() if self.client.nthreads() else met
            if time.monotonic() - met > ALONE_SECONDS:
                raise TimeoutError(f"no worker was left, and none came back in {ALONE_SECONDS:g} s")

        return look

    def close(self) -> None:
        """Close the connection if it was made here."""
        if self.owned:
            self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_engine(engine: Engine) -> None:
    """Raise `UnusableEngine` unless it is an address or a Client; nobody is reached for that."""
    library = require("distributed", extra="dask", purpose="An engine")
    if isinstance(engine, str):
        scheduler_address(engine)
    elif not isinstance(engine, library.Client):
        raise UnusableEngine.about("engine", got=f"{engine!r} ({type(engine).__name__})", expected=EXPECTED_ENGINE)


def scheduler_address(engine: str) -> str:
    """host:port of "dask://host:port", without a port dask's own; tcp:// and tls:// stay in front of theirs."""
    try:
        parts = urlsplit(engine)
        host, port = parts.hostname, parts.port or PORT
    except ValueError:  # a port that is none
        host, port = None, PORT
    if any(mark in engine for mark in "@?#"):  # not repeated here: it may be a secret
        raise UnusableEngine.about(
            "engine", got="an address with a user, a query or a fragment", expected=EXPECTED_ENGINE
        )
    if host is None or parts.scheme not in (DASK_SCHEME, *PRINTED_SCHEMES) or parts.path not in ("", "/"):
        raise UnusableEngine.about("engine", got=f"'{engine}'", expected=EXPECTED_ENGINE)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return address if parts.scheme == DASK_SCHEME else f"{parts.scheme}://{address}"


def _connect(engine: str) -> Any:
    library = require("distributed", extra="dask", purpose="An engine")
    address = scheduler_address(engine)
    if address.startswith("tls:") and library.Security().get_connection_args("client").get("ssl_context") is None:
        raise UnusableEngine.about(
            "engine", got="a tls:// address, and no certificates", expected="those of distributed.comm.tls in dask's "
            "configuration", fix="Name them there (DASK_DISTRIBUTED__COMM__TLS__CA_FILE ...), or give a Client.",
        )  # fmt: skip
    try:
        return library.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UnusableEngine.about(
            "engine",
            got=f"'{engine}', where nobody answers ({error})",
            expected="a running scheduler",
            fix=START_SCHEDULER,
        ) from error


def _check_client(client: Any) -> None:
    if client.asynchronous:
        raise UnusableEngine.about("engine", got="an asynchronous Client", expected="one with asynchronous=False")
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError as error:
        got = f"a scheduler without workers, for {WORKER_SECONDS:g} s"
        raise UnusableEngine.about(
            "engine",
            got=got,
            expected="at least one",
            fix=f"Start some on each machine: {START_WORKER.format(client.scheduler.address)}.",
        ) from error
    _check_version(client)
    found = client.run(platform.python_version, on_error="return")
    minor = {
        worker: _minor_version(version) if isinstance(version, str) else version for worker, version in found.items()
    }
    _refuse_other_versions(minor, "Python", THIS_PYTHON)


def _check_version(client: Any) -> None:
    """This library, in this version, wherever tasks are unpacked: the scheduler looks at them too."""
    name = "reluctant:__version__"
    found = dict(client.run(pkgutil.resolve_name, name, on_error="return"))
    try:
        found["the scheduler"] = client.run_on_scheduler(pkgutil.resolve_name, name)
    except Exception as error:  # whatever its import raises there
        found["the scheduler"] = error
    _refuse_other_versions(found, "reluctant", __version__)


def _refuse_other_versions(found: Mapping[str, Any], what: str, wanted: str) -> None:
    """Raise for the first place with another version; one that has gone meanwhile says nothing about it."""
    fix = SAME_VERSION.format(__version__) if what == "reluctant" else "Use the same Python for all of them."
    for where, version in found.items():
        if isinstance(version, ImportError | AttributeError):
            got = f"{where}, where {what} cannot be imported ({version})"
            raise UnusableEngine.about("engine", got=got, expected=f"{what} {wanted} there too", fix=fix)
        if isinstance(version, str) and version != wanted:
            got = f"{what} {version} at {where}"
            raise UnusableEngine.about("engine", got=got, expected=f"{what} {wanted}, as here", fix=fix)


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
    yield from parallel(joblib.delayed(_numbered_piece)(function, k, item) for k, item in enumerate(items))


def _on_cluster(function: Callable[[Item], Value], items: Sequence[Item], engine: Engine) -> Iterator[Numbered[Value]]:
    """Through the Client itself: joblib's backend for dask waits for ever for a piece whose workers died."""
    library = require("distributed", extra="dask", purpose="An engine")
    check_engine(engine)
    sealed = [_sealed_piece(function, item) for item in items]
    with Cluster.reach(engine) as cluster:
        tasks = {cluster.client.submit(_run_piece, each, pure=False): k for k, each in enumerate(sealed)}
        try:
            while tasks:
                for task in _finished_pieces(library, cluster, list(tasks)):
                    yield tasks.pop(task), _piece_value(library, task)
        finally:
            cluster.client.cancel(list(tasks))


def _finished_pieces(library: Any, cluster: Cluster, tasks: list[Any]) -> list[Any]:
    """Wait for a piece; then all that are done."""
    look = cluster.patience()
    while True:
        try:
            with cluster.client.as_current():
                return list(library.wait(tasks, timeout=LOOK_SECONDS, return_when="FIRST_COMPLETED").done)
        except library.CancelledError as error:
            raise _unfinished_piece(error) from error
        except library.TimeoutError:
            _look_for_workers(look)


def _look_for_workers(look: Callable[[], None]) -> None:
    try:
        look()
    except TimeoutError as error:
        raise _unfinished_piece(error) from error


def _piece_value(library: Any, task: Any) -> Any:
    """What a piece gave; what it raised is its own, a TimeoutError too."""
    try:
        value = task.result()
    except (library.KilledWorker, library.CancelledError) as error:
        raise _unfinished_piece(error) from error
    if isinstance(value, _UnopenedPiece):
        raise UnusableEngine.about(
            "engine", got=f"workers that cannot open a piece ({value.why})",
            expected="the module of its function, and what that needs, where the workers run",
            fix="Install it there, or start scheduler and workers in its folder: PYTHONPATH=. dask worker HOST:8786.",
        )  # fmt: skip
    return value


def _unfinished_piece(error: BaseException) -> UnusableEngine:
    return UnusableEngine.about(
        "engine", got=f"a piece that was not done ({error})", expected="workers that live through it",
        fix="Look at their logs; most often it is memory.",
    )  # fmt: skip


@dataclass(frozen=True)
class _UnopenedPiece:
    """Why a worker could not unpack a piece."""

    why: str


def _sealed_piece(function: Callable[[Item], Value], item: Item) -> bytes:
    """A piece as bytes: what cannot be sent is heard of here, what cannot be opened there is no error of the piece."""
    pickles = require("cloudpickle", extra="dask", purpose="Sending a piece to workers")
    try:
        return bytes(pickles.dumps((function, item)))
    except Exception as error:  # pickling runs the code of the object
        raise UnusableEngine.about(
            "function, items", got=f"what cannot be sent to workers ({type(error).__name__}: {error})",
            expected="a function and items that pickle can carry",
            fix=words("Leave {engine} out, or make them of plain data."),
        ) from error  # fmt: skip


def _run_piece(sealed: bytes) -> Any:
    """On a worker: the piece."""
    try:
        function, item = pickle.loads(sealed)
    except Exception as error:  # unpickling runs the code of the object
        return _UnopenedPiece(f"{type(error).__name__}: {error}")
    return function(item)


def _numbered_piece(function: Callable[[Item], Value], k: int, item: Item) -> Numbered[Value]:
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
