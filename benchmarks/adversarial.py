"""The paper on adversarial examples, measured: every experiment's table and checks.

    python -m benchmarks adversarial     about ten minutes of CPU time
    MNIST=folder python -m benchmarks adversarial     the trained networks on MNIST too

The pictures of the documentation are drawn into docs/images.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from reluctant.papers.experiments.experiment import Finding
from reluctant.papers.experiments.reproduction import EXPERIMENTS

NAMES = ("smallest-perturbation", "flip-steps", "linearity-law", "bottlenecks", "depth", "trained")
SEED = 70_000
PICTURES = Path(__file__).parent.parent / "docs" / "images"


def main() -> None:
    for name, experiment in EXPERIMENTS.items():
        if name in NAMES:
            show(partial(experiment, rng=SEED, mnist_folder=os.environ.get("MNIST")))


def show(experiment: Callable[[], Finding]) -> None:
    start = time.process_time()
    finding = experiment()
    print(finding.table())
    print(f"CPU {time.process_time() - start:.0f} s\n", flush=True)
    (PICTURES / f"{finding.name}.svg").write_text(finding.svg() + "\n", encoding="utf-8")
