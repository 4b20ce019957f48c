"""Normals of the decision boundary: the directions that labels depend on, found one by one, then refined together.

Search: at a boundary point that a step orthogonal to all known directions moves off the boundary, the normal has a
part that is new. It is measured along the complement, and the search ends when enough points in a row stay where
they are.

Refinement: with V the rough basis, W the rest and c the normal inside V, the true span is V + E W with E c = normal
along W. The components along W come from crossings moved aside by H; inside the span that is a move of H·|E| only, so
H grows as the error falls, and each stage gains as many bits as the crossings are bisected to, less the condition of
the normals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import qr

from reluctant.geometry.boundary import FAR_CROSSING, Boundary, LabelField, boundary_slopes
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.span.first_look import Inputs, as_long_as_allowed, moves_outside
from reluctant.span.subspace import Complement, Subspace


@dataclass(frozen=True)
class LabelledPoints:
    """Random inputs with their labels."""

    points: FloatArray  # (n, d)
    labels: FloatArray  # (n,)
    source: Inputs
    scale: float

    @property
    def one_label(self) -> bool:
        """True if all labels are the same."""
        return bool((self.labels == self.labels[0]).all())

    @property
    def names(self) -> set[float]:
        """Labels that occur."""
        return set(self.labels.tolist())

    def rare(self, names: set[float], least: int) -> set[float]:
        """Labels, of these and its own, that occur less often than `least`."""
        return {name for name in names | self.names if (self.labels == name).sum() < least}

    def __getitem__(self, which: BoolArray) -> LabelledPoints:
        return replace(self, points=self.points[which], labels=self.labels[which])

    def more(self, oracle: Counting, n: int, rng: np.random.Generator, *, farther: float = 1.0) -> LabelledPoints:
        """New inputs like these, or so many times as far out. Cost: a row each."""
        points = self.source.draw(n, farther * self.scale, rng)
        return replace(self, points=points, labels=oracle.query(points)[:, 0])

    def __add__(self, other: LabelledPoints) -> LabelledPoints:
        points, labels = np.concatenate([self.points, other.points]), np.concatenate([self.labels, other.labels])
        return replace(self, points=points, labels=labels)

    def pairs(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Random pairs of inputs with different labels: first ones, second ones, labels of the first.

        Every label has its turn, however rare it is.
        """
        names = np.unique(self.labels)
        chosen = rng.choice(names, n)
        first = np.array([rng.choice(np.flatnonzero(self.labels == label)) for label in chosen])
        second = np.array([rng.choice(np.flatnonzero(self.labels != label)) for label in chosen])
        return self.points[first], self.points[second], self.labels[first]


def label_points(oracle: Counting, inputs: Inputs, rng: np.random.Generator) -> LabelledPoints:
    """Random inputs, as many as it takes to see two labels. Cost: 64 rows; 4096 for one that never changes."""
    label_blocks = ((64, 1.0), (448, 1.0), (512, 10.0), (1024, 1.0), (2048, 1.0))  # rows, scale: until labels differ
    points, labels, scale = inputs.until_answers_differ(oracle.query, label_blocks, rng)
    return LabelledPoints(points, labels[:, 0], inputs, scale)


def changed_labels(oracle: Counting, seen: LabelledPoints, times: int = 1) -> int:
    """How many inputs have another label when they are asked again so many times. Cost: a row each, every time."""
    again = oracle.query(np.tile(seen.points, (times, 1)))[:, 0].reshape(times, -1)
    return int((again != seen.labels).any(axis=0).sum())


# ---- the search for directions

LOCATED_SHARE = 0.125  # of the offset: how well a point has to be known for that


@dataclass(frozen=True)
class _Hearing:
    """A signal: a step aside, orthogonal to the span, that moves the boundary by more than an offset."""

    offset: float  # across the boundary, where labels are asked, in typical coordinates
    aside: float  # in every coordinate
    least_share: float  # of a normal outside the span that is a new direction
    patience: int  # points in a row without news that end the search


ROUGH_HEARING = _Hearing(offset=0.02, aside=0.5, least_share=0.01, patience=16)
SHARP_HEARING = _Hearing(offset=0.004, aside=2.0, least_share=1e-3, patience=48)


