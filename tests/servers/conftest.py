"""Real servers, each started from an environment of its own under `.servers/` (made by `make test-servers`)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

SERVERS = Path(__file__).parents[2] / ".servers"
START_SECONDS = 120
STOP_SECONDS = 20


def program(server: str, name: str) -> Path:
    path = SERVERS / server / "bin" / name
    if not path.exists():
        pytest.skip(f"{server} is not installed; run make test-servers")
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/ready", timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False


@contextmanager
def running(command: Sequence[object], url: str, folder: Path) -> Iterator[str]:
    """Start a server, wait until the model is ready, give its address, stop it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen([*map(str, command)], cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not is_ready(url):
                assert process.poll() is None, (folder / "server.log").read_text()
                assert time.monotonic() < deadline, (folder / "server.log").read_text()
                time.sleep(0.3)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def write_json(path: Path, data: object) -> None:
    path.write_text(json.dumps(data))
