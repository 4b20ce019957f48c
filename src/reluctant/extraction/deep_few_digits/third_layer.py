"""Second and third layer of three, from kinks where the first is on as a whole.

There the second layer's creases are straight, and lines show them wherever they cross them. Other kinks are of the
third layer: the jump of the gradient is a combination of the second layer's rows that are on there.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from reluctant.extraction.deep_few_digits.first_hyperplanes import MARGIN, turned
from reluctant.extraction.deep_few_digits.kink_rows import Neurons, jump_of
from reluctant.extraction.deep_few_digits.layers_fit import Layer
from reluctant.extraction.deep_few_digits.orthant import HITS_A_MISS, Orthant, SecondRow, apart
from reluctant.extraction.method import StageFailed
from reluctant.geometry.lines import whole_space
from reluctant.numerics import FloatArray

FEWEST_HITS = 2
FLAT = 1e-4  # of the median slope: where all of the third layer is off
MOST_STRAYS = 1  # gradients outside the span of the others: one may be wrong
MOST_LACKING, MOST_OTHERS = 2, 60  # rows besides those that lines confirm, and how many are tried for them
GOOD, SPAN_ERROR = 0.01, 1e-3  # error of a gradient that is used, and part of one outside the span of the others
SAME = 0.03  # of the weights that two kinks share


def upper_layers(orthant: Orthant) -> tuple[Layer, Neurons]:
    """The second layer, each row turned to the side where its neuron is on, and neurons of the third. Cost: none."""
    z, slopes, sds = (np.concatenate(parts) for parts in zip(*orthant.slopes, strict=True))
    sizes = np.linalg.norm(slopes, axis=(1, 2))
    live = (sizes > FLAT * np.median(sizes)) & (sds < GOOD * sizes)
    z, slopes = z[live], slopes[live] / sizes[live, None, None]
    rows = _second_rows(orthant.met(), z, slopes, _rank(slopes, sds[live] / sizes[live]))
    v, c = np.array([row.v for row in rows]), np.array([row.c for row in rows])
    second = turned(whole_space(orthant.width), v, c, [row.share for row in rows], z, slopes)
    neurons = Neurons(SAME)
    for jump in sorted(orthant.jumps, key=lambda jump: jump.error):
        if jump.is_of(second.w, second.b):
            continue
        above = jump_of(second.w @ jump.z + second.b, second.w, jump.normal, jump.size * jump.output, jump.error)
        if above is not None:
            neurons.take(above)
    neurons.merge()
    return (second.w, second.b), neurons


def _second_rows(met: list[SecondRow], z: FloatArray, slopes: FloatArray, width: int) -> list[SecondRow]:
    """As many rows as gradients (n, m, h) at values z (n, h) have directions: those that have none on one side.

    Deeper neurons may hide most crossings of a crease, and creases of the third layer may look straight a few times.
    So the rows that most lines confirm come first, and the last few are chosen by the gradients.
    """
    ranked = sorted((row for row in met if row.hits >= FEWEST_HITS), key=lambda row: -row.hits)
    sure = sorted(apart([row for row in ranked if row.hits >= HITS_A_MISS * row.misses]), key=lambda row: -row.hits)
    best, least = None, np.inf
    for lacking in range(MOST_LACKING + 1):
        found = sure[: width - lacking]
        others = [row for row in ranked if len(apart([*found, row])) > len(found)][:MOST_OTHERS]
        open_ = width - len(found)
        for more in combinations(others, open_) if open_ <= MOST_LACKING else ():
            rows = [*found, *more]
            share = _off_share(rows, z, slopes)
            if share < least:
                best, least = rows, share
        if least < MARGIN / 2:
            break
    if best is None:
        raise StageFailed("second layer", "creases that gradients need are not found", number=len(sure), limit=width)
    return best


def _off_share(rows: list[SecondRow], z: FloatArray, slopes: FloatArray) -> float:
    """Slope along a neuron where it is off over that where it is on, in the mean, of the worst of these rows."""
    v, c = np.array([row.v for row in rows]), np.array([row.c for row in rows])
    sizes, above = np.linalg.norm(slopes @ np.linalg.pinv(v), axis=1), z @ v.T + c > 0
    means = [(sizes * side).sum(axis=0) / np.maximum(side.sum(axis=0), 1) for side in (above, ~above)]
    return float((np.minimum(*means) / np.maximum(np.maximum(*means), 1e-300)).max())


def _rank(slopes: FloatArray, errors: FloatArray) -> int:
    """How many directions gradients (n, m, h) of size one have, with errors (n,)."""
    explained = 8 * errors + SPAN_ERROR
    basis = np.linalg.svd(slopes.reshape(-1, slopes.shape[2]), full_matrices=False)[2]
    for rank in range(1, len(basis)):
        left = np.linalg.norm(slopes - slopes @ basis[:rank].T @ basis[:rank], axis=(1, 2))
        if (left > explained).sum() <= MOST_STRAYS:
            return rank
    return len(basis)
