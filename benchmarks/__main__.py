"""Run all benchmarks, or those named, such as: python -m benchmarks depth-two honesty.

With --save the rows are kept in benchmarks/results, where the tables of docs/figures.md come from. With --engine
dask://host:port the runs of honesty and survival, whose figures are no times, are spread over a cluster.
"""

from __future__ import annotations

import argparse
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
    calibration,
    dask,
    deep,
    defenses,
    depth_three,
    depth_two,
    estimate,
    experiments,
    fresh_shapes,
    gpu,
    gradients,
    growth,
    honesty,
    http,
    imports,
    kills,
    labels,
    large,
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
    verdicts,
    wide,
    zoo,
)
from benchmarks.results import Results
from benchmarks.sweeping import Sweeping

BENCHMARKS = {
    "oracles": oracles.main,
    "kills": kills.main,
    "http": http.main,
    "imports": imports.main,
    "depth-two": depth_two.main,
    "bounded": bounded.main,
    "depth-three": depth_three.main,
    "frugal": depth_three.frugal,
    "mnist-layers": depth_three.mnist,
    "mixed": depth_three.mixed,
    "peers": peers.main,
    "public": public.main,
    "deep": deep.main,
    "precision": precision.main,
    "growth": growth.main,
    "large": large.main,
    "calibration": calibration.main,
    "estimate": estimate.main,
    "fresh-shapes": fresh_shapes.main,
    "gpu": gpu.main,
    "gradients": gradients.main,
    "dask": dask.main,
    "honesty": honesty.main,
    "honesty-float32": honesty.float32,
    "honesty-ridges": honesty.ridges,
    "honesty-float32-layers": honesty.float32_layers,
    "probabilities": probabilities.main,
    "defenses": defenses.main,
    "survival": survival.main,
    "audit": audit.main,
    "verdicts": verdicts.main,
    "learning": learning.main,
    "student": student.main,
    "adversarial": adversarial.main,
    "attacks": attacks.main,
    "learning-theory": learning_theory.main,
    "labels": labels.main,
    "span": span.main,
    "span-figures": span_figures.main,
    "experiments": experiments.main,
    "wide": wide.main,
    "zoo": zoo.main,
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--save", action="store_true", help="keep the rows in benchmarks/results")
    parser.add_argument("--engine", metavar="dask://HOST:PORT", help="spread runs whose figures are no times")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    Results.saved, Sweeping.engine = given.save, given.engine
    names = given.names or list(BENCHMARKS)
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    for name in names:
        print(f"\n== {name}")
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
