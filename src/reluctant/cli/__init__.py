"""Command line: thin commands; the one place where errors become text and an exit status."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the `reluctant` command."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        sys.exit("The command line needs typer and rich. Run: pip install 'reluctant[cli]'")
    try:
        from reluctant.cli.app import run

        sys.exit(run())
    except KeyboardInterrupt:
        sys.exit(130)
