"""The incoming weights of one neuron, from a linear system in points on its crease; and the sides of the layer below.

The value before the ReLU is y·φ(x) + c in the features φ of the known layers. At the start p the crease has the
normal Jφ(p)ᵀ y, and y·(φ(q) - φ(p)) = 0 at every other point q of it. The coefficients that these equations leave
open stay as a null space: those of features that were constant wherever the crease was seen. Two creases of one
neuron, each seen where the other's open coefficients play no part, become one; known kinks may close open ones.

Sides: with features [max(z, 0), h] a neuron of the next layer has coefficients a of max(z, 0) and t of h. A neuron j
that is the wrong way round enters as a_j max(-z_j, 0) = a_j max(z_j, 0) - a_j z_j. So t = -Σ_j f_j a_j w_j, with f_j =
1 for those and 0 for the others. Every neuron of the next layer has the same f, which is one least squares over all
creases. Where a_j is open, because z_j was negative wherever the crease was seen, -f_j a_j is an unknown of its own: if
it is not zero, j is the wrong way round. Two neurons on one crease, one to each side, enter as a_j max(z_j, 0) - b z_j
with a b of its own for every neuron of the next layer: j is mirrored. Coefficients that stay open must only keep their
neuron on one side where it was never seen to switch. No queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product

import numpy as np
import scipy.linalg
from scipy.optimize import linprog

from reluctant.extraction.any_depth.features import FeaturesAround, KnownLayers
from reluctant.extraction.orientation import clear_choice
from reluctant.geometry.lines import BoolArray, IntArray
from reluctant.numerics import DOUBLE, FloatArray

SHORT_ROW = 0.05  # distances in feature space below this are not scaled up: their digits are few
PROBES = 2  # random combinations of open directions: if none of them matters, none does
OPEN_RANK = 1e-7  # of the largest singular value of the equations: smaller ones are open directions
OPEN_SHARE = 1e-6  # share of a unit step in an open direction that counts as open


@dataclass(frozen=True)
class Crease:
    """Points (k, d) of one neuron's crease, the first with its unit normal; `bend` is the change of slope there."""

    points: FloatArray
    normal: FloatArray
    bend: float

    def with_points(self, points: FloatArray) -> Crease:
        """More points of it."""
        return replace(self, points=np.concatenate([self.points, points]))


@dataclass(frozen=True)
class IncomingWeights:
    """Weights y (F,) and bias of a neuron in the known features; `open` (F, u) spans the undetermined part.

    start: features of the crease's first point. residual: of the linear system. least: what a further equation has to
    tell of an open direction to settle it.
    """

    weights: FloatArray
    open: FloatArray
    start: FloatArray
    residual: float
    least: float

    @property
    def bias(self) -> float:
        """Zero at the start of the crease."""
        return -float(self.weights @ self.start)

    @property
    def closed(self) -> bool:
        """True if nothing is open."""
        return self.open.shape[1] == 0

    def values(self, features: FloatArray) -> FloatArray:
        """Values before the ReLU at features (n, F)."""
        return (features - self.start) @ self.weights

    def determined(self, features: FloatArray) -> BoolArray:
        """At which features (n, F) the value does not depend on the open part."""
        if self.closed:
            return np.ones(len(features), dtype=bool)
        away = features - self.start
        return np.asarray(
            np.linalg.norm(away @ self.open, axis=1) <= OPEN_SHARE * (SHORT_ROW + np.linalg.norm(away, axis=1))
        )

    @cached_property
    def probes(self) -> FloatArray:
        """Rows (2, PROBES, F): random combinations of the open part, and of everything, of the same size."""
        rng = np.random.default_rng(len(self.weights))
        every = rng.standard_normal((PROBES, len(self.weights)))
        return np.array([rng.standard_normal((PROBES, self.open.shape[1])) @ self.open.T, every])

    def flat(self, around: FeaturesAround) -> BoolArray:
        """Around which points the normal does not depend on the open part."""
        n = len(around.features)
        if self.closed:
            return np.ones(n, dtype=bool)
        probes = np.broadcast_to(self.probes[:, :, None, :], (2, PROBES, n, len(self.weights)))
        change, whole = np.linalg.norm(around.feature_gradients(probes), axis=(1, 3))
        return np.asarray(change <= OPEN_SHARE * whole)

    def sure_points(self, known: KnownLayers, crease: Crease) -> FloatArray:
        """Points of the crease around which it is determined."""
        around = known.around(crease.points)
        return crease.points[self.flat(around) & self.determined(around.features)]

    def through(self, features: FloatArray) -> IncomingWeights:
        """The same with a further point (F,) on the crease, which settles one open direction if it depends on any.

        The weights of `solve_crease` with this point: of all that fit the points so far, the shortest that fit it too.
        """
        row = features - self.start
        row = row / (np.linalg.norm(row) + SHORT_ROW)
        tells = row @ self.open
        size = float(np.linalg.norm(tells))
        if size <= self.least:
            return self
        mirror = tells / size
        mirror[0] += np.copysign(1.0, mirror[0])  # a reflection that takes what the row tells to the first direction
        mirror /= np.linalg.norm(mirror)
        turned = self.open - 2 * np.outer(self.open @ mirror, mirror)
        weights = self.weights - self.open @ tells * ((row @ self.weights) / size**2)
        return replace(self, weights=weights, open=turned[:, 1:])

    def open_features(self) -> BoolArray:
        """Features (F,) whose coefficient is open."""
        return np.asarray(np.linalg.norm(self.open, axis=1) > OPEN_SHARE)


