"""Questions on a cluster: cut alike whatever the workers, answered in order, counted once, closed by who opened."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dask_targets import NETWORK, SHALLOW, FailingOnce, of_the_batch
from oracle_models import gaussian_rows, linked, save_onnx

import reluctant as rl
from reluctant.oracles import Counting, Ledger
from reluctant.oracles.adapters.dask import SHARDS
from reluctant.oracles.parallel import SMALLEST_SHARE
from reluctant.oracles.transcript import Transcript

MANY = 3 * SHARDS * SMALLEST_SHARE + 17  # more rows than shards of the smallest size hold


@pytest.fixture(scope="module")
def one_worker(patient_dask: None) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    settings = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**settings) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


def same(a: rl.ReLUNetwork, b: rl.ReLUNetwork) -> bool:
    """Bit by bit."""
    pairs = zip((*a.weights, *a.biases), (*b.weights, *b.biases), strict=True)
    return a.widths == b.widths and all(np.array_equal(x, y) for x, y in pairs)


# ---- answers


@pytest.mark.parametrize("n", [1, SMALLEST_SHARE, SMALLEST_SHARE + 1, 500, MANY])
def test_order_is_kept_and_every_row_counts_once(n: int, client: Any) -> None:
    rows = gaussian_rows(n, NETWORK.dim)
    with rl.open_oracle(NETWORK, engine=client) as oracle:
        np.testing.assert_allclose(oracle.query(rows), NETWORK(rows), rtol=1e-13, atol=1e-13)
        assert oracle.queries == n


def test_both_workers_answer(client: Any, patience: float) -> None:
    def who(x: np.ndarray) -> np.ndarray:
        time.sleep(0.02)  # long enough for a task to be given to the other worker
        return np.full(len(x), float(os.getpid()))

    pids: set[int] = set()
    end = time.monotonic() + patience
    with rl.open_oracle(who, dim=3, engine=client) as oracle:
        while len(pids) < 2 and time.monotonic() < end:  # a worker that has just been started opens the target first
            pids |= {int(pid) for pid in oracle.query(gaussian_rows(2000, 3))[:, 0]}
    assert pids == set(client.run(os.getpid).values())


def test_a_question_is_cut_alike_on_one_worker_and_on_two(client: Any, one_worker: Any) -> None:
    """The target's answers tell the size of the batch: another cut would be seen."""
    rows = gaussian_rows(1000, SHALLOW.dim)
    answers = [rl.open_oracle(of_the_batch, dim=SHALLOW.dim, engine=each).query(rows) for each in (client, one_worker)]
    np.testing.assert_array_equal(*answers)
    assert len(np.unique(answers[0] - SHALLOW(rows))) > 1, "the whole question went in one batch"


def test_no_task_has_more_rows_than_a_batch(client: Any) -> None:
    with rl.open_oracle(lambda x: np.full(len(x), float(len(x))), dim=3, engine=client, batch=7) as oracle:
        assert oracle.query(gaussian_rows(100, 3)).max() == 7


def test_one_worker_two_workers_and_none_find_the_same_network(client: Any, one_worker: Any) -> None:
    found = [rl.extract(rl.open_oracle(SHALLOW, engine=engine), rng=0) for engine in (client, one_worker, None)]
    assert all(result.ok for result in found)
    assert same(found[0].network, found[1].network)
    assert same(found[0].network, found[2].network)
    assert len({result.queries for result in found}) == 1


# ---- engines and options


def test_an_engine_by_address_is_closed_with_the_oracle(address: str, client: Any) -> None:
    clients = lambda: len(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.clients)))  # noqa: E731
    before = clients()
    oracle = rl.open_oracle(SHALLOW, engine=address)
    assert clients() == before + 1
    np.testing.assert_array_equal(oracle.query(np.zeros((2, 6))), SHALLOW(np.zeros((2, 6))))
    oracle.close()
    assert clients() == before


def held(client: Any) -> set[str]:
    """Targets on the workers."""
    return {str(key) for key in client.who_has() if str(key).startswith("reluctant-target")}


