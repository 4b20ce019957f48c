"""What runs on a worker, run here: a sealed target is opened once, and what goes wrong comes back as data."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dask_targets import SHALLOW, busy, raising
from oracle_models import gaussian_rows

from reluctant.errors import TargetBusy, TargetUnavailable, UnknownTarget, UnusableEngine
from reluctant.oracles import CallableOracle, NetworkOracle, Oracle
from reluctant.oracles.adapters.dask import RemoteError, SealedTarget, answer_rows, describe_target, seal_target

ROWS = gaussian_rows(5, 6)


def parcel(target: Any) -> SealedTarget:
    return SealedTarget(seal_target(lambda: CallableOracle(target, 6), "target"))


def test_a_target_is_opened_once_and_asked_with_rows_that_may_be_read_only(tmp_path: Path) -> None:
    def make() -> Oracle:
        with (tmp_path / "opened").open("a") as file:
            file.write("x")
        return NetworkOracle(SHALLOW)

    sealed, rows = SealedTarget(seal_target(make, "target")), ROWS.copy()
    rows.setflags(write=False)
    for _ in range(2):
        np.testing.assert_array_equal(answer_rows(sealed, rows), SHALLOW(ROWS))
    assert (tmp_path / "opened").read_text() == "x"


def test_from_worker_to_worker_goes_the_sealed_form() -> None:
    first = parcel(SHALLOW)
    answers = answer_rows(first, ROWS)
    second = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(answer_rows(second, ROWS), answers)
    assert describe_target(second).dim == 6


@pytest.mark.parametrize(("target", "kind"), [(raising, TargetUnavailable), (busy, TargetBusy)])
def test_an_error_of_the_target_is_data(target: Any, kind: type[Exception]) -> None:
    found = answer_rows(parcel(target), ROWS)
    assert isinstance(found, RemoteError)
    error = pickle.loads(pickle.dumps(found)).error()
    assert type(error) is kind
    if kind is TargetBusy:
        assert error.retry_after == 7.0


def test_what_cannot_be_opened_there_is_named() -> None:
    def missing() -> Oracle:
        raise UnknownTarget("target: got nothing")

    def broken() -> Oracle:
        raise ZeroDivisionError("at the start")

    for make in (missing, broken):
        found = describe_target(SealedTarget(seal_target(make, "target")))
        assert isinstance(found, RemoteError)
        assert isinstance(found.error(), UnusableEngine)


def test_an_error_of_ours_on_opening_stays_what_it_is() -> None:
    def refusing() -> Oracle:
        raise TargetBusy("target: later", retry_after=3.0)

    found = describe_target(SealedTarget(seal_target(refusing, "target")))
    assert isinstance(found, RemoteError)
    assert type(found.error()) is TargetBusy
