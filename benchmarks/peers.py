"""A peer on the same targets: FunctionallyEquivalentExtraction of IBM's Adversarial Robustness Toolbox (ART).

    pip install '.[dev,peers]'
    python -m benchmarks peers                      5 networks of each shape, 1 of those with 784 inputs and one output
    PEER_SECONDS=3600 python -m benchmarks peers    let it run longer before it is stopped (CPU seconds a network)

Both methods ask the same object, which counts every row and its own CPU time. `out` is the largest error over
10 000 Gaussian inputs relative to the output's standard deviation, of the networks that were returned without an
error: exact below 1e-6, close below 1e-2, wrong above. CPU is seconds of the whole run, and over the target's
share of it; medians, one BLAS thread.

What ART is given: the true width; a classifier of at least two outputs (it refuses fewer, so one output is shown
twice); float64. It casts answers to `art.config.ART_NUMPY_DTYPE`, float32 unless replaced before the first
question, and questions to a copy of it made on import unless `preprocessing=None`. Its tolerances are its defaults.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from types import FrameType
from typing import Any, NoReturn

import numpy as np

import reluctant as rl
from benchmarks.depth_two import BIAS, FIRST_SEED
from reluctant.estimation.formulas import parameters
from reluctant.papers.experiments.trials import TimedTarget
from reluctant.testing import planted

Widths = tuple[int, int, int]

NETWORKS: dict[Widths, int] = {
    (784, 4, 10): 5,  # the shape of ART's own example
    (10, 5, 2): 5,
    (64, 32, 10): 5,
    (64, 40, 1): 5,
    (10, 100, 1): 5,
    (784, 32, 1): 1,
    (784, 128, 1): 1,
}
SECONDS = 300
WALL_OVER_CPU = 4  # a process that waits instead of using CPU time is killed after so many times the limit
EXACT, CLOSE = 1e-6, 1e-2  # errors below these, of the output's standard deviation
ENDINGS = ("exact", "close", "wrong", "none")
ROWS_PER_UNKNOWN = 4  # inputs that ART is given for its last layer
POINTS = 10_000
HOW_TO_INSTALL = "ART is not installed, so it was not run. To run it: pip install '.[dev,peers]'"


@dataclass
class Counted(TimedTarget):
    """A network that also counts the rows it answers."""

    answer: rl.ReLUNetwork
    rows: int = field(default=0)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.rows += len(x)
        return super().__call__(x)


@dataclass(frozen=True)
class Run:
    """One run: what it cost, how far off its network is (nan: none), and what it said."""

    rows: int
    seconds: float
    target_seconds: float
    out: float
    said: str

    @property
    def ending(self) -> str:
        if np.isnan(self.out):
            return "none"
        return "exact" if self.out < EXACT else "close" if self.out < CLOSE else "wrong"


def main() -> None:
    there = find_spec("art") is not None
    print(
        f"{'network':<11}{'method':<11}{''.join(f'{ending:>6}' for ending in ENDINGS)}{'queries':>11}{'q·m/P':>9}"
        f"{'CPU s':>8}{'/target':>9}{'out':>10}{'(max)':>10}"
    )
    for widths, networks in NETWORKS.items():
        show("reluctant", widths, [ours(widths, seed) for seed in range(networks)])
        if there:
            show("ART", widths, [art_in_a_process(widths, seed) for seed in range(networks)])
    print(
        "none: no network was returned, for the reason given below the line; any other was returned without an error."
    )
    if not there:
        print(HOW_TO_INSTALL)


def show(method: str, widths: Widths, runs: list[Run]) -> None:
    def middle(figure: Callable[[Run], float]) -> float:
        return float(np.median([figure(run) for run in runs]))

    endings = [run.ending for run in runs]
    outs = [run.out for run in runs if run.ending != "none"]
    queries = middle(lambda run: run.rows)
    print(
        f"{'-'.join(map(str, widths)):<11}{method:<11}"
        f"{''.join(f'{endings.count(ending):>6}' for ending in ENDINGS)}"
        f"{queries:>11,.0f}{queries * widths[2] / parameters(widths):>9.2f}{middle(lambda run: run.seconds):>8.2f}"
        f"{middle(lambda run: run.seconds / run.target_seconds):>9.2f}"
        + (f"{np.median(outs):>10.1e}{max(outs):>10.1e}" if outs else f"{'–':>10}{'–':>10}")
    )
    for said in sorted({run.said for run in runs if run.ending == "none"}):
        print(f"{'':<11}{said}")
    sys.stdout.flush()


def target(widths: Widths, seed: int) -> Counted:
    return Counted(planted(widths, FIRST_SEED + seed, bias=BIAS))


def ours(widths: Widths, seed: int) -> Run:
    asked = target(widths, seed)
    start = time.process_time()
    result = rl.extract(rl.open_oracle(asked, dim=widths[0]), rng=seed)
    cost = (asked.rows, time.process_time() - start, asked.seconds)
    out = error(result.network, asked.answer) if result.ok and result.network else np.nan
    return Run(*cost, out, str(result.outcome))


def error(found: Callable[[np.ndarray], np.ndarray], true: rl.ReLUNetwork) -> float:
    """Largest difference over the output's deviation; inf where an answer is no number."""
    x = np.random.default_rng(0).standard_normal((POINTS, true.dim))
    truth = true(x)
    largest = float((np.abs(found(x)[:, : true.outputs] - truth) / truth.std(axis=0)).max())
    return largest if np.isfinite(largest) else np.inf


