"""The search as a picture in the terminal: round by round at a terminal, never in a pipe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import reluctant as rl
from reluctant.cli.console import progress
from reluctant.report.film import TerminalFilm
from reluctant.testing import planted


def terminal(width: int = 80, encoding: str = "utf-8", **options) -> Console:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    return Console(file=file, force_terminal=True, width=width, color_system=None, **options)


def shown(console: Console) -> str:
    console.file.flush()
    return console.file.buffer.getvalue().decode(console.file.encoding)


def extracted(console: Console, quiet: bool = False) -> rl.Result:
    oracle = rl.open_oracle(planted((20, 10, 1), 0))
    with progress(oracle, quiet, console=console):
        result = rl.extract(oracle, rng=0)
    assert oracle.ledger.viewer is None
    return result


def test_every_round_is_shown():
    console = terminal()
    search = extracted(console).evidence["line search"]
    for number in range(search.rounds):
        then = search.at(number)
        assert f"round {number + 1}, {len(then.t)} rows, {len(then.creases)} creases" in shown(console)
    assert "10 creases" in shown(console)
    assert "verify " in shown(console)  # the bars go on below it


def test_nothing_is_shown_when_quiet():
    console = terminal()
    assert extracted(console, quiet=True).ok
    assert shown(console) == ""


def test_nothing_is_shown_in_a_pipe():
    file = io.StringIO()
    assert extracted(Console(file=file, force_terminal=False)).ok
    assert file.getvalue() == ""


@pytest.mark.parametrize("console", [terminal(width=30), terminal(encoding="ascii")], ids=["narrow", "ascii"])
def test_no_picture_where_there_is_no_room_for_one(console):
    search = extracted(console).evidence["line search"]
    assert "the function along a line" not in shown(console)
    console.print(TerminalFilm(search))
    assert "▲" not in shown(console)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_finished_picture(width):
    search = extracted(terminal()).evidence["line search"]
    console = terminal(width)
    console.print(TerminalFilm(search))
    lines = shown(console).splitlines()
    assert len(lines) == 11  # frame, eight rows, marks, frame
    assert {len(line) for line in lines} == {min(width, 100)}
    assert 1 <= lines[-2].count("▲") <= 10
    dotted = [{column for column, character in enumerate(line) if character > "\u2800"} for line in lines[1:-2]]
    assert set.union(*dotted) == set(range(2, min(width, 100) - 2))  # the curve is known in every column


def test_watching_costs_no_rows():
    alone = rl.extract(rl.open_oracle(planted((20, 10, 1), 0)), rng=0)
    assert extracted(terminal()).rows == alone.rows


@pytest.mark.parametrize("quiet", [(), ("--quiet",)], ids=["", "quiet"])
def test_the_command_shows_none_in_a_pipe(quiet, command, npz):
    ended = command("extract", npz, *quiet)
    assert (ended.status, ended.err) == (0, "")
