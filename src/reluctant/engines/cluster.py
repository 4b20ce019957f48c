"""A dask cluster, reached by the address of its scheduler or through a caller's own Client.

It is looked at before anything is sent: somebody must answer, there must be workers, and this library must be the same
there as here. What was opened here is closed here; a caller's Client is left as it was.
"""

from __future__ import annotations

import pkgutil
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias
from urllib.parse import urlsplit

from reluctant._version import __version__
from reluctant.errors import UnusableEngine
from reluctant.optional import require

__all__ = ["Cluster", "Engine", "check_engine"]

Engine: TypeAlias = Any  # "dask://host:port", an address as a scheduler prints it, or a distributed.Client


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


SCHEME = "dask"  # dask's own way to connect
PRINTED = ("tcp", "tls")  # what a scheduler prints in front of its address
PORT = 8786  # where a scheduler listens if nothing else is said
THIS_PYTHON = _minor(platform.python_version())
EXPECTED = '"dask://host:port", a scheduler\'s own tcp:// or tls:// address, or a Client of dask.distributed'
CONNECT_SECONDS = 10.0
LOOK_SECONDS = 5.0  # between two looks whether there is anybody left to wait for
ALONE_SECONDS = 60.0  # without a single worker, until work is given up: a nanny starts one again in seconds
WORKER_SECONDS = 30.0  # for the first worker: clusters that start them on demand need some time
WORKER = "`dask worker {} --nworkers 4 --nthreads 1`"
START = (
    f"Start one with `dask scheduler`, and on each machine {WORKER.format(f'HOST:{PORT}')}; check host, port and "
    "firewall."
)
SAME = "Install the same version where the scheduler and the workers run: pip install 'reluctant[dask]=={}'."


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
            _check(cluster.client)
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
    """Raise `UnusableEngine` for what is neither an address nor a Client; nobody is reached for that."""
    library = require("distributed", extra="dask", purpose="An engine")
    if isinstance(engine, str):
        scheduler_address(engine)
    elif not isinstance(engine, library.Client):
        raise UnusableEngine.about("engine", got=f"{engine!r} ({type(engine).__name__})", expected=EXPECTED)


def scheduler_address(engine: str) -> str:
    """host:port of "dask://host:port", without a port dask's own; tcp:// and tls:// stay in front of theirs."""
    try:
        parts = urlsplit(engine)
        host, port = parts.hostname, parts.port or PORT
    except ValueError:  # a port that is none
        host, port = None, PORT
    if any(mark in engine for mark in "@?#"):  # not repeated here: it may be a secret
        raise UnusableEngine.about("engine", got="an address with a user, a query or a fragment", expected=EXPECTED)
    if host is None or parts.scheme not in (SCHEME, *PRINTED) or parts.path not in ("", "/"):
        raise UnusableEngine.about("engine", got=f"'{engine}'", expected=EXPECTED)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return address if parts.scheme == SCHEME else f"{parts.scheme}://{address}"


def _connect(engine: str) -> Any:
    library = require("distributed", extra="dask", purpose="An engine")
    address = scheduler_address(engine)
    if address.startswith("tls:"):
        _check_certificates(library)
    try:
        return library.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UnusableEngine.about(
            "engine", got=f"'{engine}', where nobody answers ({error})", expected="a running scheduler", fix=START
        ) from error


def _check_certificates(library: Any) -> None:
    """What dask's own configuration says: without certificates a Client to tls:// is left half open."""
    if library.Security().get_connection_args("client").get("ssl_context") is None:
        raise UnusableEngine.about(
            "engine", got="a tls:// address, and no certificates", expected="those of distributed.comm.tls in dask's "
            "configuration", fix="Name them there (DASK_DISTRIBUTED__COMM__TLS__CA_FILE ...), or give a Client.",
        )  # fmt: skip


def _check(client: Any) -> None:
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
            fix=f"Start some on each machine: {WORKER.format(client.scheduler.address)}.",
        ) from error
    _check_version(client)
    _check_python(client)


def _check_version(client: Any) -> None:
    """This library, in this version, wherever tasks are unpacked: the scheduler looks at them too."""
    name = "reluctant:__version__"
    found = dict(client.run(pkgutil.resolve_name, name, on_error="return"))
    try:
        found["the scheduler"] = client.run_on_scheduler(pkgutil.resolve_name, name)
    except Exception as error:  # whatever its import raises there
        found["the scheduler"] = error
    _refuse_others(found, "reluctant", __version__)


def _check_python(client: Any) -> None:
    """Functions travel as bytecode, which every minor version of Python writes in its own way."""
    found = client.run(platform.python_version, on_error="return")
    minor = {worker: _minor(version) if isinstance(version, str) else version for worker, version in found.items()}
    _refuse_others(minor, "Python", THIS_PYTHON)


def _refuse_others(found: Mapping[str, Any], what: str, wanted: str) -> None:
    """Raise for the first place with another version; one that has gone meanwhile says nothing about it."""
    fix = SAME.format(__version__) if what == "reluctant" else "Use the same Python for all of them."
    for where, version in found.items():
        if isinstance(version, ImportError | AttributeError):
            got = f"{where}, where {what} cannot be imported ({version})"
            raise UnusableEngine.about("engine", got=got, expected=f"{what} {wanted} there too", fix=fix)
        if isinstance(version, str) and version != wanted:
            got = f"{what} {version} at {where}"
            raise UnusableEngine.about("engine", got=got, expected=f"{what} {wanted}, as here", fix=fix)
