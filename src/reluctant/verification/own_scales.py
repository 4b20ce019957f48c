"""Comparison at rows of the columns' own sizes, and around the place where the hyperplanes of a network meet.

At rows whose columns are all of size 1 the answers follow the column with the largest slopes. An error in another
column by the tolerance there is, at rows of that column's own size, larger by the ratio of their slopes. And a network
that was trained on columns such as years or prices has its hyperplanes where its data are, far from the origin. So
where no rows and no bounds of the inputs are known, `compare_at_own_scales` repeats the comparison in units in which
every column of the network weighs the same, around the origin and around that place. Values are compared by `examine`,
with the noise of the answers measured there; those behind a link where they can be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Noise
from reluctant.oracles.input_units import InputUnits, scaled_by
from reluctant.oracles.ledger import Counting
from reluctant.verification.agreement import HeldOutRows, Verification, examine
from reluctant.verification.comparison import (
    EXACT_TOLERANCE,
    MOST_TOLERANCE,
    AcceptedError,
    AtUse,
    compare_where_readable,
)
from reluctant.verification.points import SCALES, PointCounts
from reluctant.verification.precision import rounding_sizes

UNLIKE = 100.0  # the tolerance √ε becomes 1.5e-6 of a deviation: with less, more than half of its digits remain
FAINT = 1e-9  # of the largest slope: a column that does nothing may have such weights by rounding
FAINT_BY_NOISE = 1e3  # times the relative noise of answers: and such ones by noise, at the precision the target has
FAINTEST = 1e-18  # of the largest slope: fainter ones are below rounding wherever others say anything
FAINT_STEPS: FloatArray = np.repeat(10.0 ** np.arange(-np.log10(FAINTEST)), 2)  # in sizes of the other columns
AFFINE_STEPS: FloatArray = FAINT_STEPS[::3]  # of an affine map: no unit of it hides a column
CLEAR = 1e-10  # of the answers: smaller changes may be rounding
CLEAR_OF_NOISE = 1e2  # times the relative noise of answers: smaller changes may be noise
OWN_SCALE_COUNTS = PointCounts(points=36, per_neuron=1, on_lines=16)
FAR = SCALES[-1]  # of √d: no random point of the other comparisons lies farther from the origin
NEARER = 3.0  # times: hyperplanes have a common middle if most are so much nearer to it than to the origin
FEWEST_HYPERPLANES = 3  # that say where a middle is
BEYOND = 10.0  # times the median distance: such hyperplanes say nothing of a middle
WEAK_DIRECTION = 0.05  # of the largest singular value: along weaker ones hyperplanes say nothing of a middle
READABLE_SCALES = (0.3, 1.0, 3.0)
READABLE_POINTS = 64  # at each
AFFINE_POINTS = 4  # at each of them, of an affine map: rows far out, where it stays the same, tell more
FAR_ROWS, FARTHEST_OWN = 12, 1e4  # sizes of a column: years and prices are some hundred from 0
FAR_DIGITS = 1e4  # times the noise of an answer, at that distance: more of it would hide a crease


@dataclass(frozen=True)
class OwnScales:
    """How the comparison at rows of the columns' own sizes ended, and the units of these rows."""

    units: InputUnits
    check: Verification | AtUse

    @property
    def ok(self) -> bool:
        """True if network and target agree there."""
        return self.check.ok

    @property
    def ratio(self) -> float:
        """The largest unit of a column over the smallest."""
        return float(self.units.scale.max() / self.units.scale.min())

    @property
    def is_around_middle(self) -> bool:
        """True if the rows lie around the place where hyperplanes meet, and not around the origin."""
        return bool(self.units.centre.any())

    def __str__(self) -> str:
        return str(self.check)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"units": self.units.to_dict(), "check": self.check.to_dict()}


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
    tol: float = EXACT_TOLERANCE,
) -> OwnScales | None:
    """The comparison at rows of the columns' own sizes; None where those that do anything are alike, and none is far.

    noise: of an answer, relative to its size; behind a link that of the target's arithmetic. tol: the tolerance of
    values behind a link. Cost: nothing where all are alike and hyperplanes near; else, around the origin and around the
    middle of the hyperplanes, about 220 rows and two for each neuron, or 192 behind a link, 24 of an affine map; and 72
    more where columns are so faint that they may do nothing, 24 of an affine map.
    """
    sizes, found = column_sizes(network), None
    if not sizes.any():
        return None
    silent, unlike = np.zeros(network.dim, dtype=bool), are_unlike(sizes, weights := _weights_of_columns(network))
    if unlike:
        faint = sizes < max(FAINT, FAINT_BY_NOISE * noise) * sizes.max()
        clear = max(CLEAR, CLEAR_OF_NOISE * noise)
        steps = FAINT_STEPS if network.depth > 1 else AFFINE_STEPS
        silent = faint & (_do_nothing(oracle, sizes, faint, rng, clear, steps) if faint.any() else False)
        unlike = are_unlike(sizes[~silent], weights[~silent])
    for units in _own_units(network, np.where(silent, np.median(sizes[~silent]), sizes), unlike, rng):
        accepted = AcceptedError(tol, Noise(0.0, noise), most_tolerance)
        found = OwnScales(units, _compared_in(units, oracle, network, rng, accepted))
        if not found.ok:
            return found
    return found


