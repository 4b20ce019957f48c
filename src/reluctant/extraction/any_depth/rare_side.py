"""Rows for a fit of all parameters: every neuron must be seen on both sides of its crease, the rare one too."""

from __future__ import annotations

import numpy as np

from reluctant.extraction.any_depth.known import Known
from reluctant.extraction.memory import Memory
from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray

__all__ = ["FITTED_DISTANCE", "rows_for_fit", "rows_on_rare_sides"]

FITTED_ROWS = 3.0  # for every parameter
RARE_ROWS = 3.0  # for every weight of a neuron, on the side of its crease that is met less often
FITTED_DISTANCE = 30.0  # in units of the scale
POOL = 20_000  # random points from which rows on rare sides are taken
SPREAD = 0.3  # of a row: how far around it others are looked for
ROUND = 10  # points around every row


def rows_for_fit(known: Known, memory: Memory, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Random rows of the memory, and for every neuron enough on the side of its crease that is met less often."""
    rows, answers = memory.near(FITTED_DISTANCE * np.sqrt(known.dim))
    order = rng.permutation(len(rows))
    rows, answers = rows[order], answers[order]
    chosen = np.arange(len(rows)) < FITTED_ROWS * known.parameters
    rare = _rare(known.patterns(rows))
    chosen |= (rare & (np.cumsum(rare, axis=0) <= _enough(known))).any(axis=1)
    return rows[chosen], answers[chosen]


def rows_on_rare_sides(known: Known, memory: Memory, rng: np.random.Generator) -> FloatArray:
    """Rows (n, d) to ask where the memory has too few: random ones, and ones around those it has."""
    rows, _ = memory.near(FITTED_DISTANCE * np.sqrt(known.dim))
    active = known.patterns(rows)
    rare, often_off = _rare(active), active.mean(axis=0) < 0.5
    short = np.maximum(_enough(known) - rare.sum(axis=0), 0).astype(int)
    chosen = [rows[:0]]
    pool = rng.standard_normal((POOL, known.dim))
    for neuron in np.flatnonzero(short):
        mine = rows[rare[:, neuron]]
        size = np.linalg.norm(mine, axis=1, keepdims=True) / np.sqrt(known.dim)
        around = np.concatenate([mine + SPREAD * size * rng.standard_normal(mine.shape) for _ in range(ROUND)])
        candidates = np.concatenate([pool, around])
        there = known.patterns(candidates)[:, neuron] == often_off[neuron]
        chosen.append(candidates[there][-short[neuron] :])
    return np.concatenate(chosen)


def _rare(active: BoolArray) -> BoolArray:
    """Patterns (n, H) turned so that the side met less often is True."""
    return np.asarray(np.where(active.mean(axis=0) < 0.5, active, ~active))


def _enough(known: Known) -> FloatArray:
    """How many rows each neuron should have on its rare side."""
    return np.concatenate([np.full(len(layer), RARE_ROWS * layer.weights.shape[1]) for layer in known.layers])
