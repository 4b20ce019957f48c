"""The screen of a running command: a bar for each stage at a terminal, nothing when quiet or in a pipe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import reluctant as rl
from reluctant.cli.console import progress, say_error
from reluctant.cli.screen import Screen
from reluctant.errors import InvalidInput
from reluctant.oracles import Ledger, Rows
from reluctant.testing import planted


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)


def extracted(console: Console, quiet: bool = False) -> rl.Result:
    oracle = rl.open_oracle(planted((20, 10, 1), 0))
    with progress(oracle, quiet, console=console):
        result = rl.extract(oracle, rng=0)
    assert oracle.ledger.listener is None
    return result


def test_every_stage_has_its_bar():
    console = terminal()
    for stage in extracted(console).rows:
        assert stage in console.file.getvalue()


@pytest.mark.parametrize("console", [terminal(), Console(file=io.StringIO(), force_terminal=False)])
def test_nothing_is_shown_when_quiet_or_in_a_pipe(console):
    assert extracted(console, quiet=console.is_terminal).ok
    assert console.file.getvalue() == ""


def test_watching_costs_no_rows():
    alone = rl.extract(rl.open_oracle(planted((20, 10, 1), 0)), rng=0)
    assert extracted(terminal()).rows == alone.rows


@pytest.mark.parametrize("quiet", [(), ("--quiet",)], ids=["", "quiet"])
def test_the_command_shows_none_in_a_pipe(quiet, command, npz):
    ended = command("extract", npz, *quiet)
    assert (ended.status, ended.err) == (0, "")


def test_a_bar_is_whole_only_when_its_stage_is_over():
    ledger, screen = Ledger(), Screen(terminal())
    with ledger.during("line", expected=100):
        ledger.enter(Rows(sent=40))
        screen.count(ledger)
    assert screen.tasks[0].percentage == 40
    with ledger.during("probe"):
        ledger.enter(Rows(sent=7))
        screen.count(ledger)
    assert [bar.percentage for bar in screen.tasks] == [100, 0]
    assert screen.tasks[1].total is None
    with ledger.during("line", expected=60):
        ledger.enter(Rows(sent=20))
        screen.count(ledger)
    assert screen.tasks[0].percentage == 60


def test_a_very_long_error_is_cut(capsys):
    say_error(InvalidInput("target: raised " + "x" * 20_000 + " Check it."))
    shown = capsys.readouterr().err
    assert len(shown) < 2200
    assert "Check it." in shown


def test_a_stage_that_is_entered_again_is_not_whole():
    ledger, screen = Ledger(), Screen(terminal())
    for stage, expected in (("line", 40), ("growth", None), ("line", None)):
        with ledger.during(stage, expected=expected):
            ledger.enter(Rows(sent=40))
            screen.count(ledger)
    line, growth = screen.tasks
    assert (line.completed, line.total, line.finished) == (80, None, False)
    assert growth.finished
    assert line.stop_time is None
