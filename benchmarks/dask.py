"""A target on the workers of a dask cluster: speed-up of two workers over one, what a task costs, a killed worker.

    python -m benchmarks dask     needs two cores for itself, about a minute

The expensive target takes 10 ms for every 32 rows, the smallest task: once it only waits, as for a device or a licence,
once it computes. One worker and two are asked the same tasks, so that they find the same network bit by bit; without an
engine batches are larger, and the last bits of answers may differ with them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import reluctant as rl
from reluctant.errors import require
from reluctant.oracles import Ledger
from reluctant.oracles.parallel import SMALLEST_SHARE
from reluctant.testing import planted

WIDTHS = (160, 80, 1)
SECONDS_A_BATCH = 0.010
FIRST_SEED = 88_000  # nothing was looked at on these before
KILLED_AFTER = 0.4  # of the rows
TASKS = 200


@dataclass(frozen=True)
class Expensive:
    """A network that takes its time for every row."""

    network: rl.ReLUNetwork
    computes: bool

    def __call__(self, x: np.ndarray) -> np.ndarray:
        seconds = SECONDS_A_BATCH * len(x) / SMALLEST_SHARE
        if self.computes:
            end = time.thread_time() + seconds
            while time.thread_time() < end:
                pass
        else:
            time.sleep(seconds)
        return self.network(x)


@dataclass(frozen=True)
class Run:
    seconds: float
    result: rl.Result


def main() -> None:
    network = planted(WIDTHS, FIRST_SEED)
    print(f"{'-'.join(map(str, WIDTHS))}, {1e3 * SECONDS_A_BATCH:.0f} ms for every {SMALLEST_SHARE} rows")
    print(f"{'target':<12}{'asked by':<26}{'seconds':>9}{'over one worker':>17}{'rows':>8}  network")
    for name, computes in (("waits", False), ("computes", True)):
        compare(name, Expensive(network, computes))
    overhead(network)


def compare(name: str, target: Expensive) -> None:
    with cluster(1) as client:
        one = extraction(target, client)
    show(name, "one worker", one, one)
    with cluster(2) as client:
        show(name, "two workers", extraction(target, client), one)
        if not target.computes:
            killed = extraction(target, client, killing(client, KILLED_AFTER * one.result.queries))
            show(name, "two workers, one killed", killed, one)
    show(name, "this process, no engine", extraction(target, None), one)


def extraction(target: Expensive, engine: Any, listener: Callable[[Ledger], None] | None = None) -> Run:
    with rl.open_oracle(target, dim=target.network.dim, engine=engine) as oracle:
        oracle.ledger.listener = listener
        start = time.perf_counter()
        result = rl.extract(oracle, rng=FIRST_SEED)
        return Run(time.perf_counter() - start, result)


def show(name: str, who: str, run: Run, one: Run) -> None:
    gained = f"{one.seconds / run.seconds:.2f}"
    found = beside(run.result, one.result)
    print(f"{name:<12}{who:<26}{run.seconds:>9.2f}{gained:>17}{run.result.queries:>8}  {found}", flush=True)


def beside(result: rl.Result, other: rl.Result) -> str:
    """The network found beside that of one worker."""
    if not result.ok or result.network is None or other.network is None:
        return f"NOT RECOVERED ({result.outcome.slug})"
    if result.network.widths != other.network.widths:
        return "ANOTHER"
    a, b = ([*network.weights, *network.biases] for network in (result.network, other.network))
    largest = max(float(np.abs(x - y).max() / np.abs(y).max()) for x, y in zip(a, b, strict=True))
    return "the same, bit by bit" if largest == 0 else f"the same up to {largest:.0e}"


def killing(client: Any, after: float) -> Callable[[Ledger], None]:
    """Kills one worker when so many rows have been sent."""
    pids = [next(iter(client.run(os.getpid).values()))]

    def look(ledger: Ledger) -> None:
        if pids and ledger.total.sent > after:
            os.kill(pids.pop(), signal.SIGKILL)

    return look


def overhead(network: rl.ReLUNetwork) -> None:
    """What a task costs where the target costs nothing."""
    rows = np.random.default_rng(FIRST_SEED).standard_normal((50_000, network.dim))
    with cluster(2) as client, rl.open_oracle(network, engine=client) as there, rl.open_oracle(network) as here:
        there.query(rows[:100])
        each = clocked(lambda: [there.query(rows[:1]) for _ in range(TASKS)]) / TASKS
        many, alone = (clocked(partial(oracle.query, rows)) / len(rows) for oracle in (there, here))
    print(f"\na target that costs nothing, two workers: {1e3 * each:.1f} ms for one row, ", end="")
    print(f"{1e6 * many:.1f} µs a row for {len(rows)} together; without an engine {1e6 * alone:.1f} µs")


def clocked(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    library = require("distributed", extra="dask", purpose="Asking on workers")
    settings = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": "CRITICAL"}
    with library.LocalCluster(**settings) as local, library.Client(local, set_as_default=False) as client:
        yield client