def units_around_middle(network: ReLUNetwork, rng: np.random.Generator) -> InputUnits | None:
    """Units of the columns' own sizes around the place where the hyperplanes of the first layer meet.

    None where they have no common middle, or it lies where random rows are in any case. Asks nothing.
    """
    sizes = column_sizes(network)
    if not sizes.any():
        return None
    unlike = are_unlike(sizes, _weights_of_columns(network))
    return next((each for each in _own_units(network, sizes, unlike, rng) if each.centre.any()), None)


def _compared_in(
    units: InputUnits, oracle: Counting, network: ReLUNetwork, rng: np.random.Generator, accepted: AcceptedError
) -> Verification | AtUse:
    """Target against network in these units."""
    scaled, reduced = scaled_by(oracle, units), units.reduced_network(network)
    if oracle.facts.saturates and accepted.tol is not None and accepted.noise is not None:
        rows = _readable_rows(reduced, rng, accepted.noise.relative)
        roundings = accepted.noise.relative * rounding_sizes(network, units.rows(rows))
        compared = compare_where_readable(scaled, reduced, rows, accepted.tol, roundings)
        return replace(compared, own_scales=True)
    found = examine(scaled, reduced, rng, OWN_SCALE_COUNTS, AcceptedError(most=accepted.most))
    against = found.counterexamples
    if against is None:
        return found
    return replace(found, counterexamples=HeldOutRows(units.rows(against.rows), against.answers))


def _readable_rows(network: ReLUNetwork, rng: np.random.Generator, noise: float) -> FloatArray:
    """Rows (n, d) whose values can be read, for the most part.

    Where an affine map stays the same all of them can, however far out, and most neurons that it lacks change them.
    """
    may_go_far = network.depth == 1 and FAR_DIGITS * noise * FARTHEST_OWN < 1
    same = _unchanging(network) if may_go_far else np.empty((0, network.dim))
    scales = np.repeat(READABLE_SCALES, AFFINE_POINTS if len(same) else READABLE_POINTS)[:, None]
    rows = scales * rng.standard_normal((len(scales), network.dim))
    if not len(same):
        return rows
    far = np.geomspace(1.0, FARTHEST_OWN, FAR_ROWS)[:, None]
    return np.concatenate([rows, far * (rng.standard_normal((FAR_ROWS, len(same))) @ same)])


def _unchanging(affine: ReLUNetwork) -> FloatArray:
    """Directions (k, d) in which no output changes."""
    _, values, vt = np.linalg.svd(affine.weights[0])
    return np.asarray(vt[int(np.sum(values > 0)) :])