def test_a_clients_own_connection_stays_open_and_copies_are_dropped(client: Any, patience: float) -> None:
    before = held(client)
    oracle = rl.open_oracle(SHALLOW, engine=client)
    oracle.query(gaussian_rows(100, 6))
    assert held(client) > before
    oracle.close()
    assert client.status == "running"
    deadline = time.monotonic() + patience  # letting go is told to the scheduler in its own time
    while held(client) - before:
        assert time.monotonic() < deadline, "the workers still hold the target"
        time.sleep(0.05)


def test_a_file_need_not_be_where_the_workers_are(client: Any, tmp_path: Path) -> None:
    path = save_onnx(NETWORK, tmp_path / "model.onnx", "float64")
    with rl.open_oracle(path, engine=client) as oracle:
        path.unlink()
        rows = gaussian_rows(10, 4)
        np.testing.assert_allclose(oracle.query(rows), NETWORK(rows), rtol=1e-12, atol=1e-12)


def test_probabilities_outputs_and_domain_are_read_here(client: Any) -> None:
    model = linked(NETWORK, "softmax")
    keywords = {"link": "softmax", "output": [1, 0], "domain": (-1, 1)}
    rows = np.clip(gaussian_rows(50, 4), -1, 1)
    with rl.open_oracle(model, engine=client, **keywords) as there, rl.open_oracle(model, **keywords) as here:
        np.testing.assert_array_equal(there.query(rows[:30]), here.query(rows[:30]))
        with pytest.raises(rl.errors.OutsideDomain):
            there.query(rows + 2)
        assert there.queries == 30


def test_the_budget_is_kept(client: Any) -> None:
    with rl.open_oracle(SHALLOW, engine=client, budget=100) as oracle:
        oracle.query(gaussian_rows(80, 6))
        with pytest.raises(rl.errors.BudgetExhausted):
            oracle.query(gaussian_rows(30, 6))
        assert oracle.queries <= 100


def test_defenses_stand_here_so_that_their_noise_is_the_same(client: Any) -> None:
    rows = gaussian_rows(200, 6)
    answers = [
        rl.open_oracle(rl.defend(rl.open_oracle(SHALLOW, engine=engine), "gaussian=0.1")).query(rows)
        for engine in (client, None)
    ]
    np.testing.assert_allclose(*answers, rtol=1e-13, atol=1e-13)


# ---- transcripts and killed workers


def recorded(folder: Path, dim: int = 6) -> int:
    """Rows in a transcript, each as often as it was paid for."""
    with Transcript(rl.open_oracle(SHALLOW).inner, folder, Ledger()) as transcript:
        return transcript.unused


def killing(client: Any, after: int) -> Callable[[Ledger], None]:
    """Kills a worker, once, when so many rows have been sent."""
    pids = list(client.run(os.getpid).values())

    def look(ledger: Ledger) -> None:
        if pids and ledger.total.sent > after:
            os.kill(pids.pop(), signal.SIGKILL)
            pids.clear()

    return look


def extract_into(folder: Path, engine: Any, listener: Callable[[Ledger], None] | None = None) -> rl.Result:
    with rl.open_oracle(SHALLOW, engine=engine, transcript=folder) as oracle:
        assert isinstance(oracle, Counting)
        oracle.ledger.listener = listener
        return rl.extract(oracle, rng=0)


