"""Directions from labels, one by one: at a boundary point that a step orthogonal to all known ones moves off the
boundary, the normal has a part that is new."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.span.complement import Complement
from reluctant.span.ground import moves_outside
from reluctant.span.labels.boundary import FAR, Boundary, LabelledPoints
from reluctant.span.labels.field import Field
from reluctant.span.labels.normals import slopes

__all__ = ["find_directions", "unmoved"]

POOL = 12  # boundary points kept for the next directions
LOCATED = 0.125  # of the offset: how well a point has to be known for that
STEP = 1e-4  # aside, for a normal, of a typical coordinate
BITS = 10.0
PLACED = 2.0**-24  # of a step aside: how well the crossing that it starts from is known
LEAST_COARSE_SHARE = 0.03
MOST_REFUSED = 40  # points whose normal could not be measured or had no news after all


@dataclass(frozen=True)
class _Ears:
    """What is heard: a step aside, orthogonal to the span, that moves the boundary by more than an offset."""

    offset: float  # across the boundary, where labels are looked at, in typical coordinates
    aside: float  # in every coordinate
    least_share: float  # of a normal outside the span that is a new direction
    patience: int  # points in a row without news that end the search


ROUGH = _Ears(offset=0.02, aside=0.5, least_share=0.01, patience=16)
SHARP = _Ears(offset=0.004, aside=2.0, least_share=1e-3, patience=48)


def unmoved(
    field: Field, basis: FloatArray, boundary: Boundary, offset: float, aside: float, rng: np.random.Generator
) -> np.ndarray:
    """Which boundary points stay where they are, within the offset, on a step outside the span. Cost: 2 rows each."""
    moves = moves_outside(basis, boundary.points, aside * np.sqrt(field.dim - len(basis)), field.domain, rng)
    lines, off = boundary.lines(moves), np.full(len(boundary), offset)
    return np.asarray(lines.before(field.ask, -off) & ~lines.before(field.ask, off))


def find_directions(
    field: Field,
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
    run = _Search(field, seen, complement, rng, SHARP if sharp and not field.coarse else ROUGH)
    refused = 0
    while complement.rank < field.dim and refused < MOST_REFUSED:
        if not run.fill():
            return True
        refused = 0 if run.measure() else refused + 1
        keep(complement.basis)
    return complement.rank == field.dim


class _Search:
    """Boundary points that have news, and how many in a row had none."""

    def __init__(
        self, field: Field, seen: LabelledPoints, complement: Complement, rng: np.random.Generator, ears: _Ears
    ) -> None:
        self.field, self.seen, self.complement, self.rng, self.ears = field, seen, complement, rng, ears
        self.offset = ears.offset * field.scale
        self.pool: Boundary | None = None
        self.quiet = 0

    def fill(self) -> bool:
        """Keep points with news; False once enough points in a row have none."""
        old = self.pool
        self.pool, self.quiet = None, 0
        if old is not None and len(old):
            self.take(old)
        while self.pool is None or not len(self.pool):
            if self.quiet >= self.ears.patience:
                return False
            pairs = self.seen.pairs(POOL, self.rng)
            self.take(Boundary.between(self.field, pairs, LOCATED * self.offset))
        return True

    def take(self, boundary: Boundary) -> None:
        """Look at boundary points along the span; those with news are kept."""
        basis = self.complement.basis
        turned, found = boundary.inside(self.field, basis, self.offset, LOCATED * self.offset)
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
        assert self.pool is not None
        one, self.pool = self.pool[:1], self.pool[1:]
        step = self.field.step(STEP)
        located = max(self.field.resolution, step * PLACED)
        t = self.field.crossings(one.lines(), 0.0, self.offset, located, FAR * self.offset)
        if not np.isfinite(t[0]):
            return False
        directions = np.concatenate([self.complement.rows, self.complement.basis])
        expected = 1.0 if not self.complement.rank else 1 / np.sqrt(self.field.dim)
        normal = -slopes(
            self.field, one.moved(t), directions, step, BITS, expected=expected, symmetric=self.field.coarse
        )[0]
        fresh = normal[: len(self.complement.rows)]
        share = np.linalg.norm(fresh) / np.linalg.norm(normal)
        if not share > (
            LEAST_COARSE_SHARE if self.field.coarse else self.ears.least_share
        ):  # NaN as well: a crossing was lost
            return False
        self.complement.take(fresh[None] / np.linalg.norm(fresh))
        return True
