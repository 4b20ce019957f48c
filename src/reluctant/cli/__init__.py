"""Command line: thin commands, and the one place where an error becomes text and an exit status."""

from __future__ import annotations

import signal
import sys
import threading
from importlib.util import find_spec
from typing import Any

__all__ = ["main"]

REPEAT_SECONDS = 0.02  # by then Python has left the callback that swallowed a Ctrl-C


def main() -> None:
    """Entry point of the `reluctant` command."""
    try:
        sys.unraisablehook = _repeat_interrupt
        if find_spec("typer") is None or find_spec("rich") is None:
            sys.exit("The command line needs typer and rich. Run: pip install 'reluctant[cli]'")
        from reluctant.cli.app import run

        sys.exit(run())
    except KeyboardInterrupt:
        sys.exit(130)


def _repeat_interrupt(unraisable: Any) -> None:
    """Send a Ctrl-C again that met a finalizer, a weak reference's callback or a callback from C.

    Python prints an exception raised there and goes on: the command would run to its end. Every import of a module
    runs such a callback (its lock is a weak reference), and so does each look of threadpoolctl at loaded libraries.
    """
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    again = threading.Timer(REPEAT_SECONDS, _interrupt_main_thread)
    again.daemon = True
    again.start()


def _interrupt_main_thread() -> None:
    """Ctrl-C, also where the main thread waits in a system call; Windows knows no signal to one thread."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
