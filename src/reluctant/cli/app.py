"""The application: commands registered, errors caught once, exit status returned.

Exit status: 0 done and verified, 1 not recovered or a check failed, 2 bad usage or bad input, 130 stopped
by the user (Ctrl-C), 143 by SIGTERM.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from reluctant._version import __version__
from reluctant.cli.audit import audit
from reluctant.cli.commands import extract, health
from reluctant.cli.console import say_error
from reluctant.cli.demo import demo
from reluctant.cli.estimate import estimate
from reluctant.cli.flip import flip
from reluctant.cli.learn import learn
from reluctant.cli.report import report
from reluctant.cli.reproduce import reproduce
from reluctant.cli.span import span
from reluctant.cli.verify import verify
from reluctant.errors import InvalidInput, MissingDependency, ReluctantError, TranscriptError

__all__ = ["app", "run"]

DONE, FAILED, BAD_INPUT = 0, 1, 2
BAD_INPUT_ERRORS = (InvalidInput, MissingDependency, TranscriptError)

app = typer.Typer(
    name="reluctant",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    help="Look at a ReLU network through its answers alone and get back what it hides. "
    "For models that you own or may test.",
)


def _exiting(command: Callable[..., int]) -> Callable[..., Any]:
    """A command whose return value is the exit status."""

    @wraps(command)
    def run_and_exit(**arguments: Any) -> None:
        raise typer.Exit(command(**arguments))

    return run_and_exit


for _command in (demo, audit, report, extract, learn, span, flip, verify, health, estimate, reproduce):
    app.command()(_exiting(_command))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; errors become one message on standard error and a status."""
    try:
        app(arguments, prog_name="reluctant")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else DONE
    except ReluctantError as error:
        say_error(error)
        return BAD_INPUT if isinstance(error, BAD_INPUT_ERRORS) else FAILED
    return DONE
