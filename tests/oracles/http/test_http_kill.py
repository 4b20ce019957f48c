"""A client killed at random times ends, after resuming, with the network of an undisturbed run, and pays once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import reluctant as rl
from reluctant.testing import planted
from reluctant.testing.server import Fault, ModelServer

START_SECONDS = 180  # at most; a busy machine takes its time
MOST_PAID = 1.02  # of what an undisturbed run pays

CLIENT = """
import json, sys
import reluctant as rl

url, folder, connections, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with rl.open_oracle(url, transcript=folder, connections=connections, batch=batch) as oracle:
    result = rl.extract(oracle, rl.DepthTwo(), rng=0)
result.network.save(folder + "/network.npz")
print(json.dumps([result.ok, result.queries]))
"""


class RowByRow:
    """A network whose answer to a row does not depend on the other rows of the batch, to the last bit."""

    def __init__(self, widths: tuple[int, ...], seed: int) -> None:
        self.network = planted(widths, seed)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        (first, second), (inner, outer) = self.network.weights, self.network.biases
        hidden = np.maximum(np.array([first @ row for row in rows]) + inner, 0)
        return np.array([second @ row for row in hidden]) + outer


def start(server: ModelServer, folder: Path, connections: int, batch: int) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-c", CLIENT, server.url, str(folder), str(connections), str(batch)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def run_to_the_end(server: ModelServer, folder: Path, connections: int, batch: int) -> tuple[bool, rl.ReLUNetwork]:
    with start(server, folder, connections, batch) as process:
        output, _ = process.communicate(timeout=10 * START_SECONDS)
    return json.loads(output)[0], rl.ReLUNetwork.load(folder / "network.npz")


def kill_after(rows: int, server: ModelServer, folder: Path, connections: int, batch: int) -> None:
    """Start a client and kill it when it has been answered so many more rows."""
    before, deadline = server.rows, time.monotonic() + START_SECONDS
    with start(server, folder, connections, batch) as process:
        try:
            while server.rows < before + rows and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.001)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL


def killed_and_undisturbed(
    folder: Path, widths: tuple[int, ...], seed: int, kills: int, connections: int, batch: int
) -> None:
    rng = np.random.default_rng(seed)
    server = ModelServer(RowByRow(widths, seed), widths[0], outputs=widths[-1], faults=lambda i: Fault.SLOW)
    server.slowness = 0.002
    with server:
        with rl.open_oracle(server.url, connections=connections, batch=batch) as oracle:
            undisturbed = rl.extract(oracle, rl.DepthTwo(), rng=0)
        expected = undisturbed.network
        once, server.rows = server.rows, 0
        lives = rng.multinomial(int(0.9 * once), np.ones(kills) / kills)
        for life in lives:
            kill_after(int(life), server, folder / "killed", connections, batch)
        finished, network = run_to_the_end(server, folder / "killed", connections, batch)
    assert undisturbed.ok
    assert expected is not None
    assert finished
    for mine, theirs in zip((*network.weights, *network.biases), (*expected.weights, *expected.biases), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    print(f"{server.rows} rows paid, {once} in one run")
    assert server.rows <= MOST_PAID * once


def test_a_killed_client_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    killed_and_undisturbed(tmp_path, (100, 40, 1), seed=0, kills=1, connections=2, batch=16)


@pytest.mark.slow
def test_ten_kills_at_random_times(tmp_path: Path, seed: int) -> None:
    killed_and_undisturbed(tmp_path, (400, 64, 1), seed=seed, kills=10, connections=2, batch=16)
