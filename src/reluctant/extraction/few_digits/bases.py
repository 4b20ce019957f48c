"""Points of the subspace from which steps into new directions are made.

Short steps start where no crease is near, in places whose activation patterns tell all neurons apart; long steps
start anywhere. No queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from reluctant.extraction.depth_two.climbing import climb
from reluctant.extraction.few_digits.view import View
from reluctant.geometry import FramedNetwork
from reluctant.numerics import FloatArray

__all__ = ["Bases", "choose_bases", "starting_points"]

SHARE, SPARE = 1.3, 6  # points for each unknown with one output, as many with several
LONG_SHARE, LONG_SPARE = 1.2, 6  # random points for each unknown; several outputs tell several at once
COUNTED_OUTPUTS = 4
POOL, FEWEST_CANDIDATES = 4, 300
OUTERMOST = 2.0  # how far beyond the outermost crease of the line, in its distance or the size of an input


@dataclass(frozen=True)
class Bases:
    """Coordinates (n, k) of points for short steps, with room around them, and (n', k) of points for long ones."""

    roomy: FloatArray
    anywhere: FloatArray


def choose_bases(known: FramedNetwork, view: View, rng: np.random.Generator) -> Bases:
    """Points whose patterns determine every neuron, those with the most room first."""
    (g, _), (z, c) = known.network.weights, known.network.biases
    h, m, k = len(z), len(c), g.shape[1]
    count, long = starting_points(h, m)
    y = np.concatenate([climb(known, view.size, max(POOL * count, FEWEST_CANDIDATES), rng), _line_middles(known, view)])
    y = view.pulled_in(known.frame, y)
    values = known.network.preactivations(y)[0]
    room = (np.abs(values) / np.linalg.norm(g, axis=1)).min(axis=1)
    weight = room / view.noise.at(np.linalg.norm(y, axis=1))
    patterns = np.column_stack([values > 0, np.ones(len(y))]) * (weight / np.median(weight))[:, None]
    order = scipy.linalg.qr(patterns.T, mode="r", pivoting=True, check_finite=False)[1][: min(count, h + 1)]
    rest = np.setdiff1d(np.argsort(-weight), order, assume_unique=True)
    by_room = rest[np.argsort(-weight[rest])]
    chosen = np.concatenate([order, by_room])[:count]
    anywhere = rng.standard_normal((long, k)) * view.size / np.sqrt(k)
    return Bases(y[chosen], view.pulled_in(known.frame, anywhere))


def starting_points(h: int, m: int) -> tuple[int, int]:
    """How many points short steps start from, and how many long ones."""
    short = int(np.ceil(SHARE * (h + 1))) + SPARE
    return short, int(np.ceil(LONG_SHARE * (h + m) / min(m, COUNTED_OUTPUTS))) + LONG_SPARE


def _line_middles(known: FramedNetwork, view: View) -> FloatArray:
    """Middles of the pieces of the first direction: they show every neuron in both states."""
    (g, _), (z, _) = known.network.weights, known.network.biases
    t = np.sort(-z / g[:, 0])
    first, last = (OUTERMOST * max(view.size, abs(end)) for end in (t[0], t[-1]))
    ends = np.concatenate([[t[0] - first], t, [t[-1] + last]])
    middles = np.zeros((len(ends) - 1, g.shape[1]))
    middles[:, 0] = (ends[1:] + ends[:-1]) / 2
    return middles
