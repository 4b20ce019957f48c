"""Stage 2 from labels: normals of the decision boundary, and the new direction of each.

A normal is measured direction by direction: how far the crossing moves when its line moves aside. At a boundary
point that a step orthogonal to all known directions moves off the boundary, the normal has a part that is new. It
is measured along the complement, and the search ends when enough points in a row stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.domains import Domain
from reluctant.geometry.gradients import row_batches
from reluctant.numerics import FloatArray
from reluctant.span.first_look import WITHIN_BOUNDS, moves_outside
from reluctant.span.labels.boundary import FAR_CROSSING, Boundary, LabelField, LabelledPoints, LabelLines
from reluctant.span.subspace import Complement


def boundary_slopes(
    field: LabelField,
    boundary: Boundary,
    directions: FloatArray,
    step: FloatArray | float,
    bits: float,
    *,
    expected: float,
    guess: FloatArray | None = None,
    symmetric: bool = False,
) -> FloatArray:
    """Slopes (n, k) of the crossing against steps along unit directions (k, d); NaN where it was lost.

    The normal has these components along the directions, times minus its component along the line. `expected`: size of
    a slope, or of its distance from a guess (n, k). Cost: about 2.4 + bits rows each; twice that if symmetric.
    """
    n, k = len(boundary), len(directions)
    step = np.broadcast_to(np.asarray(step, float), n)
    found, size = np.full((n, k), np.nan), expected
    for some in row_batches(n * k, 1, boundary.points.shape[1]):
        which, along = np.divmod(np.arange(some.start, some.stop), k)
        lengths = _allowed_steps(field.domain, boundary.points[which], directions[along], step[which], symmetric)
        predicted = np.zeros(len(which)) if guess is None else guess[which, along]
        parts = []
        for side in (lengths, -lengths) if symmetric else (lengths,):
            lines = boundary[which].lines(side[:, None] * directions[along])
            parts.append(_slopes_on_one_side(field, lines, side, predicted, size, bits))
        found[which, along] = np.mean(parts, axis=0)
        size = _typical_slope(found[which, along] - predicted, size)
    return found


def _slopes_on_one_side(
    field: LabelField, lines: LabelLines, lengths: FloatArray, predicted: FloatArray, size: float, bits: float
) -> FloatArray:
    """Slopes (n,) of crossings on lines that have moved aside by signed lengths (n,)."""
    farthest_crossing = 2.0**12  # times its expected size that a crossing may be away
    scale = np.abs(lengths) * size
    tol = np.maximum(scale * 2.0**-bits, _resolution_after(field, lengths))
    return field.crossings(lines, predicted * lengths, scale, tol, farthest_crossing * scale) / lengths


def _resolution_after(field: LabelField, lengths: FloatArray) -> FloatArray:
    """How well a crossing can be placed after a step: far from typical inputs rounding grows with the distance."""
    return np.asarray(field.resolution * np.maximum(1.0, np.abs(lengths) / field.typical))


def _typical_slope(differences: FloatArray, before: float) -> float:
    smallest_slope = 2.0**-20  # of the size before: a batch of slopes that are all zero
    known = np.abs(differences[np.isfinite(differences)])
    return max(float(np.median(known)), before * smallest_slope) if len(known) else before


def _allowed_steps(
    domain: Domain, points: FloatArray, directions: FloatArray, step: FloatArray, symmetric: bool
) -> FloatArray:
    """Signed lengths of the steps that stay inside."""
    if domain.is_space:
        return step.copy()
    ahead = np.minimum(WITHIN_BOUNDS * domain.room(points, directions), step)
    behind = np.minimum(WITHIN_BOUNDS * domain.room(points, -directions), step)
    if symmetric:
        return np.minimum(ahead, behind)
    return np.where(ahead >= behind, ahead, -behind)


LOCATED_SHARE = 0.125  # of the offset: how well a point has to be known for that


@dataclass(frozen=True)
class _Hearing:
    """What is heard: a step aside, orthogonal to the span, that moves the boundary by more than an offset."""

    offset: float  # across the boundary, where labels are looked at, in typical coordinates
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

    sharp: those taken out before are exact, so that weaker ones can be told from their error.
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
            self.take(Boundary.between(self.field, pairs, LOCATED_SHARE * self.offset))
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
