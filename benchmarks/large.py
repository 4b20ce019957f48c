"""Large networks on two cores: wall time, memory, queries and exactness, each network in a process of its own.

    python -m benchmarks large                          1500-1500-1 and 784-1024-1
    LARGE_SHAPES=1500-1500-1 LARGE_SEEDS=2 ...          these shapes, as many networks of each
    LARGE_THREADS=1 python -m benchmarks large          one BLAS thread

`CPU` is the whole run over the target's share of it, `GiB` the largest memory of the whole process, the target and
numpy included. Seeds that nothing was tuned on.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

from benchmarks.results import Results

SHAPES = "1500-1500-1,784-1024-1"
FIRST_SEED = 21_000
BIAS = 0.5
RESULTS = Results("large")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def main() -> None:
    threads = os.environ.get("LARGE_THREADS", "2")
    print(f"{threads} BLAS threads")
    print(f"{'network':<14}{'P':>10}{'ok':>5}{'q/P':>9}{'out':>10}{'wall s':>9}{'CPU s':>9}{'CPU':>7}{'GiB':>7}")
    for name in os.environ.get("LARGE_SHAPES", SHAPES).split(","):
        runs = [in_a_process(name, seed, threads) for seed in range(int(os.environ.get("LARGE_SEEDS", "1")))]
        for run in runs:
            print(row(name, run), flush=True)
        RESULTS.keep(name, **summary(runs), threads=int(threads))


def in_a_process(name: str, seed: int, threads: str) -> dict[str, Any]:
    """One network, extracted by a fresh interpreter with so many threads."""
    environment = os.environ | dict.fromkeys(THREADS, threads)
    command = [sys.executable, "-m", "benchmarks.large", name, str(seed)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def one(name: str, seed: int) -> dict[str, Any]:
    """What is measured, in the process itself."""
    from reluctant.papers.experiments.trials import exact_run
    from reluctant.testing import planted

    true = planted(tuple(map(int, name.split("-"))), FIRST_SEED + seed, bias=BIAS)
    start = time.perf_counter()
    run = exact_run(true, seed)
    wall = time.perf_counter() - start
    return {
        "ok": run.ok, "parameters": true.parameters, "queries": run.queries, "cost": run.per_parameter,
        "wall": wall, "seconds": run.seconds, "cpu": run.cpu, "stages": dict(run.stages), "restarts": run.restarts,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "out": run.out if run.ok else None,
    }  # fmt: skip


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The first run's figures with the largest of all of them."""
    out = [run["out"] for run in runs if run["ok"]]
    largest = {key: max(run[key] for run in runs) for key in ("cost", "wall", "seconds", "cpu", "memory")}
    good = sum(run["ok"] for run in runs)
    first = {key: runs[0][key] for key in ("parameters", "queries", "stages")}
    return {
        "networks": len(runs),
        "ok": good,
        **first,
        **largest,
        "out_max": max(out, default=None),
        "restarts": sum(run["restarts"] for run in runs),
    }


def row(name: str, run: dict[str, Any]) -> str:
    out = "-" if run["out"] is None else f"{run['out']:.1e}"
    return (
        f"{name:<14}{run['parameters']:>10}{'yes' if run['ok'] else 'NO':>5}{run['cost']:>9.4f}{out:>10}"
        f"{run['wall']:>9.1f}{run['seconds']:>9.1f}{run['cpu']:>7.2f}{run['memory']:>7.2f}"
    )


if __name__ == "__main__":
    print(json.dumps(one(sys.argv[1], int(sys.argv[2]))))
