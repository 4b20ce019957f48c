"""What goes wrong on a cluster is said in plain words: nobody there, nothing that can be sent, targets that fail."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dask_targets import SHALLOW, busy, dying, raising, slow
from oracle_models import gaussian_rows

import reluctant as rl
from reluctant import engines as clusters
from reluctant.engines import scheduler_address
from reluctant.errors import InvalidInput, TargetBusy, TargetTimeout, TargetUnavailable, UnusableEngine
from reluctant.oracles import NetworkOracle

ROWS = gaussian_rows(5, 6)


# ---- engines that are none


@pytest.mark.parametrize(
    ("engine", "address"),
    [
        ("dask://scheduler:8786", "scheduler:8786"),
        ("dask://10.0.0.1", "10.0.0.1:8786"),
        ("dask://[::1]:9000/", "[::1]:9000"),
        ("tcp://127.0.0.1:37251", "tcp://127.0.0.1:37251"),
        ("tls://scheduler", "tls://scheduler:8786"),
    ],
)
def test_addresses(engine: str, address: str) -> None:
    assert scheduler_address(engine) == address


@pytest.mark.parametrize(
    "engine", ["", "dask", "foo", "tcp://", "dask://", "dask://host:port", "dask://host/path", "http://host:1", 3]
)
def test_what_is_no_engine_is_refused(engine: Any) -> None:
    with pytest.raises(UnusableEngine, match=r'^engine: got .*, expected "dask://host:port".* or a Client'):
        rl.open_oracle(SHALLOW, engine=engine)


@pytest.mark.parametrize("engine", [42, "foo"])
def test_a_bad_engine_is_told_before_a_target_that_cannot_be_sent(engine: Any) -> None:
    lock = threading.Lock()
    with pytest.raises(UnusableEngine, match=r"^engine: got .*(42|foo)"):
        rl.open_oracle(lambda x: (lock, SHALLOW(x))[1], dim=6, engine=engine)


def test_an_unreachable_scheduler_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 0.5)
    nobody = r"^engine: got .*127.0.0.1:9', where nobody answers .*after 0\.5 s.*dask scheduler"
    with pytest.raises(UnusableEngine, match=nobody):
        rl.open_oracle(SHALLOW, engine="dask://127.0.0.1:9")
    assert issubclass(UnusableEngine, InvalidInput)


def test_tls_without_certificates() -> None:
    with pytest.raises(UnusableEngine, match=r"^engine: got a tls:// address, and no certificates"):
        rl.open_oracle(SHALLOW, engine="tls://127.0.0.1:9")


@pytest.fixture
def empty_cluster(patient_dask: None) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=0, dashboard_address=":0") as cluster, Client(cluster, set_as_default=False) as client:
        yield client


def test_a_scheduler_without_workers(empty_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "WORKER_SECONDS", 0.2)
    with pytest.raises(
        UnusableEngine, match=r"^engine: got a scheduler without workers.*`dask worker tcp://127.0.0.1:"
    ):
        rl.open_oracle(SHALLOW, engine=empty_cluster)


def test_workers_without_this_library(
    empty_cluster: Any, tmp_path: Path, patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real worker, in a process where the library is hidden."""
    monkeypatch.setattr(clusters, "WORKER_SECONDS", patience)
    (tmp_path / "reluctant.py").write_text("raise ImportError('hidden')")
    code = "import sys; from distributed.cli.dask_worker import main; sys.exit(main())"
    command = [sys.executable, "-c", code, empty_cluster.scheduler.address, "--no-nanny", "--no-dashboard"]
    worker = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(tmp_path)}, stderr=subprocess.DEVNULL)
    try:
        with pytest.raises(UnusableEngine, match=r"cannot be imported \(hidden\).*pip install 'reluctant\[dask\]=="):
            rl.open_oracle(SHALLOW, engine=empty_cluster)
    finally:
        worker.kill()
        worker.wait()


def test_workers_with_another_version(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "__version__", "99.0")
    with pytest.raises(UnusableEngine, match=r"^engine: got reluctant 0.* expected reluctant 99.0, as here"):
        rl.open_oracle(SHALLOW, engine=client)


def test_workers_with_another_python(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "THIS_PYTHON", "9.9")
    with pytest.raises(UnusableEngine, match=r"^engine: got Python 3.* expected Python 9.9, as here"):
        rl.open_oracle(SHALLOW, engine=client)


# ---- targets that cannot be sent


def test_a_target_that_pickle_cannot_carry(client: Any) -> None:
    lock = threading.Lock()
    with pytest.raises(UnusableEngine, match=r"^target: got .*cannot be sent to workers .*lock.* module:attribute"):
        rl.open_oracle(lambda x: (lock, SHALLOW(x))[1], dim=6, engine=client)


def test_a_module_that_workers_do_not_have(client: Any) -> None:
    with pytest.raises(
        UnusableEngine, match=r"^target: got one that a worker cannot open .*nowhere_at_all.*PYTHONPATH"
    ):
        rl.open_oracle("nowhere_at_all:target", engine=client)


