"""Seeds and Hypothesis settings that every test shares."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

CLUSTER_FILES = ("dask", "engine", "test_reproduction", "test_doc_examples")  # parts of their names
DEFAULT_SEEDS = (0,)
ALL_SEEDS = range(100)

# No clocks: a busy machine is no reason to fail.
CLOCKS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, max_examples=40, **CLOCKS)
settings.register_profile("explore", max_examples=1000, **CLOCKS)
settings.load_profile("ci")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each process whole files, and all files of clusters to one: a fixture of theirs is then made once."""
    from xdist.scheduler import LoadFileScheduling

    class OneCluster(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "cluster" if any(word in file for word in CLUSTER_FILES) else file

    return OneCluster(config, log)


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
