"""A flip from gradients that a target answers: one row for the step, a few along its ray.

Every row on the ray has a value and a slope, so the next one goes where the affine function there says that the answer
changes side. On a piecewise linear target that is exact as soon as row and crossing lie in one piece.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reluctant.adversarial.decision import DECIDED, Margins, SideLimit
from reluctant.adversarial.flip_search import RayPoint
from reluctant.adversarial.gradient_source import answer_noise, walk
from reluctant.domains import Domain
from reluctant.interface.noise import narrowest_format
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Counting, Explained

MOST_RAY_ROWS = 10
FARTHEST = 16.0  # of the linear distance, as for values
BEYOND = 4.0  # limits behind the boundary that a row aims at
SLOPE_ROUNDINGS = 64.0  # of a gradient
SAME_PLACE = 1e-9  # of a length


@dataclass
class AnsweredTarget:
    """A target that answers values and gradients: a `GradientSource` whose gradients cost one row."""

    oracle: Counting
    domain: Domain
    sd: float
    number_format: str
    seen: dict[bytes, tuple[FloatArray, FloatArray]] = field(default_factory=dict)

    @classmethod
    def at(cls, oracle: Counting, x: FloatArray) -> AnsweredTarget:
        """Ask at x. Cost: 1 row."""
        source = cls(oracle, oracle.facts.domain, 0.0, "float64")
        values = source.both(x[None]).values
        source.sd, source.number_format = answer_noise(values), narrowest_format(values)
        return source

    def both(self, rows: FloatArray) -> Explained:
        """Values and gradients; kept, so that no row is asked twice."""
        fresh = [i for i, row in enumerate(rows) if row.tobytes() not in self.seen]
        if fresh:
            with self.oracle.stage("gradient"):
                found = self.oracle.query_gradients(rows[fresh])
            for i, *answer in zip(fresh, found.values, found.gradients, strict=True):
                self.seen[rows[i].tobytes()] = (answer[0], answer[1])
        values, slopes = zip(*(self.seen[row.tobytes()] for row in rows), strict=True)
        return Explained(np.array(values), np.array(slopes))

    @property
    def least(self) -> float:
        """A few times what digits leave unknown."""
        return DECIDED * self.sd

    def limit(self, slopes: FloatArray) -> SideLimit:
        """By the digits of the answers."""
        return SideLimit.of(self.number_format, slopes, self.least)

    @property
    def slope_noise(self) -> float:
        """By rounding."""
        sizes = [float(np.linalg.norm(slopes, axis=1).max()) for _, slopes in self.seen.values()]
        return SLOPE_ROUNDINGS * unit_roundoff(self.number_format) * max(sizes, default=0.0)

    def ask(self, rows: FloatArray) -> FloatArray:
        """Answers (n, m)."""
        return self.both(rows).values

    def gradient(self, x: FloatArray) -> FloatArray:
        """Gradients (m, d)."""
        return np.asarray(self.both(x[None]).gradients[0])

    def confirmed(self, point: RayPoint, margins: Margins) -> bool:
        """Whether the same row is flipped when it is asked again. Cost: 1 row."""
        with self.oracle.stage("line"):
            return bool(margins.smallest(self.oracle.query(point.x[None]))[0] < 0)

    def search(
        self, margins: Margins, x: FloatArray, values: FloatArray, change: FloatArray, limit: SideLimit
    ) -> RayPoint:  # fmt: skip
        """The first point beyond the boundary on the ray from x through x + change, or the closest. Cost: ≤ 10 rows."""
        ray = _SlopedRay(self, margins, x, change, limit)
        for _ in range(MOST_RAY_ROWS):
            length = ray.next_length()
            if length is None:
                break
            ray.look(length)
        return ray.end(values)


class _SlopedRay:
    """The known part of a ray: lengths, margins and the affine functions there, in units of the change."""

    def __init__(
        self, source: AnsweredTarget, margins: Margins, x: FloatArray, change: FloatArray, limit: SideLimit
    ) -> None:  # fmt: skip
        self.source, self.margins, self.x, self.change, self.limit = source, margins, x, change, limit
        self.low, self.high, self.closed = 0.0, np.inf, False
        self.found: dict[float, tuple[FloatArray, FloatArray, FloatArray]] = {}
        self.look(0.0)

    def look(self, length: float) -> None:
        """Ask there."""
        point = walk(self.x, self.change, np.array([length]), self.source.domain)
        both = self.source.both(point)
        slope = both.gradients[0] @ self.change
        self.found[length] = (point[0], both.values[0], slope)
        if self.is_flipped(length):
            self.high = min(self.high, length)
        else:
            self.low = max(self.low, length) if length < self.high else self.low

    def is_flipped(self, length: float) -> bool:
        """True beyond the limit of the boundary."""
        point, value, _ = self.found[length]
        return bool(self.margins.smallest(value[None])[0] < -self.limit.at(point[None], value[None])[0])

    def crossing(self, length: float) -> float:
        """Where the affine function of this place changes side, beyond the last unflipped place; infinite if not."""
        point, value, slope = self.found[length]
        aim = BEYOND * float(self.limit.at(point[None], value[None])[0])
        low, high = self.low, min(self.high, FARTHEST)

        def margin(at: FloatArray) -> FloatArray:
            return self.margins.smallest(value + (at - length)[:, None] * slope) + aim

        if margin(np.array([high]))[0] > 0 or margin(np.array([low]))[0] < 0:
            return np.inf
        for _ in range(60):  # more than float64 has bits: nothing is asked
            middle = (low + high) / 2
            low, high = (middle, high) if margin(np.array([middle]))[0] > 0 else (low, middle)
        return high

    def next_length(self) -> float | None:
        """Where to ask; None where nothing more is to be found."""
        forwards = self.crossing(self.low)
        if self.high == np.inf:
            return min(forwards, 2 * max(self.low, 1.0)) if self.low < FARTHEST else None
        backwards = self.crossing(self.high)
        guesses = [at for at in (forwards, backwards) if self.low < at < self.high * (1 - SAME_PLACE)]
        near = self.high - self.low <= SAME_PLACE * self.high or forwards >= self.high * (1 - SAME_PLACE)
        if near and not guesses:
            return None
        return guesses[0] if guesses else (self.low + self.high) / 2

    def end(self, values: FloatArray) -> RayPoint:
        """The nearest flipped place, or the one that came closest."""
        if self.high < np.inf:
            point, value, _ = self.found[self.high]
            return RayPoint(point, value, flipped=True)
        nearest = min(self.found, key=lambda at: float(self.margins.smallest(self.found[at][1][None])[0]))
        point, value, _ = self.found[nearest]
        return RayPoint(point, value, flipped=False)
