"""Fixtures of the command line: run it here or in a process of its own, with targets in a fresh folder."""

from __future__ import annotations

import importlib
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest
from drawn_once import undrawn

from reluctant import ReLUNetwork
from reluctant.cli.app import run
from reluctant.oracles import retry
from reluctant.testing import planted

MODULE_NAMES = (f"cli_target_{number}" for number in itertools.count())


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    status: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


@pytest.fixture
def pictures() -> None:
    """For tests that want the pictures of a page."""


@pytest.fixture(autouse=True)
def no_pictures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Pages without pictures, which have tests of their own in `report/`."""
    with nullcontext() if "pictures" in request.fixturenames else undrawn():
        yield


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run the command line in this process."""

    def run_here(*arguments: object) -> Ended:
        status = run([str(argument) for argument in arguments])
        return Ended(status, *capsys.readouterr())

    return run_here


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that fail are repeated at once."""
    monkeypatch.setattr(retry, "FIRST_PAUSE_SECONDS", 0.001)


@pytest.fixture
def main() -> list[str]:
    """What starts the command line in a process of its own."""
    # A run in the background of a script inherits an ignored Ctrl-C; a terminal's does not.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    return [sys.executable, "-c", f"{heard}; from reluctant.cli import main; main()"]


@pytest.fixture
def process(main: list[str], folder: Path, patience: float) -> Callable[..., Ended]:
    """Run the command line in a process of its own."""

    def run_there(*arguments: object) -> Ended:
        ended = subprocess.run(
            [*main, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=patience, check=False
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    return run_there


@pytest.fixture
def module(folder: Path) -> Iterator[Callable[[str], str]]:
    """Write a module with this source; its name is given back."""
    made = []

    def write(source: str) -> str:
        name = next(MODULE_NAMES)
        (folder / f"{name}.py").write_text(source)
        importlib.invalidate_caches()
        made.append(name)
        return name

    yield write
    for name in made:
        sys.modules.pop(name, None)


@pytest.fixture
def network() -> ReLUNetwork:
    """A small network."""
    return planted((5, 8, 1))


@pytest.fixture
def npz(network: ReLUNetwork, folder: Path) -> Path:
    """The network as .npz."""
    network.save(folder / "network.npz")
    return folder / "network.npz"


@pytest.fixture
def onnx(network: ReLUNetwork, folder: Path) -> Path:
    """The network as .onnx."""
    network.save(folder / "network.onnx")
    return folder / "network.onnx"
