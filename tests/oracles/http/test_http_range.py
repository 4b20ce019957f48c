"""A server that breaks down at inputs outside its range: the wait is told, bounded, and the range is named."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import TargetRefused, TargetUnavailable
from reluctant.oracles import retry
from reluctant.oracles.retry import RETRIES_IF_THE_SAME, AnsweredSizes, answered_sizes
from reluctant.testing import planted
from reluctant.testing.server import Fault, ModelServer, Refusal, at

NETWORK = planted((6, 5, 2), 1)
NEAR = np.random.default_rng(2).uniform(-3, 3, (12, 6))
FAR = 10 * NEAR
TRIES, LOOKS = 9, 6  # of eight retries; rows asked again from the third failure on
BREAKS = pytest.mark.parametrize("fault", [Fault.DROP, Fault.ERROR], ids=["drop", "500"])


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """No time is lost; what would have been waited for is kept."""
    waited: list[float] = []
    monkeypatch.setattr(retry.Retrying.__init__, "__defaults__", (waited.append,))
    return waited


def serve(fault: Fault | None, **settings: object) -> ModelServer:
    return ModelServer(NETWORK, 6, outputs=2, accepts=(-5, 5), out_of_range=fault, **settings)


def asked(server: ModelServer) -> rl.Oracle:
    return rl.open_oracle(server.url, encoding="json", watch=None)


@BREAKS
def test_the_error_names_a_range_that_was_answered(fault: Fault) -> None:
    with serve(fault) as server, asked(server) as oracle:
        oracle.query(NEAR)
        with pytest.raises(TargetUnavailable) as caught:
            oracle.query(FAR)
        said, sizes = str(caught.value), answered_sizes(oracle)
    assert sizes is not None
    low, high = sizes.diagnosis.remedies[0].options["domain"]
    assert NEAR.min() <= low < NEAR.min() + 0.02
    assert NEAR.max() - 0.02 < high <= NEAR.max()
    assert f"Tried {TRIES} times: 12 rows with numbers up to {np.abs(FAR).max():.3g} in size" in said
    assert str(sizes.diagnosis) in said
    assert [remedy.purpose for remedy in sizes.diagnosis.remedies] == ["answered-range"]


def test_a_refusal_names_the_range_too() -> None:
    with serve(None) as server, asked(server) as oracle:
        with pytest.raises(TargetRefused, match=r"inputs must lie between -5 and 5.*the range of inputs") as caught:
            oracle.query(FAR)
        assert "that was answered" not in str(caught.value)  # there is none yet
        oracle.query(NEAR)
        with pytest.raises(TargetRefused, match=r"answered: .*domain=\(") as caught:
            oracle.query(FAR)
        with pytest.raises(TargetRefused, match=r"domain=\("):
            oracle.query(FAR[:1])
        assert server.rows == len(NEAR)


def test_a_refusal_of_small_inputs_names_no_range() -> None:
    def refuses_all(rows: np.ndarray) -> np.ndarray:
        if np.abs(rows).max() < 1:
            raise Refusal(400, "inputs must not be small")
        return NETWORK(rows)

    with ModelServer(refuses_all, 6, outputs=2) as server, asked(server) as oracle:
        oracle.query(NEAR)
        with pytest.raises(TargetRefused, match="must not be small") as caught:
            oracle.query(NEAR / 10)
    assert "was answered" not in str(caught.value)


@BREAKS
def test_no_minutes_are_waited_where_other_rows_are_answered(fault: Fault, pauses: list[float]) -> None:
    with serve(fault) as server, asked(server) as oracle:
        oracle.query(NEAR)
        for times in (1, 2, 3):
            with pytest.raises(TargetUnavailable):
                oracle.query(times * FAR)
            assert server.questions == 1 + TRIES + LOOKS + 2 * (times - 1)  # once known, one retry
        assert oracle.queries == 12 + 12 * (TRIES + 4) + LOOKS
    assert sum(pauses) <= 6


def test_inputs_between_what_was_answered_and_what_was_not_have_all_their_retries() -> None:
    with serve(Fault.ERROR) as server, asked(server) as oracle:
        oracle.query(NEAR)
        for rows in (FAR, FAR / 1.5):
            before = server.questions
            with pytest.raises(TargetUnavailable):
                oracle.query(rows)
            assert server.questions == before + TRIES + LOOKS


def test_a_server_that_comes_back_is_no_range(pauses: list[float]) -> None:
    faults = at(dict.fromkeys(range(1, 11), Fault.DROP))
    with ModelServer(NETWORK, 6, outputs=2, faults=faults) as server, asked(server) as oracle:
        oracle.query(NEAR)
        np.testing.assert_allclose(oracle.query(FAR), NETWORK(FAR), atol=1e-12)
        sizes = answered_sizes(oracle)
    assert pauses == [0.5, 1, 2, 4, 8, 16]  # the row that was answered is not answered now
    assert sizes is not None
    assert sizes.diagnosis is None


def test_failures_at_small_inputs_name_no_range() -> None:
    with ModelServer(NETWORK, 6, outputs=2) as server, rl.open_oracle(server.url, retries=1, watch=None) as oracle:
        oracle.query(FAR)
        server.faults = lambda i: Fault.DROP
        for rows in (NEAR, 2 * FAR):
            with pytest.raises(TargetUnavailable) as caught:
                oracle.query(rows)
            assert "was answered" not in str(caught.value)


def test_more_rows_than_were_answered_at_once_are_told_beside_the_range(pauses: list[float]) -> None:
    with serve(Fault.DROP) as server, asked(server) as oracle:
        oracle.query(NEAR[:2])
        with pytest.raises(TargetUnavailable, match=r"limits the rows of a request, say so: .*batch=2"):
            oracle.query(FAR)


def test_many_rows_at_once_are_given_time(pauses: list[float]) -> None:
    """A server that is short of memory answers one row, and perhaps many rows later."""

    def short_of_memory(rows: np.ndarray) -> np.ndarray:
        if len(rows) > 1:
            raise ConnectionAbortedError
        return NETWORK(rows)

    with ModelServer(short_of_memory, 6, outputs=2) as server, asked(server) as oracle:
        oracle.query(NEAR[np.abs(NEAR).max(axis=1).argmax()][None])
        with pytest.raises(TargetUnavailable):
            oracle.query(NEAR)
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30]


def test_a_target_that_never_answered_is_not_waited_for_again(pauses: list[float]) -> None:
    with ModelServer(NETWORK, 6, outputs=2, faults=lambda i: Fault.ERROR) as server, asked(server) as oracle:
        for scale in (1.0, 0.1):
            with pytest.raises(TargetUnavailable, match="nothing was answered yet"):
                oracle.query(scale * NEAR)
        assert server.questions == 1 + RETRIES_IF_THE_SAME + 2


def test_a_target_that_drops_every_call_is_given_up_soon(pauses: list[float]) -> None:
    """As a wrong number of inputs does to a small server: it takes the call, fails and closes the connection."""
    with (
        ModelServer(NETWORK, 6, outputs=2, faults=lambda i: Fault.DROP) as server,
        asked(server) as oracle,
        pytest.raises(TargetUnavailable, match="check dim="),
    ):
        oracle.query(NEAR)
    assert len(pauses) == RETRIES_IF_THE_SAME


def test_the_wait_is_told_from_the_second_failure_on(caplog: pytest.LogCaptureFixture) -> None:
    with serve(Fault.DROP) as server, asked(server) as oracle:
        oracle.query(NEAR)
        with caplog.at_level(logging.WARNING), pytest.raises(TargetUnavailable):
            oracle.query(FAR)
    said = caplog.messages
    largest = np.abs(FAR).max()
    assert len(said) == TRIES - 2
    assert said[0].startswith(
        f"Try 2 of 9 failed, next in 1 s: 12 rows with numbers up to {largest:.3g} in size (answered so far: up to "
        f"{largest / 10:.3g}). target: POST "
    )
    assert said[-1].startswith("Try 8 of 9 failed, next in 0.5 s: ")


def test_one_failure_is_not_worth_a_word(caplog: pytest.LogCaptureFixture) -> None:
    with ModelServer(NETWORK, 6, outputs=2, faults=at({1: Fault.DROP})) as server, asked(server) as oracle:
        oracle.query(NEAR)
        oracle.query(NEAR)
    assert not caplog.messages


@pytest.mark.parametrize(
    ("answered", "named"),
    [
        ((-3.0749, 4.0211), (-3.07, 4.02)),
        ((0.0, 1.0), (0, 1)),
        ((-12345.0, 250.0), (-12300, 250)),
        ((0.0, 0.0), None),
    ],
)
def test_bounds_are_named_in_few_digits_and_lie_inside(
    answered: tuple[float, float], named: tuple[float, float] | None
) -> None:
    sizes = AnsweredSizes()
    sizes.answered(np.array([answered]))
    sizes.given_up(np.array([[1e6, 0.0]]))
    assert sizes.diagnosis.remedies[0].options["domain"] == named
