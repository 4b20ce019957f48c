"""A run that is killed several times in the middle ends as an undisturbed one, and pays every answered row once."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sweeps import sweep

from reluctant.oracles.transcript import CHUNK_ROWS
from reluctant.testing import planted

BATCHES = 120
BATCH_ROWS = CHUNK_ROWS + 700
PATIENCE = 20  # chunks after which a sitting that is to be killed answers no more
LONGEST_LIFE_SECONDS = 0.08
START_SECONDS = 180  # at most; a busy machine takes its time

RUN = f"""
import json, os, sys, time
from pathlib import Path

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.oracles import Facts, NetworkOracle, open_oracle

folder, patience, explained = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "gradients"
network = ReLUNetwork.load(folder / "model.npz")
paid = os.open(folder / "paid", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


class Paid(NetworkOracle):
    calls = 0

    @property
    def facts(self):
        return Facts(8, 2, identity="paid network")

    def answer(self, rows):
        os.write(paid, b"%d\\n" % len(rows))
        self.calls += 1
        if self.calls == patience:
            time.sleep(600)
        time.sleep(0.002)
        return super().answer(rows)


rng = np.random.default_rng(0)
gradients = network.gradients if explained else None
with open_oracle(Paid(network), transcript=folder / "run", gradients=gradients) as oracle:
    oracle.begin("search", 0)
    ask = (lambda rows: oracle.query_gradients(rows).packed) if explained else oracle.query
    answers = [ask(rng.standard_normal(({BATCH_ROWS}, 8))) for _ in range({BATCHES})]
total = oracle.ledger.total
np.save(folder / "answers.npy", np.concatenate(answers))
print(json.dumps([total.asked, total.sent, total.replayed]))
"""


def rows_paid(folder: Path) -> int:
    path = folder / "paid"
    return sum(map(int, path.read_text().split())) if path.exists() else 0


def start(folder: Path, patience: int, answers: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(folder / "run.py"), str(folder), str(patience), answers]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill_in_the_middle(folder: Path, life: float, answers: str) -> None:
    """Start a sitting, wait until it asks the target, kill it some time later."""
    before = rows_paid(folder)
    with start(folder, PATIENCE, answers) as process:
        try:
            deadline = time.monotonic() + START_SECONDS
            while rows_paid(folder) == before and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.002)
            time.sleep(life)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    assert rows_paid(folder) > before


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    planted((8, 12, 2), 1).save(tmp_path / "model.npz")
    (tmp_path / "run.py").write_text(RUN)
    return tmp_path


@pytest.mark.parametrize("answers", ["values", "gradients"])
@pytest.mark.parametrize("kills", sweep([3, 10], fast=[3]))
def test_kills_change_nothing(folder: Path, kills: int, answers: str) -> None:
    lives = random.Random(0)
    for _ in range(kills):
        kill_in_the_middle(folder, lives.uniform(0, LONGEST_LIFE_SECONDS), answers)
    with start(folder, 0, answers) as process:
        output, _ = process.communicate(timeout=START_SECONDS)
    asked, sent, replayed = json.loads(output)

    total = BATCHES * BATCH_ROWS
    rows = np.random.default_rng(0).standard_normal((total, 8))
    network, found = planted((8, 12, 2), 1), np.load(folder / "answers.npy")
    np.testing.assert_allclose(found[:, :2], network(rows), rtol=0, atol=1e-13)
    if answers == "gradients":
        np.testing.assert_allclose(found[:, 2:], network.gradients(rows).reshape(total, -1), rtol=0, atol=1e-13)
    assert asked == sent + replayed == total
    assert replayed > 0
    assert 0 <= rows_paid(folder) - total <= kills * CHUNK_ROWS
