"""A run killed ten times with SIGKILL: no answered row lost, none paid twice.

A child process asks a network through a transcript; the target notes every row it really answers in a
log of its own. The parent kills the child ten times in the middle, lets it finish, and compares with an
undisturbed run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import reluctant as rl
from reluctant.oracles.transcript import CHUNK_ROWS
from reluctant.testing import planted

KILLS = 10
BATCHES, ROWS = 60, 5_000
WIDTHS = (64, 32, 1)
SLOW_SECONDS = 0.004  # a call, so that kills fall in the middle of the run

CHILD = f"""
import os, sys, time
import numpy as np
import reluctant as rl

class Noted(rl.Wrapper):
    def answer(self, rows):
        time.sleep({SLOW_SECONDS})
        answers = self.inner.answer(rows)
        os.write(paid, f"{{len(rows)}}\\n".encode())
        return answers

folder = sys.argv[1]
paid = os.open(folder + "/paid", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
target = Noted(rl.open_oracle(folder + "/network.npz").inner)
rng = np.random.default_rng(0)
with rl.open_oracle(target, transcript=folder + "/transcript") as oracle:
    answers = [oracle.query(rng.standard_normal(({ROWS}, {WIDTHS[0]}))) for _ in range({BATCHES})]
np.save(folder + "/answers.npy", np.concatenate(answers))
print(oracle.ledger.total)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        network = planted(WIDTHS, 0)
        network.save(folder / "network.npz")
        kills = sum(run_and_kill(folder) for _ in range(KILLS))
        final = subprocess.run(command(folder), capture_output=True, text=True, check=True)
        paid = sum(map(int, (folder / "paid").read_text().split()))
        same = np.array_equal(np.load(folder / "answers.npy"), undisturbed(network))
        answered = BATCHES * ROWS
        print(f"{kills} kills, then to the end: {final.stdout.strip()}")
        print(f"rows asked {answered}, rows the target answered {paid}, answers equal an undisturbed run: {same}")
        print(f"answered but killed before written: {paid - answered} rows, at most {CHUNK_ROWS} a kill are in flight")


def command(folder: Path) -> list[str]:
    return [sys.executable, "-c", CHILD, str(folder)]


def run_and_kill(folder: Path) -> bool:
    """Start the child, wait until it pays for new rows, kill it; True if it was still running."""
    log = folder / "paid"
    before = log.stat().st_size if log.exists() else 0
    child = subprocess.Popen(command(folder), stdout=subprocess.DEVNULL)
    while child.poll() is None and (not log.exists() or log.stat().st_size < before + 10):
        time.sleep(SLOW_SECONDS)
    child.kill()
    return child.wait() != 0


def undisturbed(network: rl.ReLUNetwork) -> np.ndarray:
    """The same questions, asked in the same chunks."""
    rng = np.random.default_rng(0)
    oracle = rl.open_oracle(network)
    batches = [rng.standard_normal((ROWS, WIDTHS[0])) for _ in range(BATCHES)]
    chunks = [x[i : i + CHUNK_ROWS] for x in batches for i in range(0, ROWS, CHUNK_ROWS)]
    return np.concatenate([oracle.query(chunk) for chunk in chunks])