def _weights_of_columns(network: ReLUNetwork) -> NDArray[np.intp]:
    """How many weights (d,) of neurons and outputs each column of the input has, rounding excepted."""
    into = [network.incoming(layer).get(0) for layer in range(1, network.depth + 1)]
    rows = np.abs(np.concatenate([w for w in into if w is not None]))
    return np.asarray((rows > FAINT * rows.max()).sum(axis=0))


def _own_units(
    network: ReLUNetwork, sizes: FloatArray, unlike: bool, rng: np.random.Generator
) -> Iterator[InputUnits]:  # fmt: skip
    """Units in which columns weigh the same: around the origin if columns are unlike, and around a far middle."""
    even = 1 / np.maximum(sizes, FAINTEST * sizes.max())
    normals, offsets = _evened(network, even).hyperplanes() if network.depth > 1 else (np.empty((0, 0)),) * 2
    clear = np.isfinite(offsets) & (np.abs(offsets) > CLEAR)  # closer ones pass the middle, but for rounding
    distance = float(np.median(np.abs(offsets[clear]))) if clear.any() else 1.0
    if unlike:
        yield InputUnits(np.zeros(network.dim), even * distance)
    near = clear & (np.abs(offsets) <= BEYOND * distance)
    if near.sum() < FEWEST_HYPERPLANES:
        return
    middle = _middle(normals[near], offsets[near])
    centred = InputUnits(even * middle, even)
    is_far = np.linalg.norm(centred.centre) > FAR * np.sqrt(network.dim)
    if is_far and NEARER * np.median(np.abs(normals[near] @ middle + offsets[near])) < distance:
        yield replace(centred, scale=even * _size_around(centred.reduced_network(network), distance, rng))


def _evened(network: ReLUNetwork, even: FloatArray) -> ReLUNetwork:
    """The network of inputs in multiples of these sizes (d,)."""
    return network.with_inputs(lambda w: (w * even, np.zeros(len(w))))


def _middle(normals: FloatArray, offsets: FloatArray) -> FloatArray:
    """The point (d,) nearest to hyperplanes, and to the origin where they leave it open."""
    u, values, vt = np.linalg.svd(normals, full_matrices=False)
    strong = values > WEAK_DIRECTION * values[0]
    return np.asarray(vt[strong].T @ (u[:, strong].T @ -offsets / values[strong]))


def _size_around(network: ReLUNetwork, distance: float, rng: np.random.Generator) -> float:
    """The size of inputs at which units of a network around 0 change: four times the median; else `distance` / 10."""
    rays, sizes, times, smallest = rng.standard_normal((100, network.dim)), 10.0 ** np.arange(-6, 6, 0.25), 4.0, 0.1
    on = [np.concatenate(network.patterns(distance * size * rays), axis=1) for size in sizes]
    changes = np.cumsum([(a != b).sum() for a, b in pairwise(on)])
    if changes[-1] < len(rays):
        return smallest * distance
    return float(times * distance * sizes[np.searchsorted(changes, changes[-1] / 2)])


def _do_nothing(
    oracle: Counting, sizes: FloatArray, faint: NDArray[np.bool_], rng: np.random.Generator, clear: float,
    each: FloatArray,
) -> bool:  # fmt: skip
    """True if no step in the faint columns, up to where rounding hides the others, changes the answers.

    each: steps, in sizes of the other columns. A change by more than a faint slope makes over that step does not count:
    a unit has woken that is off at use.
    """
    ladder = each / sizes.max()
    rows = rng.normal(size=(len(ladder), oracle.dim)) * np.where(faint, 0.0, 1 / np.where(faint, 1.0, sizes))
    steps = ladder[:, None] * rng.normal(size=rows.shape) * faint
    with oracle.stage("verify", expected=2 * len(rows)):
        before, after = np.split(oracle.query(np.concatenate([rows, rows + steps])), 2)
    changes, largest = np.abs(after - before).max(axis=1), np.abs(before).max()
    return not bool(((changes > clear * largest) & (changes <= FAINT * ladder * oracle.dim)).any())
