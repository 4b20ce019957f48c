"""A target on the workers of a dask cluster: speed-up of two workers over one, what a task costs, a killed worker.

    python -m benchmarks dask     needs two cores for itself, about a minute

The expensive target takes 10 ms for every 32 rows, the smallest task: once it only waits, as for a device or a licence,
once it computes. One worker and two ask it the same tasks. Networks are compared bit by bit with the one that is found
without an engine.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import reluctant as rl
from reluctant.oracles import Ledger
from reluctant.oracles.parallel import SMALLEST_SHARE
from reluctant.testing import planted

WIDTHS = (200, 100, 1)
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
    alone = extraction(target, None)
    show(name, "this process, no engine", alone, alone, None)
    with cluster(1) as client:
        one = extraction(target, client)
    show(name, "one worker", one, alone, one)
    with cluster(2) as client:
        show(name, "two workers", extraction(target, client), alone, one)
        if not target.computes:
            killed = extraction(target, client, killing(client, KILLED_AFTER * alone.result.queries))
            show(name, "two workers, one killed", killed, alone, one)


def extraction(target: Expensive, engine: Any, listener: Callable[[Ledger], None] | None = None) -> Run:
    with rl.open_oracle(target, dim=target.network.dim, engine=engine) as oracle:
        oracle.ledger.listener = listener
        start = time.perf_counter()
        result = rl.extract(oracle, rng=FIRST_SEED)
        return Run(time.perf_counter() - start, result)


def show(name: str, who: str, run: Run, alone: Run, one: Run | None) -> None:
    gained = "" if one is None else f"{one.seconds / run.seconds:.2f}"
    same = "the same, bit by bit" if identical(run.result.network, alone.result.network) else "ANOTHER"
    ok = same if run.result.ok else f"NOT RECOVERED ({run.result.outcome.slug})"
    print(f"{name:<12}{who:<26}{run.seconds:>9.2f}{gained:>17}{run.result.queries:>8}  {ok}", flush=True)


def identical(a: rl.ReLUNetwork | None, b: rl.ReLUNetwork | None) -> bool:
    if a is None or b is None:
        return False
    pairs = zip((*a.weights, *a.biases), (*b.weights, *b.biases), strict=True)
    return a.widths == b.widths and all(np.array_equal(x, y) for x, y in pairs)


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
        many, alone = (clocked(lambda oracle=oracle: oracle.query(rows)) for oracle in (there, here))
    print(f"\na target that costs nothing: one row {1e3 * each:.1f} ms", end="")
    print(
        f"; {len(rows)} rows {1e6 * many / len(rows):.1f} µs a row on two workers, {1e6 * alone / len(rows):.1f} here"
    )


def clocked(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    settings = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**settings, silence_logs="CRITICAL") as local, Client(local, set_as_default=False) as client:
        yield client