def test_a_killed_worker_changes_nothing(client: Any, tmp_path: Path, patience: float) -> None:
    before = set(client.run(os.getpid).values())
    undisturbed = extract_into(tmp_path / "undisturbed", None)
    disturbed = extract_into(tmp_path / "disturbed", client, killing(client, undisturbed.queries // 3))
    client.wait_for_workers(2, timeout=patience)
    assert len(before & set(client.run(os.getpid).values())) == 1, "no worker was killed"
    assert disturbed.ok
    assert same(disturbed.network, undisturbed.network)
    assert disturbed.queries == undisturbed.queries
    assert recorded(tmp_path / "disturbed") == recorded(tmp_path / "undisturbed") == undisturbed.queries


@pytest.mark.slow  # dask asks its rows elsewhere, as above
def test_a_worker_killed_while_it_computes_is_survived(client: Any, tmp_path: Path) -> None:
    """The rows it held are asked elsewhere; nobody notices but the clock."""
    marker = tmp_path / "killed"

    def dies_once(x: np.ndarray) -> np.ndarray:
        if len(x) > 1:
            try:
                marker.touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
            except FileExistsError:
                pass
        return SHALLOW(x)

    rows = gaussian_rows(1000, 6)
    with rl.open_oracle(dies_once, dim=6, engine=client) as oracle:
        np.testing.assert_allclose(oracle.query(rows), SHALLOW(rows), rtol=1e-13, atol=1e-13)
        assert oracle.queries == 1 + len(rows)
    assert marker.exists()


def test_a_transcript_goes_on_with_and_without_an_engine(client: Any, tmp_path: Path) -> None:
    rows = gaussian_rows(300, 6)
    with rl.open_oracle(SHALLOW, transcript=tmp_path, engine=client) as oracle:
        answers = oracle.query(rows[:200])
        assert oracle.ledger.total.sent == 200
    for engine in (None, client):
        with rl.open_oracle(SHALLOW, transcript=tmp_path, engine=engine) as oracle:
            np.testing.assert_array_equal(oracle.query(rows)[:200], answers)
            assert oracle.ledger.total.sent == (100 if engine is None else 0)


def test_what_was_answered_before_a_failure_is_never_asked_again(client: Any, tmp_path: Path) -> None:
    """One shard fails: the others are recorded, and only its rows go out a second time."""
    target, rows = FailingOnce(tmp_path), gaussian_rows(500, 6)
    with rl.open_oracle(target, dim=6, transcript=tmp_path / "run", engine=client) as oracle:
        opening = oracle.queries
        with pytest.raises(rl.errors.TargetUnavailable, match="ConnectionError: dropped"):
            oracle.query(rows)
        first = oracle.ledger.total.sent - opening
        np.testing.assert_allclose(oracle.query(rows), SHALLOW(rows), rtol=1e-13, atol=1e-13)
        assert oracle.ledger.total.sent - opening <= first + len(rows) - (first - SMALLEST_SHARE)
    asked = sum(int(line) for file in tmp_path.glob("asked-*") for line in file.read_text().split())
    assert asked == opening + len(rows) + SMALLEST_SHARE


def test_a_failed_shard_is_repeated_by_itself(client: Any, tmp_path: Path) -> None:
    rows = gaussian_rows(500, 6)
    with rl.open_oracle(FailingOnce(tmp_path), dim=6, retries=1, engine=client) as oracle:
        np.testing.assert_allclose(oracle.query(rows), SHALLOW(rows), rtol=1e-13, atol=1e-13)
        assert oracle.queries == 1 + len(rows) + SMALLEST_SHARE


def test_workers_answer_gradients(client: Any, tmp_path: Path) -> None:
    rows = gaussian_rows(100, NETWORK.dim)
    with rl.open_oracle(NETWORK, gradients=True, transcript=tmp_path, engine=client) as oracle:
        found = oracle.query_gradients(rows)
        np.testing.assert_allclose(found.gradients, NETWORK.gradients(rows), rtol=1e-13, atol=1e-13)
        assert oracle.queries == len(rows)
    with rl.open_oracle(NETWORK, gradients=NETWORK.gradients, transcript=tmp_path, engine=client) as oracle:
        np.testing.assert_array_equal(oracle.query_gradients(rows).gradients, found.gradients)
        assert oracle.ledger.total.sent == 0


def test_a_target_without_gradients_says_so_before_it_is_sent(client: Any) -> None:
    with pytest.raises(rl.errors.InvalidInput, match="gradients: got True for"):
        rl.open_oracle(of_the_batch, dim=6, gradients=True, engine=client)
