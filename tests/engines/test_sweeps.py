"""Sweeps on processes and on a cluster: the same results, in the same order, wherever a piece was run."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
from sweep_pieces import Unopenable, failing, fatal, late, squared_somewhere

from reluctant.engines import as_they_end, in_order, spread
from reluctant.errors import UnusableEngine


def test_in_order() -> None:
    pairs = iter([(2, "c"), (0, "a"), (1, "b"), (3, "d")])
    ordered = in_order(pairs)
    assert next(ordered) == "a", "nothing is held back longer than needed"
    assert list(ordered) == ["b", "c", "d"]


def test_one_after_the_other_is_lazy() -> None:
    assert next(spread(failing, range(5))) == 0
    assert dict(as_they_end(failing, range(3))) == {0: 0, 1: 1, 2: 2}


def test_on_processes() -> None:
    found = list(spread(squared_somewhere, range(6), jobs=2))
    assert [value for value, _ in found] == [0, 1, 4, 9, 16, 25]
    assert os.getpid() not in {pid for _, pid in found}


@pytest.mark.parametrize("by", ["client", "address", "printed"])
def test_on_a_cluster(by: str, request: pytest.FixtureRequest, client: Any) -> None:
    found = list(spread(squared_somewhere, range(12), engine=request.getfixturevalue(by)))
    assert [value for value, _ in found] == [number**2 for number in range(12)]
    assert {pid for _, pid in found} <= set(client.run(os.getpid).values())
    assert client.status == "running"


def test_an_error_of_a_piece_is_its_own(client: Any) -> None:
    with pytest.raises(ValueError, match="not 3"):
        list(spread(failing, range(5), engine=client))


def test_a_piece_that_ran_out_of_its_own_time_says_so(client: Any) -> None:
    with pytest.raises(TimeoutError, match=r"[01] took too long"):
        list(spread(late, range(2), engine=client))


@pytest.mark.parametrize("pieces", [(threading.Lock().locked, [1]), (failing, [threading.Lock()])])
def test_what_cannot_be_sent_is_refused_here(pieces: tuple[Any, Any], client: Any) -> None:
    with pytest.raises(UnusableEngine, match=r"^function, items: got what cannot be sent to workers .*lock"):
        list(spread(*pieces, engine=client))


def test_what_workers_cannot_open_is_no_error_of_the_piece(client: Any) -> None:
    with pytest.raises(UnusableEngine, match=r"^engine: got workers that cannot open a piece .*no module of that name"):
        list(spread(failing, [Unopenable()], engine=client))


def test_a_piece_that_kills_its_workers_is_given_up(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    with pytest.raises(UnusableEngine, match=r"^engine: got a piece that was not done .*workers died"):
        list(spread(fatal, range(1), engine=client))


def test_what_is_no_engine_is_refused_before_anything_runs() -> None:
    with pytest.raises(UnusableEngine, match=r"^engine: got 'somewhere'"):
        list(spread(fatal, range(1), engine="somewhere"))