def solve_crease(known: KnownLayers, crease: Crease) -> IncomingWeights:
    """Least squares over the normal at the start and all points.

    A normal is a difference of slopes over short steps, a point has all digits: where points are many they count more.
    """
    beside_points = 0.03  # weight of the normal beside more points than there are unknowns
    at_start = known.local(crease.points[:1])
    start = at_start.features[0]
    rows = known.features(crease.points[1:]) - start
    rows /= (np.linalg.norm(rows, axis=1) + SHORT_ROW)[:, None]
    trust = beside_points if len(rows) > len(start) else 1.0
    matrix = np.concatenate([trust * at_start.jacobian[0].T, rows])
    right = np.concatenate([trust * crease.normal, np.zeros(len(rows))])
    u, sizes, vt = _svd(matrix)
    rank = int((sizes > OPEN_RANK * sizes[0]).sum())
    weights = vt[:rank].T @ ((u[:, :rank].T @ right) / sizes[:rank])
    residual = float(np.linalg.norm(matrix @ weights - right))
    return IncomingWeights(weights, vt[rank:].T, start, residual, OPEN_RANK * float(sizes[0]))


def _svd(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """U, S and all right singular vectors; the fast algorithm fails now and then, the other one does not."""
    whole = len(matrix) < matrix.shape[1]
    try:
        return np.linalg.svd(matrix, full_matrices=whole)
    except np.linalg.LinAlgError:
        u, sizes, vt = scipy.linalg.svd(matrix, full_matrices=whole, lapack_driver="gesvd")
        return u, sizes, vt


def same_neuron(one: IncomingWeights, other: IncomingWeights) -> bool:
    """True if weights of both, open coefficients chosen freely, are proportional."""
    same_residual = 1e-7  # relative residual
    same_rank = 1e-7
    spare_equations = 2  # equations that two different neurons would have to satisfy by chance
    smallest_ratio = 1e-6  # of the sizes of two normals
    matrix = np.hstack([_with_bias(one.open, one), -_with_bias(other.open, other), -_weights_with_bias(other)])
    target = -_weights_with_bias(one)[:, 0]
    found, _, rank, _ = np.linalg.lstsq(matrix, target, rcond=same_rank)
    off = np.linalg.norm(matrix @ found - target) / np.linalg.norm(target)
    return bool(off < same_residual and abs(found[-1]) > smallest_ratio and len(target) - rank >= spare_equations)


def joined_creases(one: Crease, other: Crease) -> Crease:
    """All points of both."""
    return one.with_points(other.points)


def _weights_with_bias(incoming: IncomingWeights) -> FloatArray:
    return _with_bias(incoming.weights[:, None], incoming)


def _with_bias(columns: FloatArray, incoming: IncomingWeights) -> FloatArray:
    return np.concatenate([columns, -(incoming.start @ columns)[None]])


DEPENDS_SHARE = 1e-2  # share of that distance along open directions that makes a kink tell


def close_from_kinks(
    known: KnownLayers, crease: Crease, incoming: IncomingWeights, points: FloatArray
) -> Crease | None:
    """The crease with those unexplained kinks (n, d) that agree on its open coefficients, None if too few do."""
    most_open = 2  # coefficients: more would have too many combinations
    most_kinks = 60
    u = incoming.open.shape[1]
    if not 0 < u <= most_open:
        return None
    away = known.features(points) - incoming.start
    away /= np.linalg.norm(away, axis=1, keepdims=True) + DOUBLE.tiny
    fixed, free = away @ incoming.weights, away @ incoming.open
    telling = np.flatnonzero(np.linalg.norm(free, axis=1) > DEPENDS_SHARE)[:most_kinks]
    best = _best_agreement(fixed[telling], free[telling], u)
    if best is None or not _overdetermined(free[telling[best]]):
        return None
    return crease.with_points(points[telling[best]])


def _overdetermined(rows: FloatArray) -> bool:
    """True if the rows still determine all unknowns when any one of them is left out."""
    n, u = rows.shape
    return n > u and all(np.linalg.matrix_rank(np.delete(rows, k, axis=0), DEPENDS_SHARE**2) == u for k in range(n))


def _best_agreement(fixed: FloatArray, free: FloatArray, u: int) -> BoolArray | None:
    """The largest set of equations fixed + free @ ν = 0 with a common solution, among those u of them give."""
    kinks_agree = 1e-8  # relative to the distance in feature space
    best: BoolArray | None = None
    for chosen in combinations(range(len(fixed)), u):
        which = list(chosen)
        if np.linalg.cond(free[which]) > 1 / DEPENDS_SHARE**2:
            continue
        solution = np.linalg.solve(free[which], -fixed[which])
        agree = np.abs(fixed + free @ solution) < kinks_agree * (1 + np.linalg.norm(solution))
        if best is None or agree.sum() > best.sum():
            best = agree
    return best


SIDES_RANK = 1e-6  # relative
PRESENT_WEIGHT = 1e-5  # a coefficient of a neuron's weights larger than this is one


@dataclass(frozen=True)
class _SideEquations:
    """One neuron of the next layer: t = -(w a) f - w g with g zero except for open coefficients.

    products: (k', u) columns w_j a_j of the undecided neurons. rows: (k', u) columns w_j. Both in the directions of t
    that are determined.
    """

    products: FloatArray
    rows: FloatArray
    right: FloatArray
    open: BoolArray

    @classmethod
    def of(cls, known: KnownLayers, incoming: IncomingWeights) -> _SideEquations:
        layer = known.layers[-1]
        h = len(layer)
        size = np.linalg.norm(incoming.weights)
        a, t = incoming.weights[:h] / size, layer.beside.T @ incoming.weights[h:] / size
        open_ = (np.linalg.norm(incoming.open[:h], axis=1) > OPEN_SHARE)[layer.undecided]
        fixed = np.hstack([np.eye(len(t))[:, layer.carried], layer.weights[layer.mirrored].T])
        undetermined = np.hstack([layer.beside.T @ incoming.open[h:], fixed])
        u, sizes, _ = np.linalg.svd(undetermined)
        sure = u[:, int((sizes > SIDES_RANK).sum()) :].T
        w, a = layer.weights[layer.undecided].T, a[layer.undecided]
        return cls(sure @ np.where(open_, 0.0, w * a), sure @ w, sure @ t, open_)

    def opened(self, also: BoolArray) -> _SideEquations:
        """With unknowns of their own for these neurons too."""
        return replace(self, products=np.where(also, 0.0, self.products), open=self.open | also)

    def without_open(self) -> tuple[FloatArray, FloatArray]:
        """Equations in f alone."""
        u, sizes, _ = np.linalg.svd(self.rows[:, self.open])
        rest = u[:, int((sizes > SIDES_RANK).sum()) :].T
        return -rest @ self.products, rest @ self.right

    def open_parts(self, sides: FloatArray) -> FloatArray:
        """The unknowns g (u,) that the open coefficients leave, given f."""
        parts = np.zeros(len(self.open))
        left = -(self.right + self.products @ sides)
        parts[self.open] = np.linalg.lstsq(self.rows[:, self.open], left, rcond=SIDES_RANK)[0]
        return parts


def find_sides(known: KnownLayers, incomings: Sequence[IncomingWeights], *, final: bool = False) -> BoolArray | None:
    """Which neurons of the last layer must be turned round, None while that is not clear.

    If this is final, neurons whose coefficients are open everywhere are judged by what they leave in t.
    """
    equations = [_SideEquations.of(known, incoming) for incoming in incomings]
    sides = _sides_of(equations, final=final)
    if sides is None:
        return None
    wrong = np.zeros(len(known.layers[-1]), dtype=bool)
    wrong[known.layers[-1].undecided] = sides
    return wrong


def find_unread(known: KnownLayers, incomings: Sequence[IncomingWeights]) -> IntArray:
    """Which neurons of the last layer none of these reads, as far as their coefficients are determined."""
    fewest = 2  # neurons that do not read it
    if not known.layers or len(incomings) < fewest:
        return np.empty(0, dtype=np.intp)
    h = len(known.layers[-1])
    sizes = np.array([np.abs(each.weights[:h]) / np.linalg.norm(each.weights) for each in incomings])
    sure = np.array([np.linalg.norm(each.open[:h], axis=1) <= OPEN_SHARE for each in incomings])
    read = (sure & (sizes > PRESENT_WEIGHT)).any(axis=0)
    return np.flatnonzero(~read & (sure.sum(axis=0) >= fewest))


def find_mirrored(known: KnownLayers, incomings: Sequence[IncomingWeights]) -> tuple[BoolArray, BoolArray] | None:
    """Which neurons of the last layer to turn and which one is mirrored, where that explains all of `incomings`."""
    fewest = 3  # neurons of the next layer: one of them could be explained by any pair
    layer = known.layers[-1]
    undecided = np.flatnonzero(layer.undecided)
    equations = [_SideEquations.of(known, incoming) for incoming in incomings]
    if len(equations) < fewest or 1 + len(layer.mirrored) + len(layer.carried) >= layer.weights.shape[1]:
        return None
    for k, neuron in enumerate(undecided):
        alone = np.arange(len(undecided)) == k
        sides = _sides_of([each.opened(alone) for each in equations], final=True)
        if sides is not None:
            wrong = np.zeros(len(layer), dtype=bool)
            wrong[undecided] = sides & ~alone
            return wrong, np.arange(len(layer)) == neuron
    return None


def sides_are_told(known: KnownLayers, incomings: Sequence[IncomingWeights]) -> bool:
    """True if the coefficients that are determined are enough to tell all sides of the last layer."""
    matrix = np.concatenate([_SideEquations.of(known, incoming).without_open()[0] for incoming in incomings])
    return bool(np.linalg.matrix_rank(matrix, SIDES_RANK) == matrix.shape[1])


def _sides_of(equations: Sequence[_SideEquations], *, final: bool) -> BoolArray | None:
    """Which undecided neurons must be turned round, None while that is not clear."""
    clear_side = 1e-2  # largest distance from 0 or 1 of a choice that is clear
    sides_agree = 1e-5  # residual of the equations, relative to their size
    if not equations:
        return None
    parts = [e.without_open() for e in equations]
    matrix, right = np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])
    seen = np.abs(matrix).max(axis=0, initial=0) > PRESENT_WEIGHT
    if not (seen.all() or final) or len(matrix) < seen.sum():
        return None
    sides = np.zeros(len(seen))
    sides[seen], _, rank, _ = np.linalg.lstsq(matrix[:, seen], right, rcond=SIDES_RANK)
    rounded = clear_choice(sides, clear_side)
    if rank < seen.sum() or rounded is None:
        return None
    if np.linalg.norm(matrix @ rounded - right) > sides_agree * np.sqrt(len(equations)):
        return None
    left = np.max([np.abs(e.open_parts(rounded)) for e in equations], axis=0) > PRESENT_WEIGHT
    return np.asarray((rounded > 0) | (~seen & left))


