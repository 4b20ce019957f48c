"""Third stage: rows and biases of the first layer in all of input space, to the last digits.

Rows are measured where the neuron is active alone, or in groups where several outputs tell its members apart; the
bias follows from a point of the hyperplane. Nothing of the layers above has to be known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.depth_three.groups import choose_groups, group_rows, is_worth_it
from reluctant.extraction.depth_three.hyperplanes import Hyperplanes
from reluctant.extraction.depth_three.singles import Places, measure_rows, places_of
from reluctant.extraction.depth_three.views import view_each
from reluctant.extraction.failures import StageFailed
from reluctant.geometry import DistanceNoise
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["EXACT_ROW", "Refined", "refine_rows"]

EXACT_ROW = 1e-9  # expected error of a row that is still called exact; others are measured again in the end
WORST_ROW = 1e-7  # and of one with which the layers above can be found


@dataclass(frozen=True)
class Refined:
    """Unit rows (n, d) and biases (n,), and the error to be expected of each row."""

    weights: FloatArray
    biases: FloatArray
    errors: FloatArray


def refine_rows(oracle: Counting, planes: Hyperplanes, noise: DistanceNoise, rng: np.random.Generator) -> Refined:
    """Measure every neuron anew. `planes` point to the active sides.

    Cost: d + 22 rows a neuron, if seen alone; with m outputs about d / m and as many as the subspace has dimensions.
    """
    n, k = planes.normals.shape
    with oracle.stage("refine"):
        views = view_each(oracle, planes, noise, rng)
        places = places_of(oracle, planes, views, noise, rng)
        if is_worth_it(n, oracle.outputs, oracle.dim, k):
            weights, errors = _in_groups(oracle, planes, places, noise, rng)
        else:
            weights, errors = measure_rows(oracle, planes, places, np.arange(n), noise, rng)
    if not errors.max() < WORST_ROW:
        raise StageFailed("refine", "a neuron that is hardly seen", number=float(errors.max()), limit=WORST_ROW)
    on = planes.frame.points(views.on[views.best(-views.blur, n)])
    return Refined(weights, -(weights * on).sum(axis=1), errors)


def _in_groups(
    oracle: Counting, planes: Hyperplanes, places: Places, noise: DistanceNoise, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """First sharp normals in the subspace, then groups in all of input space, and the neurons that are in none."""
    n = len(planes)
    normals, errors = measure_rows(oracle, planes, places, np.arange(n), noise, rng, within=planes.frame)
    sharp = replace(planes, normals=normals)
    groups = choose_groups(oracle, sharp, noise, rng)
    weights = np.empty((n, oracle.dim))
    grouped = np.concatenate([group.neurons for group in groups]) if groups else np.empty(0, dtype=np.intp)
    if groups:
        weights[grouped], more = group_rows(oracle, sharp, groups, noise, rng)
        errors[grouped] += more
    single = np.setdiff1d(np.arange(n), grouped)
    if len(single):
        weights[single], errors[single] = measure_rows(oracle, sharp, places, single, noise, rng)
    return weights, errors
