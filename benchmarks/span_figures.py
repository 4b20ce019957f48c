"""The three figures of the span paper, drawn again as SVG, each with its table.

    python -m benchmarks span-figures                     into span-figures/ (SPAN_FIGURES names another folder)
    MNIST_DIR=folder python -m benchmarks span-figures    trained networks see MNIST; else scikit-learn's digits
    SPAN_NETWORKS=3 python -m benchmarks span-figures     as many random networks of each kind

`reluctant reproduce span-thin span-moderate span-noise --size full` does the same from the command line.
"""

from __future__ import annotations

import os
from pathlib import Path

from reluctant.papers.experiments.span_figures import RANK_NETWORKS, span_moderate, span_noise, span_thin


def main() -> None:
    out = Path(os.environ.get("SPAN_FIGURES", "span-figures"))
    out.mkdir(parents=True, exist_ok=True)
    folder = os.environ.get("MNIST_DIR")
    networks = int(os.environ.get("SPAN_NETWORKS", RANK_NETWORKS))
    for finding in (
        span_thin(networks=networks, mnist_folder=folder),
        span_moderate(networks=networks, mnist_folder=folder),
        span_noise(mnist_folder=folder),
    ):
        finding.write(out)
        print(finding.table() + "\n", flush=True)
    print(f"Written: {out.resolve()}")