def test_an_opened_oracle_would_count_for_itself(client: Any) -> None:
    with pytest.raises(UnusableEngine, match=r"^target: got one that is opened already.*engine="):
        rl.open_oracle(rl.defend(rl.open_oracle(SHALLOW), "decimals=3"), engine=client)


def test_noise_that_every_worker_would_draw_alike(client: Any) -> None:
    noisy = rl.defend(NetworkOracle(SHALLOW), "gaussian=0.01")
    with pytest.raises(UnusableEngine, match=r"^target: got one that adds random noise.*defend\(open_oracle"):
        rl.open_oracle(noisy, engine=client)


def test_noise_that_the_row_fixes_may_be_sent(client: Any) -> None:
    noisy = rl.defend(NetworkOracle(SHALLOW), "gaussian=0.01,fixed")
    with rl.open_oracle(noisy, engine=client) as oracle:
        np.testing.assert_array_equal(oracle.query(ROWS), rl.open_oracle(noisy).query(ROWS))


def test_a_served_model_is_asked_from_here(client: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^engine: got one for a served model.*connections="):
        rl.open_oracle("http://localhost:1/v2/models/x", engine=client)


def test_arguments_are_checked_as_ever(client: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^dim: got None"):
        rl.open_oracle("dask_targets:raising", engine=client)
    with pytest.raises(InvalidInput, match=r"^dim: got 5, expected 6"):
        rl.open_oracle(SHALLOW, dim=5, engine=client)


# ---- targets that fail


def test_an_error_of_the_target_comes_back_with_its_words(client: Any) -> None:
    with pytest.raises(TargetUnavailable, match=r"^target: raised ValueError: no luck with 1 rows\.") as caught:
        rl.open_oracle(raising, dim=6, engine=client)
    assert type(caught.value) is TargetUnavailable


def test_an_error_of_ours_comes_back_as_it_is(client: Any) -> None:
    with pytest.raises(TargetBusy, match="come back later") as caught:
        rl.open_oracle(busy, dim=6, engine=client)
    assert caught.value.retry_after == 7.0


class Unheard(TargetBusy):
    """Somebody else's, with something that cannot travel."""


def test_an_error_of_somebody_elses_comes_back_as_what_it_stems_from(client: Any) -> None:
    def unheard(x: np.ndarray) -> np.ndarray:
        error = Unheard("target: never heard of")
        error.lock = threading.Lock()  # type: ignore[attr-defined]
        raise error

    with pytest.raises(TargetBusy, match="never heard of") as caught:
        rl.open_oracle(unheard, dim=6, engine=client)
    assert type(caught.value) is TargetBusy


def test_answers_that_are_not_finite_are_refused_here(client: Any) -> None:
    with rl.open_oracle(lambda x: np.log(np.minimum(x[:, 0], 0) * 0), dim=6, engine=client) as oracle:
        with pytest.raises(rl.errors.NonFiniteAnswer) as caught:
            oracle.query(ROWS)
        np.testing.assert_array_equal(caught.value.rows, ROWS)


def test_the_timeout_is_of_each_call_on_its_worker(client: Any, patience: float) -> None:
    with pytest.raises(TargetTimeout, match=r"within 0\.05 s"):
        rl.open_oracle(slow, dim=6, timeout=0.05, engine=client)
    with rl.open_oracle(slow, dim=6, timeout=patience, engine=client) as oracle:
        assert oracle.query(ROWS).shape == (5, 1)


def test_a_target_that_kills_its_workers_is_given_up(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    oracle = rl.open_oracle(dying, dim=6, engine=client)
    with pytest.raises(TargetUnavailable, match=r"^engine: 1 workers died.*5 rows.*transcript"):
        oracle.query(ROWS)
    oracle.close()


def test_a_cluster_that_loses_all_workers_is_given_up(patient_dask: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import Client, LocalCluster

    monkeypatch.setattr(clusters, "ALONE_SECONDS", 0.5)
    monkeypatch.setattr(clusters, "LOOK_SECONDS", 0.2)
    settings = {"n_workers": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**settings) as cluster, Client(cluster, set_as_default=False) as client:
        oracle = rl.open_oracle(SHALLOW, engine=client)
        cluster.scale(0)
        while client.nthreads():
            time.sleep(0.01)
        with pytest.raises(TargetUnavailable, match=r"^engine: lost .*no worker was left.*transcript"):
            oracle.query(ROWS)


def test_a_lost_scheduler_is_said(patient_dask: None) -> None:
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    client = Client(cluster, set_as_default=False)
    oracle = rl.open_oracle(SHALLOW, engine=client)
    client._timeout = 1.0  # for the scheduler to come back, which it will not
    cluster.close()
    with pytest.raises(TargetUnavailable, match=r"^engine: lost .*transcript"):
        oracle.query(ROWS)
    client.close()


@pytest.mark.parametrize(
    "engine", ["dask://user:s3cret@host:8786", "dask://host:8786?token=s3cret", "dask://host#s3cret"]
)
def test_what_may_be_a_secret_is_not_repeated(engine: str) -> None:
    with pytest.raises(UnusableEngine) as refused:
        scheduler_address(engine)
    assert "s3cret" not in str(refused.value)
