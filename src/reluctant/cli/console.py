"""The terminal: messages and progress on standard error, and Ctrl-C or SIGTERM.

Results alone go to standard output. A SIGTERM, as a scheduler or container sends it, counts as Ctrl-C: a command keeps
what it knows. Rich is imported where a picture or a bar is shown.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from reluctant.errors import ReluctantError

if TYPE_CHECKING:
    from rich.console import Console

    from reluctant.oracles import Counting

# The name of a longer run, how many parts of it are done, of how many, and which one begins.
Watch = Callable[[str, int, int, str], None]

INTERRUPTED = 130  # what a shell gives for Ctrl-C
TERMINATED = 143  # and for SIGTERM


def note(text: str) -> None:
    """Say something to the person at the terminal."""
    print(text, file=sys.stderr, flush=True)


def say_error(error: ReluctantError) -> None:
    """Say what went wrong, quiet or not, with the name under which the messages explain it.

    An argument of the library that is an option here is named by its flag, also in what to do.
    """
    from reluctant.cli.advice import typed_words

    note(f"error: {shortened(typed_words(error.words))} [{error.slug}]")


LONGEST_ERROR = 2000  # characters: a target may put a whole page into its error


def shortened(text: str) -> str:
    """The text, without the middle of a very long one: it begins with what happened, and ends with what to do."""
    if len(text) <= LONGEST_ERROR:
        return text
    half = LONGEST_ERROR // 2
    return f"{text[:half]} ... ({len(text) - 2 * half} characters left out) ... {text[-half:]}"


class _Note(logging.Handler):
    """Shows the log to the person at the terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


@contextmanager
def show_waits(quiet: bool) -> Iterator[None]:
    """Say why and how long the command waits for a target; nothing when quiet."""
    from reluctant.oracles.retry import LOG

    handler = logging.NullHandler() if quiet else _Note()
    LOG.addHandler(handler)
    spread, LOG.propagate = LOG.propagate, False
    try:
        yield
    finally:
        LOG.removeHandler(handler)
        LOG.propagate = spread


# ---- requests to end


@dataclass
class StopRequest:
    """Whether a SIGTERM came. armed: it interrupts the work under way; else that work ends first."""

    asked: bool = False
    armed: bool = True

    @property
    def status(self) -> int:
        """The exit status of work that was stopped."""
        return TERMINATED if self.asked else INTERRUPTED

    def _ring(self, _: int, __: FrameType | None) -> None:
        first, self.asked = not self.asked, True
        if first and self.armed:
            raise KeyboardInterrupt


@contextmanager
def stoppable() -> Iterator[StopRequest]:
    """Turn the first SIGTERM into `KeyboardInterrupt`, where signals can be caught: in the main thread.

    One that nobody catches ends the command with its status.
    """
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGTERM, stop._ring)
    try:
        yield stop
    except KeyboardInterrupt:
        if stop.asked:
            raise SystemExit(TERMINATED) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


# ---- progress


@contextmanager
def progress(oracle: Counting, quiet: bool, *, console: Console | None = None) -> Iterator[Watch]:
    """Show a bar for each stage while rows come in; nothing when quiet or not at a terminal.

    Gives a function to call with the parts of a longer run; away from a terminal it says them line by line.
    """
    if quiet:
        yield _nothing
        return
    from rich.console import Console

    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield _say_part
        return
    from reluctant.cli.screen import Screen

    with Screen(console) as screen:
        oracle.ledger.listener = screen.count
        try:
            yield screen.part
        finally:
            oracle.ledger.listener = None


def _nothing(name: str, done: int, of: int, part: str) -> None:
    pass


def _say_part(name: str, done: int, of: int, part: str) -> None:
    if part:
        note(f"{name} {done + 1}/{of}: {part}")
