"""`recover_span` on networks whose span is known, from values and from labels."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluctant.experiments.sweeps.timed import Timed
from reluctant.numerics import FloatArray, Rng
from reluctant.oracles import open_oracle
from reluctant.results import Outcome
from reluctant.span import Subspace, recover_span
from reluctant.testing import in_float32, labelled, planted

__all__ = ["INPUTS", "RANK", "SpanRun", "label_network", "paper_network", "span_run"]

INPUTS, RANK = 784, 80  # of the paper's networks
DEAD_BLOCKS, DEAD_ROWS = 100, 1000  # inputs looked at before a network counts as dead


@dataclass(frozen=True)
class SpanRun:
    """How one run ended: `angle` is the largest sine to the true span, `cost` is rows over rank × inputs."""

    right: bool
    ok: bool
    dead: bool
    angle: float
    cost: float
    seconds: float
    cpu: float
    outcome: str


def paper_network(
    hidden: tuple[int, ...], network: Rng, seed: int, *, fine: bool = True, single: bool = False
) -> SpanRun:
    """A network of the paper, Gaussian weights and no biases, from its values."""
    true = planted((INPUTS, RANK, *hidden, 1), network, bias=0.0, zero_output_bias=True)
    first = true.weights[0].astype(np.float32) if single else true.weights[0]
    return span_run(in_float32(true) if single else true, first.astype(float), seed, fine=fine)


def label_network(
    widths: tuple[int, ...], activation: str, network: Rng, seed: int, dtype: Any = np.float64
) -> SpanRun:
    """A network with any activation, from 0/1 answers alone."""
    true = labelled(widths, activation, network, dtype=dtype)
    return span_run(true, true.weights[0].astype(float), seed, labels=True)


def span_run(target: Callable[[FloatArray], FloatArray], first: FloatArray, seed: int, **options: bool) -> SpanRun:
    """Recover the span of a target whose first layer is known. A dead one is right if it is said to be constant."""
    timed, true = Timed(target), Subspace.spanned_by(first)
    start = time.process_time()
    span = recover_span(open_oracle(timed, dim=true.dim), rng=seed, **options)
    seconds = time.process_time() - start
    dead = span.outcome is Outcome.CONSTANT and _is_dead(target, true.dim)
    angle = 0.0 if dead else span.subspace.distance(true)
    cost = span.queries / (true.rank * true.dim)
    right = dead or (span.ok and span.rank == true.rank)
    return SpanRun(right, span.ok, dead, angle, cost, seconds, seconds / timed.seconds, span.outcome.slug)


def _is_dead(target: Callable[[FloatArray], FloatArray], dim: int) -> bool:
    """Whether a network is constant on a hundred thousand inputs."""
    rng = np.random.default_rng(0)
    return len(np.unique([np.unique(target(rng.standard_normal((DEAD_ROWS, dim)))) for _ in range(DEAD_BLOCKS)])) == 1
