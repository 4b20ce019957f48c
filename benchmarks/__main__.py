"""Run all benchmarks, or those named, such as: python -m benchmarks depth-two honesty.

With --save the rows are kept in benchmarks/results, where the tables of the README come from.
"""

from __future__ import annotations

import os
import sys

# One BLAS thread, set before numpy is loaded: CPU times are ratios taken in one run.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from benchmarks import (
    adversarial,
    attacks,
    audit,
    bounded,
    defenses,
    depth_three,
    depth_two,
    experiments,
    gpu,
    growth,
    honesty,
    http,
    imports,
    kills,
    learning,
    learning_theory,
    oracles,
    peers,
    precision,
    probabilities,
    public,
    span,
    span_figures,
    student,
    survival,
)
from benchmarks.results import Results

BENCHMARKS = {
    "oracles": oracles.main,
    "kills": kills.main,
    "http": http.main,
    "imports": imports.main,
    "depth-two": depth_two.main,
    "bounded": bounded.main,
    "depth-three": depth_three.main,
    "frugal": depth_three.frugal,
    "mixed": depth_three.mixed,
    "peers": peers.main,
    "public": public.main,
    "precision": precision.main,
    "growth": growth.main,
    "gpu": gpu.main,
    "honesty": honesty.main,
    "honesty-float32": honesty.float32,
    "probabilities": probabilities.main,
    "defenses": defenses.main,
    "survival": survival.main,
    "audit": audit.main,
    "learning": learning.main,
    "student": student.main,
    "adversarial": adversarial.main,
    "attacks": attacks.main,
    "learning-theory": learning_theory.main,
    "span": span.main,
    "span-figures": span_figures.main,
    "experiments": experiments.main,
}


def main() -> None:
    Results.saved = "--save" in sys.argv
    names = [name for name in sys.argv[1:] if name != "--save"] or list(BENCHMARKS)
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    for name in names:
        print(f"\n== {name}")
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