def unmoved(
    field: LabelField, basis: FloatArray, boundary: Boundary, offset: float, aside: float, rng: np.random.Generator
) -> np.ndarray:
    """Which boundary points stay where they are, within the offset, on a step outside the span. Cost: 2 rows each."""
    moves = moves_outside(basis, boundary.points, aside * np.sqrt(field.dim - len(basis)), field.domain, rng)
    lines, off = boundary.lines(moves), np.full(len(boundary), offset)
    return np.asarray(lines.before(field.ask, -off) & ~lines.before(field.ask, off))


def find_directions(
    field: LabelField,
    seen: LabelledPoints,
    complement: Complement,
    rng: np.random.Generator,
    keep: Callable[[FloatArray], None],
    *,
    sharp: bool = False,
) -> bool:
    """Take directions out of the complement until none is seen; True if the search ended because all was quiet.

    sharp: those removed before are exact, so that weaker ones stand out from their error.
    """
    most_refused = 40  # points whose normal could not be measured or had no news after all
    run = _NormalSearch(field, seen, complement, rng, SHARP_HEARING if sharp and not field.coarse else ROUGH_HEARING)
    refused = 0
    while complement.rank < field.dim and refused < most_refused:
        if not run.fill():
            return True
        refused = 0 if run.measure() else refused + 1
        keep(complement.basis)
    return complement.rank == field.dim


class _NormalSearch:
    """Boundary points that have news, and how many in a row had none."""

    def __init__(
        self, field: LabelField, seen: LabelledPoints, complement: Complement, rng: np.random.Generator, ears: _Hearing
    ) -> None:
        self.field, self.seen, self.complement, self.rng, self.ears = field, seen, complement, rng, ears
        self.offset = ears.offset * field.scale
        self.pool: Boundary | None = None
        self.quiet = 0

    def fill(self) -> bool:
        """Keep points with news; False once enough points in a row have none."""
        points_kept = 12  # boundary points kept for the next directions
        old = self.pool
        self.pool, self.quiet = None, 0
        if old is not None and len(old):
            self.take(old)
        while self.pool is None or not len(self.pool):
            if self.quiet >= self.ears.patience:
                return False
            pairs = self.seen.pairs(points_kept, self.rng)
            self.take(Boundary.between(self.field.ask, *pairs, LOCATED_SHARE * self.offset))
        return True

    def take(self, boundary: Boundary) -> None:
        """Look at boundary points along the span; those with news are kept."""
        basis = self.complement.basis
        turned, found = boundary.inside(self.field, basis, self.offset, LOCATED_SHARE * self.offset)
        turned = turned[found]
        if not len(turned):
            return
        if len(basis):
            still = unmoved(self.field, basis, turned, self.offset, self.ears.aside * self.field.scale, self.rng)
        else:
            still = np.zeros(len(turned), dtype=bool)
        self.quiet += int(still.sum())
        self.pool = turned[~still]

    def measure(self) -> bool:
        """Measure the normal at one point, along everything; True if it brought a direction."""
        normal_step = 1e-4  # aside, for a normal, of a typical coordinate
        normal_bits = 10.0
        placed_share = 2.0**-24  # of a step aside: how well the crossing that it starts from is known
        least_coarse_share = 0.03
        assert self.pool is not None
        one, self.pool = self.pool[:1], self.pool[1:]
        step = self.field.step(normal_step)
        located = max(self.field.resolution, step * placed_share)
        t = self.field.crossings(one.lines(), 0.0, self.offset, located, FAR_CROSSING * self.offset)
        if not np.isfinite(t[0]):
            return False
        directions = np.concatenate([self.complement.rows, self.complement.basis])
        expected = 1.0 if not self.complement.rank else 1 / np.sqrt(self.field.dim)
        normal = -boundary_slopes(
            self.field, one.moved(t), directions, step, normal_bits, expected=expected, symmetric=self.field.coarse
        )[0]
        fresh = normal[: len(self.complement.rows)]
        share = np.linalg.norm(fresh) / np.linalg.norm(normal)
        if not share > (
            least_coarse_share if self.field.coarse else self.ears.least_share
        ):  # NaN as well: a crossing was lost
            return False
        self.complement.take(fresh[None] / np.linalg.norm(fresh))
        return True


# ---- refinement

STEP, FINE_STEP = 1e-3, 1e-6  # aside, for a first normal inside the span and for the last
LOCATED = 1e-2
OFFSET, ASIDE, SILENT = 0.02, 2.0, 0.9  # a direction is silent if such a step leaves so many points within that
MOVE = 1e-6  # inside the span, of a typical coordinate: what a long step may amount to there
LONGEST = 30.0  # step, in typical coordinates


