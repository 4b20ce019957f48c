"""The end of a search: every answer there is must be explained, fresh ones too; where one is not, a neuron is missing.

Between a point where a missing neuron is on and one where it is off lies its crease: a line from the one to the other
brings the kink that was missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.check_points import check_points, suspected_points
from reluctant.extraction.any_depth.known import Known
from reluctant.extraction.any_depth.ladder import Ladder
from reluctant.extraction.any_depth.open_points import undetermined_points
from reluctant.extraction.any_depth.rare_side import FITTED_DISTANCE, rows_for_fit
from reluctant.extraction.any_depth.top import Readout, deviations, fit_most, leftovers
from reluctant.extraction.failures import StageFailed
from reluctant.extraction.memory import Memory
from reluctant.geometry import Lines
from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray

__all__ = ["complete", "mostly_explained"]

FITS = 1e-6  # deviation, relative to the spread of the answers, that no rounding in the layers explains
FEWEST_CHECKED, CHECKED = 5000, 0.5  # fresh points; for every parameter: what they do not meet is rare
AGAIN = 0.25  # of them, when neurons were found since
MOST_SUSPECTS = 128  # directions
MOST_WRONG = 0.4  # of the rows: beyond, the others are no majority
MOST_ROUNDS = 12
SEGMENTS = 3  # scanned in a round
NEIGHBOURS = 5  # right points near a wrong one, one of which is taken
BEYOND = 0.5  # of its length, a segment goes on at both ends: creases are better not at the very end


def complete(ladder: Ladder, memory: Memory, rng: np.random.Generator) -> Known:
    """Look for missing neurons until fresh points are explained.

    Cost: 5000 rows, or half a row for every parameter where that is more; about 40 more for each missing neuron, and
    a quarter of the fresh points again.
    """
    checks = _Checks(ladder, rng)
    for _ in range(MOST_ROUNDS):
        known = ladder.known()
        found = _Explained.by(known, memory, rng)
        for points in checks.points(known, found.readout):
            if found.wrong.any():
                break
            if len(points):
                with ladder.oracle.stage("check"):
                    ladder.store.ask(points)
                found = _Explained.by(known, memory, rng)
        if not found.wrong.any():
            return known
        if found.wrong.mean() > MOST_WRONG:
            break
        with ladder.oracle.stage("completion"):
            ladder.store.scan(found.segments(rng))
            ladder.look_again()
    raise StageFailed(
        "completion", "answers that the layers do not explain", number=float(found.wrong.mean()), limit=0,
    )  # fmt: skip


@dataclass
class _Checks:
    """Points that were not asked before: first those where something is known to be open, then random and extreme ones.

    Those of earlier rounds are still looked at, so that later rounds need fewer.
    """

    ladder: Ladder
    rng: np.random.Generator
    share: float = 1.0

    def points(self, known: Known, readout: Readout) -> Iterator[FloatArray]:
        open_ = [undetermined_points(s.known, [n.incoming for n in s.neurons], self.rng) for s in self.ladder.searches]
        yield np.concatenate(open_)
        yield suspected_points(known, leftovers(known, readout, MOST_SUSPECTS, self.rng), self.rng)
        yield check_points(known, int(self.share * max(FEWEST_CHECKED, CHECKED * known.parameters)), self.rng)
        self.share = AGAIN


def mostly_explained(known: Known, memory: Memory, rng: np.random.Generator) -> bool:
    """True if an output layer on top explains most of the answers: then this is the last layer."""
    return bool(_Explained.by(known, memory, rng).wrong.mean() < MOST_WRONG)


@dataclass(frozen=True)
class _Explained:
    """All rows there are, by how much the best fit to most of them is off, and where that is too much."""

    readout: Readout
    rows: FloatArray
    off: FloatArray
    wrong: BoolArray

    @classmethod
    def by(cls, known: Known, memory: Memory, rng: np.random.Generator) -> _Explained:
        readout = fit_most(known, *rows_for_fit(known, memory, rng))
        rows, answers = memory.near(FITTED_DISTANCE * np.sqrt(known.dim))
        off = deviations(known, readout, rows, answers)
        return cls(readout, rows, off, off > FITS)

    def segments(self, rng: np.random.Generator) -> Lines:
        """Segments from wrong rows, some of the worst, to rows nearby that are right, and to others that are wrong.

        The first cross what is missing; the second see it where it is, beyond creases that are known.
        """
        wrong = np.flatnonzero(self.wrong)[np.argsort(-self.off[self.wrong])]
        chosen = rng.choice(wrong[: SEGMENTS * NEIGHBOURS], min(SEGMENTS, len(wrong)), replace=False)
        right, among = self.rows[~self.wrong], self.rows[self.wrong]
        start, stop = [], []
        for row in self.rows[chosen]:
            nearest = right[np.argsort(np.linalg.norm(right - row, axis=1))[:NEIGHBOURS]]
            apart = among[np.linalg.norm(among - row, axis=1) > 0]
            for other in (rng.choice(nearest), *rng.permutation(apart)[:1]):
                start.append(row - BEYOND * (other - row))
                stop.append(other + BEYOND * (other - row))
        return Lines.between(np.array(start), np.array(stop), float(np.sqrt(self.rows.shape[1])))
