"""Seeds and Hypothesis settings that every test shares."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

# Before numpy is imported, here and in every process that a test starts: two processes with two threads each wait for
# one another, and some tests take twenty times as long.
for _threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import pytest
from hypothesis import HealthCheck, settings

# Parts of the names of files that share a cluster, and of those that share a browser.
SHARED = {
    "cluster": ("dask", "engine", "test_reproduction", "test_doc_examples"),
    "browser": ("browser", "test_gallery"),
}
ROOT = Path(__file__).parents[1]
LONG_FOLDERS = ("extraction", "audit", "cli", "report", "oracles", "docs", "papers", "learning")  # by time for a file
DEFAULT_SEEDS = (0,)
ALL_SEEDS = range(100)

# No clocks: a busy machine is no reason to fail.
CLOCKS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, max_examples=40, **CLOCKS)
settings.register_profile("explore", max_examples=1000, **CLOCKS)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--branches` counts lines and branches of the engine, `--cpu` processor time."""
    parser.addoption("--branches", action="store_true", help="count lines and branches of the engine")
    parser.addoption("--cpu", action="store_true", help="print processor seconds by folder and by file")


def pytest_configure(config: pytest.Config) -> None:
    """Count from here on, before anything of the engine is imported."""
    if config.getoption("branches"):
        from engine_coverage import EngineCoverage

        config.pluginmanager.register(EngineCoverage())
    if config.getoption("cpu"):
        from processor_time import ProcessorTime

        config.pluginmanager.register(ProcessorTime())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files go first, so that all processes end together."""
    place = {folder: number for number, folder in enumerate(LONG_FOLDERS)}
    items.sort(key=lambda item: place.get(_folder(item), len(LONG_FOLDERS)))


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT / "tests").parts[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each process whole files, and one of them all that share a cluster or a browser, which is made once."""
    from xdist.scheduler import LoadFileScheduling

    class OneOfEach(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return next((name for name, words in SHARED.items() if any(word in file for word in words)), file)

    config.option.loadscopereorder = False  # by number of tests, which says little about their time
    return OneOfEach(config, log)


def _wanted_seeds() -> Sequence[int]:
    wanted = os.environ.get("RELUCTANT_SEEDS", "")
    if wanted == "all":
        return ALL_SEEDS
    return [int(seed) for seed in wanted.split(",")] if wanted else DEFAULT_SEEDS


@pytest.fixture(params=_wanted_seeds(), ids="seed{}".format)
def seed(request: pytest.FixtureRequest) -> int:
    """One seed by default; RELUCTANT_SEEDS=all or RELUCTANT_SEEDS=3,5 for others."""
    return request.param


@pytest.fixture
def short_training() -> Iterator[None]:
    """Students of few steps, for audits in which how good they are is not the point."""
    from short_students import short_training

    with short_training():
        yield


class TickingClock:
    """A processor clock on which every look takes the same time, however busy the machine is."""

    tick = 0.01

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += self.tick
        return self.seconds


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> TickingClock:
    """The processor time of limits, students and fits: it goes on with every look at it, and by nothing else."""
    clock = TickingClock()
    for module in ("oracles.ledger", "learning.student", "fitting.adam"):
        monkeypatch.setattr(f"reluctant.{module}.processor_time", clock)
    return clock


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """Run a program of `scripts/` in this process; its exit status is given back, or what it says instead of one."""

    def run(name: str, *arguments: str) -> object:
        path = ROOT / "scripts" / name
        monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
        monkeypatch.chdir(ROOT)
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            return end.code or 0
        return 0

    return run


PATIENCE_SECONDS = 180.0  # a cluster on a busy machine: to start, to connect, to be whole again after a kill


@pytest.fixture(scope="session")
def patience() -> float:
    """Seconds to wait for what will happen, however busy the machine is; nothing is gained by waiting less."""
    return PATIENCE_SECONDS


@pytest.fixture(scope="session")
def patient_dask() -> Iterator[None]:
    """No connection of dask is given up because the machine is busy, and a cluster that waits costs next to nothing."""
    import dask

    limits = {f"distributed.comm.timeouts.{what}": f"{PATIENCE_SECONDS:g}s" for what in ("connect", "tcp")}
    # Statistics of dask's own, by default taken every 10 to 500 ms in every process for as long as the cluster lives.
    idle = {
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.system-monitor.interval": "10s",
    }
    with dask.config.set({**limits, **idle}):
        yield


@pytest.fixture(scope="session")
def local_cluster(patient_dask: None) -> Iterator[Any]:
    """A scheduler in this process and two workers in processes of their own, each under a nanny."""
    from distributed import Client, LocalCluster

    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**settings) as cluster, Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=PATIENCE_SECONDS)
        yield client


@pytest.fixture
def client(local_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A Client of a real dask cluster with two worker processes, both alive; nobody is given up soon."""
    for limit in ("CONNECT_SECONDS", "WORKER_SECONDS", "ALONE_SECONDS"):
        monkeypatch.setattr(f"reluctant.engines.{limit}", PATIENCE_SECONDS)
    local_cluster.wait_for_workers(2, timeout=PATIENCE_SECONDS)
    return local_cluster


@pytest.fixture
def address(client: Any) -> str:
    """The same cluster by its address."""
    return client.scheduler.address.replace("tcp://", "dask://")


@pytest.fixture
def printed(client: Any) -> str:
    """The same cluster by the address that its scheduler prints."""
    return client.scheduler.address
