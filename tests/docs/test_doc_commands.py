"""Command lines in the pages: every command and every option they use exists."""

from __future__ import annotations

import shlex

import pytest
from examples import PAGES, ROOT, command_lines

from reluctant.cli.app import COMMANDS, load

LINES = [(page.relative_to(ROOT).as_posix(), line) for page in PAGES for line in command_lines(page)]


@pytest.mark.parametrize(("page", "line"), LINES)
def test_a_command_line_is_understood(page: str, line: str) -> None:
    name, *arguments = shlex.split(line)[1:]
    assert name in COMMANDS, f"{page}: there is no command {name}"
    options = {option for parameter in load(name).params for option in parameter.opts}
    used = [argument.split("=")[0] for argument in arguments if argument.startswith("-") and argument != "-"]
    assert set(used) <= options | {"--help"}, f"{page}: {line}"


def test_pages_show_commands() -> None:
    assert len(LINES) > 15
