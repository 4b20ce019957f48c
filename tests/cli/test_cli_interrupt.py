"""Ctrl-C on a slow target: what was answered is kept, the way on is said, and the next run replays it."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from sweeps import sweep

# Answers its first calls at once, says so in a file, and then hangs: the signal comes at a known place.
HANGING = """
import time
from pathlib import Path
import numpy as np

W = np.random.default_rng(0).standard_normal((8, 5))
calls = 0

def target(x):
    global calls
    calls += 1
    if calls > 4 and not Path("mended").exists():
        Path("hanging").touch()
        time.sleep(600)
    return np.maximum(x @ W.T + 0.3, 0).sum(axis=1)
"""


@pytest.fixture
def interrupt(main: list[str], folder: Path, patience: float) -> Callable[..., tuple[int, str, str]]:
    """Start the command, wait until its target hangs, send Ctrl-C or another signal."""

    def interrupted(*arguments: str, by: int = signal.SIGINT) -> tuple[int, str, str]:
        process = subprocess.Popen(
            [*main, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            end = time.monotonic() + patience
            while not (folder / "hanging").exists() and time.monotonic() < end:
                time.sleep(0.02)
            process.send_signal(by)
            out, err = process.communicate(timeout=patience)
        finally:
            process.kill()
        return process.returncode, out, err

    return interrupted


@pytest.fixture
def health(folder: Path) -> tuple[str, ...]:
    """Health of a target that hangs in its fifth call."""
    (folder / "slow.py").write_text(HANGING)
    return ("health", "slow:target", "--dim", "5")


def test_ctrl_c_keeps_the_transcript_and_the_next_run_replays(health, interrupt, folder, process):
    kept = (*health, "--transcript", "kept")
    status, out, err = interrupt(*kept)
    assert (status, out) == (130, "")
    assert "Those that were answered are kept in kept; run the same command again to go on." in err
    assert "Traceback" not in err
    (folder / "mended").touch()
    ended = process(*kept, "-v")
    assert ended.status == 0
    assert "health: 102 rows asked, 48 sent, 54 replayed" in ended.err


def test_ctrl_c_without_a_transcript_says_what_to_do_next_time(health, interrupt):
    status, out, err = interrupt(*health)
    assert (status, out) == (130, "")
    assert "They are not kept; next time give --transcript DIR." in err


def test_sigterm_is_treated_like_ctrl_c(health, interrupt):
    status, out, err = interrupt(*health, "--transcript", "kept", by=signal.SIGTERM)
    assert (status, out) == (143, "")
    assert "run the same command again to go on." in err
    assert "Traceback" not in err


# Ctrl-C arrives in a finalizer, in a weak reference's callback (as those of import locks) or in a callback from C (as
# those of threadpoolctl): Python prints what is raised there and goes on.
SWALLOWING = """
import ctypes, os, signal, time, weakref
from pathlib import Path
import numpy as np

calls = 0

def interrupt(*_):
    os.kill(os.getpid(), signal.{signal})
    time.sleep(0.01)
    return 0

class Finalized:
    __del__ = interrupt

class Referred:
    pass

def met_by_finalizer():
    Finalized()

def met_by_weak_reference():
    there = Referred()
    kept = weakref.ref(there, interrupt)
    del there

def met_by_callback():
    ctypes.CFUNCTYPE(ctypes.c_int)(interrupt)()

def target(x):
    global calls
    calls += 1
    if calls == 5:
        {meeting}()
        Path("went-on").touch()
        time.sleep(60)
    return np.maximum(x, 0).sum(axis=1)
"""


STATUS = {"SIGINT": 130, "SIGTERM": 143}
MEETINGS = ["met_by_finalizer", "met_by_weak_reference", "met_by_callback"]


@pytest.mark.parametrize(
    ("name", "meeting"),
    sweep(
        product(STATUS, MEETINGS), fast=[("SIGINT", "met_by_finalizer"), ("SIGTERM", "met_by_callback")], arguments=2
    ),
)
def test_a_signal_that_python_swallows_ends_the_command(meeting, name, folder, process):
    (folder / "slow.py").write_text(SWALLOWING.format(meeting=meeting, signal=name))
    ended = process("health", "slow:target", "--dim", "3")
    assert ended.status == STATUS[name]
    assert "Stopped after" in ended.err
    assert "Traceback" not in ended.err
    assert (folder / "went-on").exists()