def try_sides(known: KnownLayers, creases: Sequence[Crease], most: float) -> BoolArray | None:
    """Which neurons of the last layer to turn, if with one choice alone all creases are ones of the next layer.

    Above few neurons creases show in one of their cells alone, where sides and what goes on beside look alike.
    most: residual of a crease.
    """
    most_undecided = 6  # neurons: more have too many combinations
    undecided = np.flatnonzero(known.layers[-1].undecided)
    if not creases or len(undecided) > most_undecided:
        return None
    found = None
    for choice in product((False, True), repeat=len(undecided)):
        wrong = np.zeros(len(known.layers[-1]), dtype=bool)
        wrong[undecided] = choice
        sided = known.with_sides(wrong)
        if all(_is_told(sided, crease, most) for crease in creases):
            if found is not None:
                return None
            found = wrong
    return found


def _is_told(known: KnownLayers, crease: Crease, most: float) -> bool:
    """True if a crease is one of these features, by more equations than there are unknowns."""
    spare = 2  # equations that features chosen at random would not satisfy
    incoming = solve_crease(known, crease)
    settled = len(incoming.weights) - incoming.open.shape[1]
    return incoming.residual < most and settled + spare <= len(crease.normal) + len(crease.points) - 1


@dataclass(frozen=True)
class SettledWeights:
    """Weights with the open coefficients chosen; `on` if the neuron is on where they play a part.

    margin: by how much it stays on its side, relative; not positive if no choice keeps it there.
    """

    weights: FloatArray
    on: bool
    margin: float


