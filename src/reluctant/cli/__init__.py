"""Command line: thin commands, and the one place where an error becomes text and an exit status."""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Entry point of the `reluctant` command."""
    if find_spec("typer") is None or find_spec("rich") is None:
        sys.exit("The command line needs typer and rich. Run: pip install 'reluctant[cli]'")
    try:
        from reluctant.cli.app import run

        sys.exit(run())
    except KeyboardInterrupt:
        sys.exit(130)
