"""Write docs/cli.md from the commands themselves: usage, text and options of each.

python scripts/cli_page.py          writes the page
python scripts/cli_page.py --check  exit status 1 if the page is not the one of the commands
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from marked import markdown_table

from reluctant.cli.app import COMMANDS, load

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
HEAD = """\
# Command line

`reluctant COMMAND --help` prints the same. A TARGET is an `.onnx` or `.npz` file, a Python object (`module:name`), the
URL of a served model, or a name from a [file of settings](ci-gate.md#1-settings-in-a-file).

| exit status | meaning |
|---|---|
| 0 | done and verified |
| 1 | not recovered, a check failed, or a gate found a leak |
| 2 | bad usage or bad input |
| 130, 143 | stopped by Ctrl-C or SIGTERM; a transcript keeps every answer |

`reluctant --install-completion` installs completion for your shell.
"""
EXAMPLE = re.compile(r"^Example: (?P<line>.*)$", re.MULTILINE)
SHARED = "health"  # a command with the options that every command with a TARGET has, and no others


def page() -> str:
    """The whole page: the options that commands share, then each command with its own."""
    shared = load(SHARED).params
    common = f"## Options of every command with a TARGET\n\n{_table(shared)}\n"
    return "\n".join([HEAD, common, *(_section(name, {each.name for each in shared}) for name in COMMANDS)])


def _section(name: str, shared: set[str]) -> str:
    command = load(name)
    lines = [found["line"] for found in EXAMPLE.finditer(command.help)] or [f"reluctant {name}"]
    text = re.sub(r"\n{3,}", "\n\n", EXAMPLE.sub("", command.help).strip())
    everywhere = {parameter.name for parameter in command.params} >= shared
    own = [parameter for parameter in command.params if not (everywhere and parameter.name in shared)]
    example = "\n".join(lines)
    more = "\nAnd the [options of every command with a TARGET](#options-of-every-command-with-a-target).\n"
    return f"## {name}\n\n{text}\n\n```\n{example}\n```\n\n{_table(own)}\n{more if everywhere else ''}"


def _table(parameters: Iterable[Any]) -> str:
    rows = [_row(parameter) for parameter in parameters if parameter.name != "help"]
    return markdown_table(("option", "meaning"), rows) if rows else ""


def _row(parameter: Any) -> tuple[str, str]:
    is_argument = parameter.param_type_name == "argument"
    label = parameter.name.upper() if is_argument else ", ".join(parameter.opts + parameter.secondary_opts)
    return f"`{label}`", " ".join((parameter.help or "").split()).replace("|", "\\|")


def main() -> int:
    """Write the page, or compare it."""
    if "--check" in sys.argv:
        return int(not PAGE.exists() or PAGE.read_text("utf-8") != page())
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