@dataclass(frozen=True)
class NormalFrame:
    """A basis, boundary points, and the unit normals (n, k) there in its coordinates; lines run along them.

    known: so many of its directions, the first, are exact.
    """

    basis: FloatArray
    boundary: Boundary
    normals: FloatArray
    known: int = 0

    @property
    def unknown(self) -> FloatArray:
        """The part of the normals along directions that are not exact yet."""
        return self.normals[:, self.known :]

    @property
    def condition(self) -> float:
        """Condition number of the equations for normals that are not exact yet."""
        sizes = np.append(1.0 if self.known else 0.0, np.linalg.svd(self.unknown, compute_uv=False))
        sizes = np.array([sizes.max(), sizes[-1]])
        return float(sizes[0] / sizes[-1]) if sizes[-1] > 0 else np.inf


@dataclass(frozen=True)
class RefinedSpan:
    """The refined basis, what each stage corrected, what should be left, and the condition of the normals."""

    basis: FloatArray
    corrections: tuple[float, ...]
    left: float
    condition: float
    good: bool


def choose_normals(
    field: LabelField, seen: LabelledPoints, basis: FloatArray, known: int, rng: np.random.Generator
) -> NormalFrame | None:
    """Boundary points with well conditioned normals; None if too few were found.

    The first `known` directions are exact: points are chosen for the others.
    """
    more_candidates, rare = 3, 0.01  # times as many again, as long as a direction has so little of their normals
    sharp_offset = 0.002  # beside a span that is exact
    dropped = 3e-3  # singular value of the normals, of the largest, below which a direction is none
    boundary, normals = _candidates(field, seen, basis, rng)
    for _ in range(more_candidates):
        if len(boundary) >= len(basis) and _weakest(normals) > rare:
            break
        others, more = _candidates(field, seen, basis, rng)
        boundary, normals = boundary + others, np.concatenate([normals, more])
    if len(boundary) < len(basis):
        return None
    _, sizes, directions = np.linalg.svd(normals, full_matrices=False)
    if known:
        kept = np.append(np.ones(known, dtype=bool), _not_silent(field, boundary, basis[known:], sharp_offset))
        basis, normals = basis[kept], _unit(normals[:, kept])
    else:
        kept = _not_silent(field, boundary, directions @ basis, OFFSET) & (sizes > dropped * sizes[0])
        basis, normals = directions[kept] @ basis, _unit(normals @ directions[kept].T)
    if len(basis) == known:
        return None
    chosen = qr(normals[:, known:].T, pivoting=True, mode="economic")[2][: len(basis) - known]
    return _measured(field, NormalFrame(basis, boundary[chosen], normals[chosen], known))


def _weakest(normals: FloatArray) -> float:
    sizes = np.linalg.svd(normals, compute_uv=False)
    return float(sizes[-1] / sizes[0])


def _candidates(
    field: LabelField, seen: LabelledPoints, basis: FloatArray, rng: np.random.Generator
) -> tuple[Boundary, FloatArray]:
    """Boundary points with lines inside the span, and rough unit normals (n, k) there."""
    candidates = 3  # boundary points for each direction, of which the best conditioned are chosen
    spare = 8
    coarse_bits = 6.0
    step = field.step(STEP)
    boundary = Boundary.between(field.ask, *seen.pairs(candidates * len(basis) + spare, rng), LOCATED * field.scale)
    located = max(field.resolution, step * 2.0 ** -(coarse_bits + 4))
    boundary, found = boundary.inside(field, basis, LOCATED * field.scale, located)
    return normals_inside(field, boundary[found], basis, step, coarse_bits)


def normals_inside(
    field: LabelField, boundary: Boundary, basis: FloatArray, step: float, bits: float
) -> tuple[Boundary, FloatArray]:
    """Boundary points with a measured unit normal along a basis, and these normals (n, k)."""
    normals = -boundary_slopes(field, boundary, basis, step, bits, expected=1.0, symmetric=field.coarse)
    good = np.asarray(np.isfinite(normals).all(axis=1))
    return boundary[good], _unit(normals[good])


