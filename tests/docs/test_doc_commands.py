"""Command lines in the pages: each can be typed as it is printed."""

from __future__ import annotations

import shlex
from contextlib import nullcontext

import pytest
import typer
from examples import PAGES, ROOT, command_lines

from reluctant.cli.app import COMMANDS, load

LINES = [(page.relative_to(ROOT).as_posix(), line) for page in PAGES for line in command_lines(page)]


@pytest.mark.parametrize(("page", "line"), LINES)
def test_a_command_line_is_understood(page: str, line: str) -> None:
    name, *arguments = shlex.split(line)[1:]
    assert name in COMMANDS, f"{page}: there is no command {name}"
    command = load(name)
    with pytest.raises(typer.Exit) if "--help" in arguments else nullcontext():
        command.make_context(name, arguments)


def test_pages_show_commands() -> None:
    assert len(LINES) > 15