def settle_open(incoming: IncomingWeights, features: FloatArray) -> SettledWeights:
    """Choose the open coefficients so that the neuron does not switch at features (n, F) where they matter."""
    return max(settled_sides(incoming, features)[:2], key=lambda each: each.margin)


def settled_sides(incoming: IncomingWeights, features: FloatArray, *, soft: bool = False) -> list[SettledWeights]:
    """Open coefficients chosen so that the neuron stays on where they matter, and so that it stays off.

    Where several are open it may be on where one matters alone and off where another does. soft: few features may be
    on the other side, as those beyond a crease that no line has met; the margin is then above 0 if they are few.
    """
    enough_features, most_open = 2000, 3
    away = features[~incoming.determined(features)][:enough_features] - incoming.start
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    fixed, free = away @ incoming.weights, away @ incoming.open
    sides = [np.ones(len(away)), -np.ones(len(away))]
    matters = np.abs(free) > OPEN_SHARE
    if 1 < free.shape[1] <= most_open:
        alone = matters & (matters.sum(axis=1) == 1)[:, None]
        mixed = [np.array(signs) for signs in product((1.0, -1.0), repeat=free.shape[1]) if len(set(signs)) > 1]
        sides += [(alone * signs).sum(axis=1) for signs in mixed]
    found = []
    for side in sides:
        told = side != 0
        step, margin = _keep_on((side * fixed)[told], (side[:, None] * free)[told])
        if margin <= 0 and soft:
            step, margin = _keep_most_on((side * fixed)[told], (side[:, None] * free)[told])
        found.append(SettledWeights(incoming.weights + incoming.open @ step, bool((side > 0).any()), margin))
    return found


