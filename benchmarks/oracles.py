"""What the oracle stack costs: CPU time of counting, budget and transcript over a bare call.

Target: a 784-128-1 network, asked 10 000 rows at a time. Bare and wrapped calls alternate in one run;
the figure is the median of their ratios.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import reluctant as rl
from reluctant.testing import planted

WIDTHS = (784, 128, 1)
ROWS = 10_000
REPEATS = 15


def main() -> None:
    network = planted(WIDTHS, 0)
    generator = np.random.default_rng(0)
    print(f"{'stack':<32}{'over bare':>10}{'rows/s':>12}{'bytes/row':>11}")
    with tempfile.TemporaryDirectory() as folder:
        for name, transcript in (("counting + budget", None), ("counting + budget + transcript", folder)):
            oracle = rl.open_oracle(network, budget=10**9, transcript=transcript)
            ratio, seconds = compare(network, oracle.query, generator)
            bytes_per_row = "" if transcript is None else f"{log_size(folder) / oracle.queries:.2f}"
            print(f"{name:<32}{ratio - 1:>9.1%}{ROWS / seconds:>12,.0f}{bytes_per_row:>11}")
            oracle.close()


def compare(
    bare: Callable[[np.ndarray], object], wrapped: Callable[[np.ndarray], object], rng: np.random.Generator
) -> tuple[float, float]:
    """Median ratio of CPU times, and median CPU seconds of a wrapped call; new rows every time."""
    pairs = []
    for _ in range(REPEATS):
        x = rng.standard_normal((ROWS, WIDTHS[0]))
        pairs.append((cpu(bare, x), cpu(wrapped, x)))
        x += 1.0
        pairs.append((cpu(wrapped, x), cpu(bare, x))[::-1])
    ratios = [after / before for before, after in pairs]
    return float(np.median(ratios)), float(np.median([after for _, after in pairs]))


def cpu(function: Callable[[np.ndarray], object], x: np.ndarray) -> float:
    start = time.process_time()
    function(x)
    return time.process_time() - start


def log_size(folder: str) -> int:
    return (Path(folder) / "transcript.log").stat().st_size
