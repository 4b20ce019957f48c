"""Targets for workers, importable there: a network, and functions that fail as targets and machines do."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reluctant.errors import TargetBusy
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray


def random_network(*widths: int) -> ReLUNetwork:
    """Without the kit of planted networks, which takes a worker a while to import."""
    rng = np.random.default_rng(sum(widths))
    weights = [rng.standard_normal(shape) / np.sqrt(shape[1]) for shape in zip(widths[1:], widths[:-1], strict=True)]
    return ReLUNetwork(weights, [rng.standard_normal(width) / 2 for width in widths[1:]])


NETWORK = random_network(4, 6, 5, 3)
SHALLOW = random_network(6, 5, 1)


def of_the_batch(x: FloatArray) -> FloatArray:
    """Answers whose last digits depend on the size of the batch, as those of BLAS may."""
    return SHALLOW(x) + 1e-9 * len(x)


def raising(x: FloatArray) -> FloatArray:
    raise ValueError(f"no luck with {len(x)} rows")


def busy(x: FloatArray) -> FloatArray:
    raise TargetBusy("target: come back later", retry_after=7.0)


def dying(x: FloatArray) -> FloatArray:
    """Takes the worker with it, always."""
    if x.shape[0] > 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return SHALLOW(x)


def slow(x: FloatArray) -> FloatArray:
    time.sleep(0.3)
    return SHALLOW(x)


@dataclass(frozen=True)
class FailingOnce:
    """Raises at its first large batch, in whichever process that is, and writes down what it is asked."""

    folder: Path

    def __call__(self, x: FloatArray) -> FloatArray:
        with (self.folder / f"asked-{os.getpid()}").open("a") as file:
            file.write(f"{len(x)}\n")
        if len(x) > 20 and _first(self.folder / "failed"):
            raise ConnectionError("dropped")
        return SHALLOW(x)


def _first(marker: Path) -> bool:
    """True for one caller in all processes."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