# ---- ART, in a process of its own: its settings are global, and it may not come to an end


def art_in_a_process(widths: Widths, seed: int) -> Run:
    command = [sys.executable, "-m", "benchmarks.peers", *map(str, widths), str(seed)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=WALL_OVER_CPU * limit())
    except subprocess.TimeoutExpired:
        return Run(0, np.nan, np.nan, np.nan, f"killed after {WALL_OVER_CPU * limit()} s of waiting")
    if done.returncode:
        return Run(0, np.nan, np.nan, np.nan, f"exit status {done.returncode}: {done.stderr.strip()[-200:]}")
    return Run(**json.loads(done.stdout.splitlines()[-1]))


class OutOfTime(BaseException):
    """Raised inside ART by the timer; not an Exception, so that nothing catches it on the way."""


def run_art(widths: Widths, seed: int) -> Run:
    """Run ART until it ends, raises, or has used its time."""
    asked = target(widths, seed)
    attack = attack_on(asked, seed)
    examples = np.random.default_rng(seed).standard_normal((ROWS_PER_UNKNOWN * (widths[1] + 1), widths[0]))
    stage = LastMessage()
    found, said = None, ""
    start = time.process_time()
    stop_after(limit())
    try:
        found = attack.extract(examples).predict
    except OutOfTime:
        said = f"stopped after {limit()} CPU s, in the stage '{stage.text}'"
    except Exception as failure:
        said = f"{type(failure).__name__}: {failure}"
    stop_after(0)
    cost = (asked.rows, time.process_time() - start, asked.seconds)
    return Run(*cost, error(found, asked.answer) if found else np.nan, said)


def attack_on(asked: Counted, seed: int) -> Any:
    """ART's attack on a target, in float64, told the true width."""
    import art.config

    art.config.ART_NUMPY_DTYPE = np.float64
    from art.attacks.extraction import FunctionallyEquivalentExtraction
    from art.estimators.classification.blackbox import BlackBoxClassifierNeuralNetwork

    np.random.seed(seed)  # noqa: NPY002  ART draws from the global generator
    copies = 2 if asked.answer.outputs == 1 else 1
    classifier = BlackBoxClassifierNeuralNetwork(
        lambda x: np.tile(asked(x), copies),
        input_shape=(asked.answer.dim,),
        nb_classes=asked.answer.outputs * copies,
        preprocessing=None,
    )
    return FunctionallyEquivalentExtraction(classifier, num_neurons=asked.answer.widths[1])


class LastMessage(logging.Handler):
    """ART logs the name of each stage when it begins: the last one says where it is."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.text = ""
        logger = logging.getLogger("art.attacks.extraction.functionally_equivalent_extraction")
        logger.setLevel(logging.INFO)
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


def limit() -> int:
    return int(os.environ.get("PEER_SECONDS", SECONDS))


def stop_after(seconds: int) -> None:
    """Raise OutOfTime when this process has used so many more CPU seconds; 0 for never."""
    signal.signal(signal.SIGPROF, out_of_time)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def out_of_time(number: int, frame: FrameType | None) -> NoReturn:
    raise OutOfTime


if __name__ == "__main__":
    d, h, m, seed = map(int, sys.argv[1:])
    with np.errstate(all="ignore"):
        print(json.dumps(asdict(run_art((d, h, m), seed))))
