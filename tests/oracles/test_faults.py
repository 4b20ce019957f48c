"""A target that misbehaves gives a typed error, is asked again where that may help, and is never left hanging."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle_models import Asked, gaussian_rows

from reluctant.errors import (
    InvalidAnswer,
    NonFiniteAnswer,
    TargetError,
    TargetTimeout,
    TargetUnavailable,
)
from reluctant.oracles import CallableOracle, Oracle, Retrying, Timed, open_oracle
from reluctant.oracles.retry import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS
from reluctant.testing import FAULTS, planted
from reluctant.testing.faults import Dying, hanging

NETWORK = planted((4, 5, 2), 1)
ROWS = gaussian_rows(6, 4)

EXPECTED: dict[str, type[TargetError]] = {
    "changes its output shape": InvalidAnswer,
    "raises": TargetUnavailable,
    "answers NaN": NonFiniteAnswer,
    "answers inf": NonFiniteAnswer,
    "answers strings": InvalidAnswer,
    "answers None": InvalidAnswer,
    "answers complex numbers": InvalidAnswer,
    "answers fewer rows": InvalidAnswer,
    "answers one number": InvalidAnswer,
    "answers ragged lists": InvalidAnswer,
}


def faulty(name: str) -> Callable[[np.ndarray], Any]:
    return FAULTS[name](NETWORK)


def ask_twice(oracle: Oracle) -> None:
    oracle.query(ROWS)
    oracle.query(ROWS)


# ---- every fault


def test_every_fault_is_listed() -> None:
    assert set(EXPECTED) == set(FAULTS)


@pytest.mark.parametrize("name", FAULTS)
def test_fault_gives_a_typed_error(name: str) -> None:
    with pytest.raises(TargetError, match=r"^target: ") as caught:
        ask_twice(open_oracle(faulty(name), dim=4))
    assert type(caught.value) is EXPECTED[name]


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_the_same_in_a_thread(name: str) -> None:
    with pytest.raises(TargetError) as caught:
        ask_twice(Timed(CallableOracle(faulty(name), 4), seconds=60))
    assert type(caught.value) is EXPECTED[name]


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "raises"])
def test_wrong_answer_is_not_retried(name: str) -> None:
    pauses: list[float] = []
    target = Asked(faulty(name))
    with pytest.raises(EXPECTED[name]):
        ask_twice(Retrying(CallableOracle(target, 4), 5, sleep=pauses.append))
    assert pauses == []
    assert len(target.calls) <= 2


@pytest.mark.parametrize("answer", [np.empty((6, 0)), {}, object(), "text", b"bytes", np.zeros((7, 2)), [None] * 6])
def test_other_nonsense_is_an_invalid_answer(answer: object) -> None:
    with pytest.raises(InvalidAnswer, match=r"^target: got .*, expected "):
        CallableOracle(lambda _: answer, 4).query(ROWS)


def test_error_of_the_target_is_kept_as_cause() -> None:
    with pytest.raises(TargetUnavailable, match=r"^target: raised RuntimeError: no answer today") as caught:
        CallableOracle(faulty("raises"), 4).query(ROWS)
    assert isinstance(caught.value.__cause__, RuntimeError)


# ---- NaN and inf


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_answer_keeps_rows_and_answers(value: float) -> None:
    def target(x: np.ndarray) -> np.ndarray:
        return np.where(x[:, :1] > 0, value, NETWORK(x))

    oracle = open_oracle(target, dim=4)
    bad = int((ROWS[:, 0] > 0).sum())
    with pytest.raises(NonFiniteAnswer, match=rf"NaN or inf for {bad} of 6 rows") as caught:
        oracle.query(ROWS)
    np.testing.assert_array_equal(caught.value.rows, ROWS)
    np.testing.assert_array_equal(caught.value.answers, target(ROWS))


def test_large_answers_are_finite() -> None:
    large = np.full((6, 2), np.finfo(float).max)
    np.testing.assert_array_equal(CallableOracle(lambda _: large, 4).query(ROWS), large)


def test_answer_passes_nan_on() -> None:
    assert np.isnan(open_oracle(faulty("answers NaN"), dim=4).answer(ROWS)).all()


# ---- hanging


def test_hanging_target_times_out(patience: float) -> None:
    let_go = threading.Event()
    oracle = Timed(CallableOracle(lambda x: (let_go.wait(patience), NETWORK(x))[1], 4), seconds=0.05)
    with pytest.raises(TargetTimeout, match=r"^target: no answer to 6 rows within 0\.05 s"):
        oracle.query(ROWS)
    let_go.set()


def test_hanging_target_times_out_on_opening() -> None:
    with pytest.raises(TargetTimeout):
        open_oracle(hanging(NETWORK, seconds=5), dim=4, timeout=0.05)


def test_slow_target_has_its_time() -> None:
    oracle = open_oracle(hanging(NETWORK, seconds=0.05), dim=4, timeout=30)
    np.testing.assert_array_equal(oracle.query(ROWS), NETWORK(ROWS))


def test_timeout_is_retried() -> None:
    target = Asked(hanging(NETWORK, seconds=5))
    oracle = Retrying(Timed(CallableOracle(target, 4), seconds=0.02), 2, sleep=lambda _: None)
    with pytest.raises(TargetTimeout):
        oracle.query(ROWS)
    assert target.calls == [6, 6, 6]


# ---- dying and coming back


def test_dying_target_is_unavailable() -> None:
    oracle = open_oracle(Dying(NETWORK, rows=7), dim=4)
    oracle.query(ROWS)
    with pytest.raises(TargetUnavailable, match=r"^target: raised ConnectionError: the target has died"):
        oracle.query(ROWS)


def test_dying_target_recovers_with_retries() -> None:
    oracle = open_oracle(Dying(NETWORK, rows=7, failures=1), dim=4, retries=1)
    for _ in range(3):
        np.testing.assert_array_equal(oracle.query(ROWS), NETWORK(ROWS))
    assert oracle.ledger.total.sent == 1 + 4 * len(ROWS)


def test_retries_end() -> None:
    target = Asked(Dying(NETWORK, rows=0))
    with pytest.raises(TargetUnavailable):
        Retrying(CallableOracle(target, 4), 3, sleep=lambda _: None).query(ROWS)
    assert target.calls == [6] * 4


def test_pauses_grow_up_to_the_longest() -> None:
    pauses: list[float] = []
    with pytest.raises(TargetUnavailable):
        Retrying(CallableOracle(faulty("raises"), 4), 9, sleep=pauses.append).query(ROWS)
    doubled = [FIRST_PAUSE_SECONDS * 2**k for k in range(9)]
    assert pauses == [min(pause, LONGEST_PAUSE_SECONDS) for pause in doubled]
    assert pauses[-1] == LONGEST_PAUSE_SECONDS


def test_pauses_start_anew_with_each_question() -> None:
    pauses: list[float] = []
    target = Dying(NETWORK, rows=0, failures=2)
    oracle = Retrying(CallableOracle(target, 4), 3, sleep=pauses.append)
    oracle.query(ROWS)
    target.failures = 1
    oracle.query(ROWS)
    assert pauses == [FIRST_PAUSE_SECONDS, 2 * FIRST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS]


# ---- what is not the target's fault


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("timeout", [None, 60])
def test_interrupt_passes_through(error: type[BaseException], timeout: float | None) -> None:
    def interrupted(x: np.ndarray) -> np.ndarray:
        raise error

    with pytest.raises(error):
        open_oracle(interrupted, dim=4, retries=3, timeout=timeout)
