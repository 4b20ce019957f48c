"""At a terminal a bar shows the stage and its rows, on standard error alone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


def at_a_terminal(command: list[str], folder) -> tuple[str, str]:
    """Standard output, and what a terminal at standard error was sent."""
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    shown = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    out, _ = process.communicate()
    assert process.returncode == 0
    return out, shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other side has closed
        return b""


def test_a_bar_is_shown(main, folder, npz):
    out, shown = at_a_terminal([*main, "health", str(npz)], folder)
    assert "piecewise linear" in out.splitlines()[0]
    assert "health" in shown
    assert "102/102" in shown


def test_no_bar_is_shown_when_quiet(main, folder, npz):
    assert at_a_terminal([*main, "health", str(npz), "--quiet"], folder)[1] == ""
