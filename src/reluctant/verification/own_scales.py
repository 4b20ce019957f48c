"""A network compared at rows of its columns' own sizes, where the columns of its input are of unlike size.

At rows whose columns are all of size 1 the answers follow the column with the largest slopes. An error in another
column by the tolerance there is, at rows of that column's own size, larger by the ratio of their slopes. So where no
rows and no bounds of the inputs are known, the comparison is repeated in units in which every column of the network
weighs the same. The noise of the answers is measured there as well. Networks with even columns cost nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles.input_units import InputUnits, scaled_by
from reluctant.oracles.ledger import Counting
from reluctant.verification.agreement import HeldOutRows, Verification, examine
from reluctant.verification.comparison import MOST_TOLERANCE

UNLIKE = 100.0  # the tolerance √ε becomes 1.5e-6 of a deviation: with less, more than half of its digits remain
FAINT = 1e-9  # of the largest slope: a column that does nothing may have such weights by rounding
FAINT_BY_NOISE = 1e3  # times the relative noise of answers: and such ones by noise, at the precision the target has
FAINTEST = 1e-18  # of the largest slope: fainter ones are below rounding wherever others say anything
CLEAR = 1e-10  # of the answers: smaller changes may be rounding
CLEAR_OF_NOISE = 1e2  # times the relative noise of answers: smaller changes may be noise
POINTS, LINE_POINTS = 36, 16


def column_sizes(network: ReLUNetwork) -> FloatArray:
    """Bounds (d,) of the slope in each column: the products of absolute weights, over all paths to the outputs."""
    weights = [np.zeros(width) for width in network.widths]
    weights[-1] = np.ones(network.outputs)
    for layer in range(network.depth, 0, -1):
        for source, w in network.incoming(layer).items():
            weights[source] = weights[source] + weights[layer] @ np.abs(w)
    return weights[0]


def are_unlike(sizes: FloatArray, weights: NDArray[np.intp]) -> bool:
    """True if columns, of so many weights each, differ by two decades more than those of random weights do.

    The smallest of d columns of n Gaussian weights is about d^(-1/n) of a typical one.
    """
    return bool((sizes.max() > UNLIKE * len(sizes) ** (1 / np.maximum(weights, 1)) * sizes).any())


def compare_at_own_scales(
    oracle: Counting,
    network: ReLUNetwork,
    rng: np.random.Generator,
    most_tolerance: float = MOST_TOLERANCE,
    noise: float = 0.0,
) -> Verification | None:
    """The comparison at rows of the columns' own sizes; None where those that do anything are alike.

    noise: of an answer, relative to its size. Cost: nothing where all are alike; else about 220 rows and two for each
    neuron, and 72 more where columns are so faint that they may do nothing.
    """
    sizes, weights = column_sizes(network), _weights_of_columns(network)
    if not sizes.any() or not are_unlike(sizes, weights):
        return None
    faint = sizes < max(FAINT, FAINT_BY_NOISE * noise) * sizes.max()
    clear = max(CLEAR, CLEAR_OF_NOISE * noise)
    silent = faint & (_do_nothing(oracle, sizes, faint, rng, clear) if faint.any() else False)
    if not are_unlike(sizes[~silent], weights[~silent]):
        return None
    units = _own_units(network, np.where(silent, np.median(sizes[~silent]), sizes))
    found = examine(
        scaled_by(oracle, units), units.reduced_network(network), rng,
        points=POINTS, per_neuron=1, on_lines=LINE_POINTS, most_tolerance=most_tolerance,
    )  # fmt: skip
    against = found.counterexamples
    if against is None:
        return found
    return replace(found, counterexamples=HeldOutRows(units.rows(against.rows), against.answers))


def _weights_of_columns(network: ReLUNetwork) -> NDArray[np.intp]:
    """How many weights (d,) of neurons and outputs each column of the input has, rounding excepted."""
    into = [network.incoming(layer).get(0) for layer in range(1, network.depth + 1)]
    rows = np.abs(np.concatenate([w for w in into if w is not None]))
    return np.asarray((rows > FAINT * rows.max()).sum(axis=0))


def _own_units(network: ReLUNetwork, sizes: FloatArray) -> InputUnits:
    """Units in which columns weigh the same, and hyperplanes of the first layer pass at the scale of use."""
    units = InputUnits(np.zeros(network.dim), 1 / np.maximum(sizes, FAINTEST * sizes.max()))
    if network.depth == 1:
        return units
    offsets = np.abs(units.reduced_network(network).hyperplanes()[1])
    distances = offsets[np.isfinite(offsets) & (offsets > 0)]
    return replace(units, scale=units.scale * (float(np.median(distances)) if len(distances) else 1.0))


def _do_nothing(
    oracle: Counting, sizes: FloatArray, faint: NDArray[np.bool_], rng: np.random.Generator, clear: float
) -> bool:
    """True if no step in the faint columns, up to where rounding hides the others, changes the answers.

    A change by more than a faint slope makes over that step does not count: a unit has woken that is off at use.
    """
    ladder = np.repeat(10.0 ** np.arange(-np.log10(FAINTEST)), 2) / sizes.max()
    rows = rng.normal(size=(len(ladder), oracle.dim)) * np.where(faint, 0.0, 1 / np.where(faint, 1.0, sizes))
    steps = ladder[:, None] * rng.normal(size=rows.shape) * faint
    with oracle.stage("verify", expected=2 * len(rows)):
        before, after = np.split(oracle.query(np.concatenate([rows, rows + steps])), 2)
    changes, largest = np.abs(after - before).max(axis=1), np.abs(before).max()
    return not bool(((changes > clear * largest) & (changes <= FAINT * ladder * oracle.dim)).any())
