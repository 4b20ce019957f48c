"""A server that dies, limits, drops, truncates, repeats itself or changes its model: survived, or named."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import (
    InvalidAnswer,
    TargetBusy,
    TargetChanged,
    TargetError,
    TargetTimeout,
    TargetUnavailable,
    TranscriptMismatch,
)
from reluctant.oracles import retry
from reluctant.oracles.http.transport import retry_after
from reluctant.testing import planted
from reluctant.testing.server import Fault, ModelServer, at, every

NETWORK = planted((6, 5, 2), 1)
OTHER = planted((6, 5, 2), 2)
ROWS = np.random.default_rng(2).standard_normal((600, 6))
SURVIVED = [Fault.DROP, Fault.BUSY, Fault.LIMITED, Fault.ERROR, Fault.TRUNCATE, Fault.GARBLE, Fault.SLOW]
OUT_OF_STEP = [Fault.DUPLICATE, Fault.STALE, Fault.DROP_AFTER]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_PAUSE_SECONDS", 0.01)


def serve(faults: Callable[[int], Fault | None] = lambda i: None, **settings: object) -> ModelServer:
    return ModelServer(NETWORK, 6, outputs=2, faults=faults, **settings)


@pytest.mark.parametrize("encoding", ["json", pytest.param("binary", marks=pytest.mark.slow)])
@pytest.mark.parametrize("fault", [*SURVIVED, *OUT_OF_STEP], ids=lambda fault: fault.name)
def test_a_fault_now_and_then_changes_no_answer(fault: Fault, encoding: str) -> None:
    with serve(every(3, fault)) as server, rl.open_oracle(server.url, encoding=encoding, batch=32) as oracle:
        for _ in range(3):
            np.testing.assert_allclose(oracle.query(ROWS), NETWORK(ROWS), atol=1e-13)
        assert oracle.queries >= server.rows
        assert server.questions > 2 * len(ROWS) / 32


def test_all_faults_together_and_a_network_recovered() -> None:
    faults = every(4, *SURVIVED, *OUT_OF_STEP)
    with serve(faults) as server, rl.open_oracle(server.url, batch=16) as oracle:
        result = rl.extract(oracle, rng=0)
    assert result.ok
    assert rl.compare(result.network, NETWORK).parameter_error < 1e-9


@pytest.mark.parametrize("fault", [Fault.BUSY, Fault.LIMITED])
def test_what_a_busy_server_sends_back_is_not_counted(fault: Fault) -> None:
    with serve(every(2, fault)) as server, rl.open_oracle(server.url, batch=50, watch=None) as oracle:
        oracle.query(ROWS)
        assert oracle.queries == server.rows == len(ROWS)
        assert server.questions > len(server.sizes)


def test_retry_after_is_obeyed_by_all_connections() -> None:
    with serve(at({0: Fault.LIMITED})) as server, rl.open_oracle(server.url, batch=32, watch=None) as oracle:
        server.retry_after = "1"
        start = time.monotonic()
        oracle.query(ROWS[:40])
        assert time.monotonic() - start >= 1


@pytest.mark.parametrize("text", ["7", " 7.0 ", formatdate(time.time() + 7, usegmt=True)], ids=["7", "7.0", "a date"])
def test_retry_after_is_a_number_or_a_date(text: str) -> None:
    assert retry_after({"retry-after": text}) == pytest.approx(7, abs=90 if "GMT" in text else 0)


@pytest.mark.parametrize("text", ["", "soon", "-3", "Mon, 99 Foo"])
def test_retry_after_that_says_nothing_is_nothing(text: str) -> None:
    assert retry_after({"retry-after": text}) == 0


def test_a_server_that_asks_for_an_hour_is_given_up() -> None:
    with serve(lambda i: Fault.BUSY) as server, rl.open_oracle(server.url) as oracle:
        server.retry_after = "3600"
        with pytest.raises(TargetBusy, match="come back in 3600 s"):
            oracle.query(ROWS[:3])
        assert server.questions == 1


def test_retries_end() -> None:
    with serve(lambda i: Fault.ERROR) as server, rl.open_oracle(server.url, retries=2, encoding="json") as oracle:
        with pytest.raises(TargetUnavailable, match="answered 500"):
            oracle.query(ROWS[:3])
        assert server.questions == 3


def test_fewer_answers_than_rows_are_not_asked_again() -> None:
    for encoding in ("json", "binary"):
        with serve(lambda i: Fault.SHORT) as server, rl.open_oracle(server.url, encoding=encoding) as oracle:
            with pytest.raises(InvalidAnswer):
                oracle.query(ROWS[:6])
            assert server.questions == 1


@pytest.mark.parametrize("fault", [Fault.SLOW, Fault.TRICKLE])
def test_a_late_reply_is_a_timeout(fault: Fault) -> None:
    with serve(lambda i: fault) as server, rl.open_oracle(server.url, timeout=0.2, retries=0) as oracle:
        server.slowness = 0.5 if fault is Fault.SLOW else 0.01
        with pytest.raises(TargetTimeout, match=r"not answered within 0\.2 s"):
            oracle.query(ROWS[:6])


def test_a_server_that_dies_for_a_while_is_waited_for() -> None:
    with serve() as server, rl.open_oracle(server.url, batch=8, connections=3) as oracle:
        oracle.query(ROWS[:50])
        server.die_for(1.0)
        np.testing.assert_allclose(oracle.query(ROWS), NETWORK(ROWS), atol=1e-13)


def test_a_server_that_dies_in_the_middle_is_waited_for(tmp_path: Path) -> None:
    with serve(lambda i: Fault.SLOW) as server:
        server.slowness = 0.01
        with rl.open_oracle(server.url, batch=8, connections=3, transcript=tmp_path, watch=None) as oracle:
            threading.Timer(0.15, server.die_for, args=(0.7,)).start()
            np.testing.assert_allclose(oracle.query(ROWS), NETWORK(ROWS), atol=1e-13)
            assert server.rows <= len(ROWS) + 6 + 3 * 8


def test_what_was_answered_before_it_died_is_kept(tmp_path: Path) -> None:
    with serve() as server:
        server.faults = lambda i: Fault.DROP if i >= 40 else None
        with rl.open_oracle(server.url, batch=8, transcript=tmp_path, retries=0, watch=None) as oracle:
            with pytest.raises(TargetUnavailable):
                oracle.query(ROWS)
            paid = server.rows
        server.faults = lambda i: None
        with rl.open_oracle(server.url, batch=8, transcript=tmp_path, watch=None) as oracle:
            np.testing.assert_allclose(oracle.query(ROWS), NETWORK(ROWS), atol=1e-13)
        assert paid > 100
        assert server.rows == len(ROWS) + 6 + 3  # the opening questions


# ---- another model


def test_another_model_is_noticed_by_old_rows() -> None:
    with serve() as server, rl.open_oracle(server.url, watch=100) as oracle:
        oracle.query(ROWS)
        server.function = OTHER
        with pytest.raises(TargetChanged, match="answered otherwise now"):
            oracle.query(ROWS)


def test_another_version_is_noticed_at_once() -> None:
    with serve() as server, rl.open_oracle(server.url) as oracle:
        oracle.query(ROWS[:10])
        server.version = "2"
        with pytest.raises(TargetChanged, match="got an answer of model version '2', expected version '1'"):
            oracle.query(ROWS[:10])


def test_a_change_ends_an_extraction_by_name() -> None:
    def changing(rows: np.ndarray) -> np.ndarray:
        return (NETWORK if server.rows < 150 else OTHER)(rows)

    with serve() as server, rl.open_oracle(server.url, watch=50) as oracle:
        server.function = changing
        result = rl.extract(oracle, rng=0)
    assert not result.ok
    assert result.outcome is rl.Outcome.TARGET_FAILED
    assert "answered otherwise now" in result.evidence["error"]


def test_another_model_at_resume_is_refused(tmp_path: Path) -> None:
    with serve() as server:
        with rl.open_oracle(server.url, transcript=tmp_path) as oracle:
            oracle.query(ROWS)
        server.function = OTHER
        with pytest.raises(TranscriptMismatch):
            rl.open_oracle(server.url, transcript=tmp_path)


@pytest.mark.parametrize("noise", [1e-9, 1e-3, 0.3])
def test_fresh_noise_is_no_other_model(noise: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    with serve() as server, rl.open_oracle(server.url, watch=20) as oracle:
        server.function = lambda x: NETWORK(x) + noise * rng.standard_normal((len(x), 2))
        answers = [oracle.query(ROWS) for _ in range(5)]
        asked_again = oracle.queries - 5 * len(ROWS)
    assert asked_again > 0  # the watch looked, and found nothing to say
    assert np.ptp(answers, axis=0).max() > 0


def test_rounding_that_depends_on_the_batch_is_no_other_model() -> None:
    with serve(datatype="FP32") as server, rl.open_oracle(server.url, watch=20) as oracle:
        server.function = lambda x: NETWORK(x) * (1 + 1e-7 * len(x) / 600)
        oracle.query(ROWS)
        assert oracle.queries > len(ROWS)  # the watch looked, and found nothing to say


# ---- long ones


@pytest.mark.slow
def test_half_a_minute_of_death(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    with serve() as server, rl.open_oracle(server.url, batch=8, connections=3, transcript=tmp_path) as oracle:
        threading.Timer(0.2, server.die_for, args=(30,)).start()
        server.faults, server.slowness = lambda i: Fault.SLOW, 0.02
        np.testing.assert_allclose(oracle.query(ROWS), NETWORK(ROWS), atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("trial", range(20))
def test_many_faults_at_random(trial: int) -> None:
    rng = np.random.default_rng(trial)
    faults = {i: rng.choice([*SURVIVED, *OUT_OF_STEP]) for i in range(10_000) if rng.random() < 0.3}
    network = planted((20, 10, 2), trial)
    server = ModelServer(network, 20, outputs=2, faults=at({i: Fault(fault) for i, fault in faults.items()}))
    with server, rl.open_oracle(server.url, batch=16, connections=4) as oracle:
        try:
            result = rl.extract(oracle, rng=trial)
        except TargetError as error:  # pragma: no cover (a result is given, not an error)
            pytest.fail(str(error))
    assert result.ok or result.outcome is rl.Outcome.TARGET_FAILED
    if result.ok:
        assert rl.compare(result.network, network).parameter_error < 1e-7
