"""Progress of verbs: stages with their rows, the time left from the pace, in a terminal, a notebook and a file."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput
from reluctant.testing import planted


def seconds(step: float):
    """A clock that goes on by a step at each look."""
    now = [0.0]

    def look() -> float:
        now[0] += step
        return now[0]

    return look


def test_a_terminal_shows_stages_and_the_time_left(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    oracle = rl.open_oracle(planted((6, 4, 1), 3))
    with rl.show_progress(oracle, clock=seconds(1.0)), oracle.stage("search", expected=100):
        for _ in range(4):
            oracle.query(np.ones((10, 6)))
    lines = capsys.readouterr().err.split("\r")
    assert "search: 40 of 100 rows, about 10 s left" in lines[-2]  # 40 rows in 7 s: each batch enters twice
    assert lines[-1].startswith("40 rows: search 40")
    assert oracle.ledger.listener is None


def test_a_verb_is_followed(capsys):
    oracle = rl.open_oracle(planted((6, 4, 1), 3))
    with rl.show_progress(oracle):
        result = rl.extract(oracle, rng=0)
    said = capsys.readouterr().err
    assert said.startswith(f"{result.queries} rows: health 68")
    assert said.count("\n") == 1


def test_a_notebook_gets_a_bar(monkeypatch):
    shown: list[str] = []
    handle = SimpleNamespace(update=shown.append)
    display = SimpleNamespace(HTML=str, display=lambda html, display_id: handle)
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display))
    oracle = rl.open_oracle(planted((6, 4, 1), 3))
    with rl.show_progress(oracle, clock=seconds(1.0)), oracle.stage("<b>", expected=20):
        oracle.query(np.ones((10, 6)))
        oracle.query(np.ones((10, 6)))
    assert shown[1].startswith('<progress value="0.500"></progress> &lt;b&gt;: 10 of 20 rows')
    assert shown[-1] == '<progress value="1.000"></progress> 20 rows: &lt;b&gt; 20'


def test_only_an_opened_oracle_has_progress():
    with pytest.raises(InvalidInput, match="open_oracle"), rl.show_progress(planted((2, 2, 1), 0)):  # type: ignore[arg-type]
        pass


def test_a_display_of_ones_own_is_called():
    shown: list[tuple[str, float | None, bool]] = []
    oracle = rl.open_oracle(planted((6, 4, 1), 3))
    with rl.show_progress(oracle, to=lambda *given: shown.append(given)):
        rl.extract(oracle, rng=0)
    assert shown[0][0].startswith("health: ")
    assert [last for _, _, last in shown].count(True) == 1