def settled_by_states(incoming: IncomingWeights, features: FloatArray, states: FloatArray) -> SettledWeights:
    """Open coefficients chosen so that the neuron has these states (n,) at features: 1 on, -1 off, 0 not known."""
    enough_features = 2000
    told = np.flatnonzero((states != 0) & ~incoming.determined(features))
    told = told[:: 1 + len(told) // enough_features]
    away = features[told] - incoming.start
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    fixed, free = states[told] * (away @ incoming.weights), states[told, None] * (away @ incoming.open)
    step, margin = _keep_on(fixed, free)
    if margin <= 0:
        step, margin = _keep_most_on(fixed, free)
    return SettledWeights(incoming.weights + incoming.open @ step, bool((states[told] > 0).any()), margin)


def _keep_on(fixed: FloatArray, free: FloatArray) -> tuple[FloatArray, float]:
    """ν with fixed + free @ ν at least the margin everywhere, and the largest such margin, at most one."""
    largest_open = 10.0  # coefficient, in units of the known weights' norm
    n, u = free.shape
    if not n:
        return np.zeros(u), 0.0
    objective = np.append(np.zeros(u), -1.0)
    bounds = [(-largest_open, largest_open)] * u + [(None, 1.0)]
    found = linprog(objective, A_ub=np.hstack([-free, np.ones((n, 1))]), b_ub=fixed, bounds=bounds, method="highs")
    return (found.x[:-1], float(found.x[-1])) if found.status == 0 else (np.zeros(u), -np.inf)


def _keep_most_on(fixed: FloatArray, free: FloatArray) -> tuple[FloatArray, float]:
    """ν with fixed + free @ ν positive almost everywhere; the margin is above 0 if that holds at most features."""
    most, least, largest_open, few = 300, 1e-3, 100.0, 0.1
    fixed, free = fixed[:most], free[:most]
    n, u = free.shape
    if not n:
        return np.zeros(u), 0.0
    objective = np.append(np.zeros(u), np.ones(n))
    bounds = [(-largest_open, largest_open)] * u + [(0.0, None)] * n
    found = linprog(objective, A_ub=np.hstack([-free, -np.eye(n)]), b_ub=fixed - least, bounds=bounds, method="highs")
    if found.status != 0:
        return np.zeros(u), -np.inf
    step = found.x[:u]
    return step, few - float((fixed + free @ step <= 0).mean())
