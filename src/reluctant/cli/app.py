"""The application: its table of commands, the handling of errors, and the exit status.

Exit status: 0 done and verified, 1 not recovered or a check failed, 2 bad usage or bad input, 130 stopped
by the user (Ctrl-C), 143 by SIGTERM.
"""

from __future__ import annotations

import codecs
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from reluctant._version import __version__
from reluctant.errors import InvalidInput, MissingDependency, ReluctantError, TranscriptError

DONE, FAILED, BAD_INPUT = 0, 1, 2
BAD_INPUT_ERRORS = (InvalidInput, MissingDependency, TranscriptError)
USAGE_ERROR: Any = typer.BadParameter.__base__  # click's, or the one of typer's own copy of click


@dataclass(frozen=True)
class Home:
    """The module of `cli/commands/` that holds a command, and its line in `reluctant --help`."""

    module: str
    line: str


# In the order of the help. A line is the first one of the command's docstring, known here without importing it.
COMMANDS = {
    "demo": Home("audit_commands", "Audit a bundled digits classifier and write a report."),
    "audit": Home("audit_commands", "Measure what a model's answers leak, and what would help."),
    "report": Home("audit_commands", "Make the report of an audit again from its record."),
    "compare-audits": Home("audit_commands", "Say what got worse and what got better between two audits."),
    "extract": Home("network_commands", "Recover the network behind a target exactly, and verify it."),
    "learn": Home("network_commands", "Learn a network with one hidden layer to a given accuracy."),
    "span": Home("input_commands", "Find the input directions that a target depends on."),
    "flip": Home("input_commands", "Find a small change of one input that flips the answer."),
    "verify": Home("network_commands", "Ask a target where a network could be wrong, and compare."),
    "health": Home("input_commands", "Measure an interface: noise, rounding, shape, faults."),
    "estimate": Home("estimate_command", "Estimate what an attack on a network of a given shape costs."),
    "reproduce": Home("reproduce_command", "Run the papers' experiments again and check their claims."),
}


def _new_app(**settings: Any) -> typer.Typer:
    return typer.Typer(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **{"add_completion": False, **settings},
    )


def load(name: str) -> Any:
    """A command, imported: its options, its help and what it runs."""
    from reluctant.cli.config import ConfiguredCommand

    alone, home = _new_app(), import_module(f"reluctant.cli.commands.{COMMANDS[name].module}")
    alone.command(name, cls=ConfiguredCommand)(_exiting(getattr(home, name.replace("-", "_"))))
    return typer.main.get_command(alone)


def _exiting(command: Callable[..., int]) -> Callable[..., Any]:
    """A command whose return value is the exit status."""

    @wraps(command)
    def run_and_exit(**arguments: Any) -> None:
        raise typer.Exit(command(**arguments))

    return run_and_exit


class _Commands(typer.core.TyperGroup):
    """Lists names and lines; the command that runs, or whose help is asked for, is imported then."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, others = super().resolve_command(ctx, args)
        return name, None if name is None else load(name), others

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the options before the command; without arguments the help is asked for."""
        if not args:
            return super().parse_args(ctx, args)
        with _one_line():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _one_line():
            return super().invoke(ctx)


@contextmanager
def _one_line() -> Iterator[None]:
    """What was mistyped is an error of one line, without the usage before it."""
    try:
        yield
    except USAGE_ERROR as error:
        said = " ".join(error.format_message().split()).rstrip(".")
        path = error.ctx.command_path if error.ctx else "reluctant"
        raise InvalidInput(f"{said}. {path} --help lists all that it takes.") from error


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


def _make_app() -> typer.Typer:
    app = _new_app(
        name="reluctant",
        cls=_Commands,
        no_args_is_help=True,
        add_completion=True,
        help="Model extraction for ReLU networks: recover a network from its answers to queries. "
        "For models that you own or may test.",
    )

    @app.callback()
    def options(
        version: Annotated[
            bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        pass

    for name, home in COMMANDS.items():
        app.command(name, short_help=home.line)(lambda: None)  # a placeholder in the list for the one that `load` gives
    return app


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; errors become one message on standard error and a status."""
    codecs.register_error("plain-letters", _in_plain_letters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="plain-letters")
    try:
        _make_app()(arguments, prog_name="reluctant")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else DONE
    except ReluctantError as error:
        from reluctant.cli.console import say_error

        say_error(error)
        return BAD_INPUT if isinstance(error, BAD_INPUT_ERRORS) else FAILED
    return DONE


SUPERSCRIPTS = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
PLAIN_LETTERS = str.maketrans(
    {"→": "->", "≤": "<=", "≥": ">=", "√": "sqrt ", "≈": "~", "−": "-", "–": "-", "⁻": "-", "×": "x", "·": "*"}
)


def _in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    """What an encoding lacks: arrows and signs as ASCII writes them, superscripts after a ^, else "?".

    A raised number is written in one way: cp1252 has ¹, ² and ³, and lacks the other digits.
    """
    assert isinstance(error, UnicodeEncodeError)
    text, start, end = error.object, error.start, error.end
    raised = text[start] in SUPERSCRIPTS and text[start - 1 : start] not in tuple(SUPERSCRIPTS)
    while text[start] in SUPERSCRIPTS and text[end : end + 1] in tuple(SUPERSCRIPTS):
        end += 1
    lacking = unicodedata.normalize("NFKD", text[start:end].translate(PLAIN_LETTERS))
    return "^" * raised + lacking.encode("ascii", "replace").decode(), end