def _not_silent(field: LabelField, boundary: Boundary, directions: FloatArray, offset_share: float) -> np.ndarray:
    """Which directions (k, d), the weakest last, move the boundary: a crease can make one up that does not.

    Cost: 2 rows a boundary point for the weakest one, as many again for each that is silent.
    """
    kept, offset = np.ones(len(directions), dtype=bool), np.full(len(boundary), offset_share * field.scale)
    for i in range(len(directions) - 1, -1, -1):
        moves = np.tile(ASIDE * field.scale * directions[i], (len(boundary), 1))
        lines = boundary.lines(as_long_as_allowed(field.domain, boundary.points, moves))
        still = lines.before(field.ask, -offset) & ~lines.before(field.ask, offset)
        if still.mean() < SILENT:
            break
        kept[i] = False
    return kept


def _measured(field: LabelField, frame: NormalFrame) -> NormalFrame:
    """The frame with lines along the normals, and normals as precise as crossings can be placed."""
    fine_bits = 17.0
    guess_spread = 2.0**-5
    scale = LOCATED * field.scale
    boundary, _ = frame.boundary.turned(field, frame.normals @ frame.basis, scale, field.resolution)
    step = field.step(FINE_STEP)
    found = -boundary_slopes(
        field, boundary, frame.basis, step, fine_bits,
        expected=guess_spread, guess=-frame.normals, symmetric=field.coarse,
    )  # fmt: skip
    normals = _unit(np.where(np.isfinite(found).all(axis=1, keepdims=True), found, frame.normals))
    return _aligned(replace(frame, boundary=boundary, normals=normals))


def _aligned(frame: NormalFrame) -> NormalFrame:
    boundary = Boundary(frame.boundary.points, frame.normals @ frame.basis, frame.boundary.label)
    return replace(frame, boundary=boundary)


def refine_from_labels(field: LabelField, frame: NormalFrame) -> RefinedSpan:
    """Stages until nothing is gained."""
    first_error = 0.03  # of the span, before anything is known
    stalled, most_stalls = 0.5, 2  # a correction that leaves more of the one before; so many in a row end it
    close = 1.5  # times what cannot be corrected: no stage is worth its rows
    caution = 8.0  # a stage may gain so much less than its bits
    most_stages = 10
    largest = 10.0  # correction, as a tangent: more means that a direction is missing or is none
    corrections: list[float] = []
    error, stalls = first_error, 0
    move = max(MOVE, float(np.sqrt(field.resolution * np.sqrt(field.dim) / field.scale))) * field.scale
    bits = float(np.log2(field.scale / move))
    floor = frame.condition * (field.resolution / (LONGEST * field.scale if field.domain.is_space else field.scale))
    while len(corrections) < most_stages and stalls < most_stalls:
        step = float(np.clip(move / error, move, LONGEST * field.scale))
        stage = _stage(field, frame, step, bits, error)
        if stage is None or stage[1] > largest:
            return RefinedSpan(frame.basis, tuple(corrections), np.inf, frame.condition, good=False)
        frame, correction = stage
        stalls = stalls + 1 if corrections and correction > stalled * corrections[-1] else 0
        corrections.append(correction)
        error = max(frame.condition * (caution * correction * 2.0**-bits + field.resolution / step), floor)
        if min(correction, error) <= close * floor:
            break
    return RefinedSpan(frame.basis, tuple(corrections), max(error, floor), frame.condition, len(corrections) > 1)


def _stage(
    field: LabelField, frame: NormalFrame, step: float, bits: float, error: float
) -> tuple[NormalFrame, float] | None:
    """One correction of the basis, and its size; None if crossings were lost."""
    outside = Subspace(frame.basis).null_basis
    expected = error / np.sqrt(len(outside))
    found = -boundary_slopes(field, frame.boundary, outside, step, bits, expected=expected)
    good = np.isfinite(found).all(axis=1)
    if good.sum() < len(frame.basis) - frame.known:
        return None
    correction = np.linalg.lstsq(frame.unknown[good], found[good], rcond=None)[0]
    tilted = frame.basis.copy()
    tilted[frame.known :] += correction @ outside
    basis = np.linalg.qr(tilted.T)[0].T
    basis *= np.sign((basis * tilted).sum(axis=1, keepdims=True))
    normals = _unit(frame.normals @ (tilted @ basis.T))
    return _aligned(replace(frame, basis=basis, normals=normals)), float(np.linalg.norm(correction, 2))


def _unit(rows: FloatArray) -> FloatArray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
