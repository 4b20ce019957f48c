"""The query-saving search: a gradient is taken only where something new is seen, and only along what is unknown.

A span of k directions in n dimensions costs about k·n - k²/2 rows: the gradient at a new point is measured along the
orthogonal complement of the directions so far. All outputs of a target share the span: a point may bring several.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reluctant.geometry.gradients import gradients
from reluctant.geometry.samples import TOLERANCE
from reluctant.numerics import FloatArray
from reluctant.span.complement import Complement
from reluctant.span.found import Found
from reluctant.span.ground import Ask
from reluctant.span.look import LivePoints, Look
from reluctant.span.pool import Pool, tested
from reluctant.span.silence import LEAST_NEW, loud_places

__all__ = ["search"]

POOL = 4  # candidates kept: the one with most news is measured
FIRST_STEP = 2.0**-4  # along which a function is asked to be straight, of the norm of a typical coordinate
LONGER, SHORTER = 1.15, 0.7  # what a step becomes after a straight and a bent candidate: three of four are straight
SHORTEST_STEP = 2.0**-30  # of a typical coordinate
SHORTEST_LENGTH = float(np.finfo(np.float64).tiny)
LONGEST_STEP = 2.0**6  # of a typical input
MARGIN = 96.0  # the gradient's own steps are so much shorter: no crease on any of hundreds of them
CLOSER = 0.25  # of the step that was straight: a second look there, in another direction, before a gradient is taken
MOST_TRIED = 16  # candidates without news in a row that send the search to long steps
WEAK, MOST_WEAK = 4e-3, 48  # of a gradient: where no candidate has more news, so many others are tried for a better one
MOST_FAILED = 64  # candidates in a row whose gradient brought nothing: what they have to tell is noise
MOST_LOUD = 12  # times that long steps may bring nothing a gradient can find


def search(
    seen: Look,
    rng: np.random.Generator,
    keep: Callable[[FloatArray], None],
    *,
    start: Found | None = None,
    least: float = LEAST_NEW,
) -> Found:
    """Find directions until long steps orthogonal to them change nothing; `keep` is told of them on the way.

    start: what was found before, with an error far below `least`, the part of a gradient that may be a direction.
    """
    run = _Search(seen, rng, start, least)
    loud = failed = 0
    while run.rank < run.ground.dim and loud < MOST_LOUD and failed < MOST_FAILED:
        run.fill_pool()
        if len(run.pool):
            before = run.rank
            run.measure_best()
            failed = failed + 1 if run.rank == before else 0
            keep(run.complement.basis)
        elif not run.hear():
            return run.found(complete=True)
        else:
            loud += 1
    return run.found(complete=run.rank == run.ground.dim)


class _Search:
    """The directions so far, the pool of candidates, and points not yet looked at."""

    def __init__(self, seen: Look, rng: np.random.Generator, start: Found | None, least: float) -> None:
        self.ground, self.rng, self.least_new = seen.ground, rng, least
        self.queue = LivePoints(seen, rng)
        self.complement = Complement(self.ground.dim)
        self.outputs = seen.values.shape[1]
        self.pool = Pool.empty(self.ground.dim, self.outputs)
        self.step = FIRST_STEP * self.ground.typical
        self.size, self.kept, self.leak, self.measured = 0.0, np.inf, 0.0, 0
        self.points: list[FloatArray] = []
        self.values: list[FloatArray] = []
        self.steps: list[float] = []
        if start is not None:
            self.go_on_from(start)

    def go_on_from(self, start: Found) -> None:
        self.complement = Complement.of(start.basis)
        self.size, self.kept = start.size, start.kept
        self.points, self.values, self.steps = list(start.points), list(start.values), list(start.steps)

    @property
    def rank(self) -> int:
        return self.complement.rank

    @property
    def least(self) -> float:
        """The smallest news that may be a direction, by steps as they are now."""
        return float(self.least_news(np.array([self.step]))[0])

    def least_news(self, steps: FloatArray) -> FloatArray:
        """The smallest news (n,) that may be a direction, by steps of these lengths: bounds may cut them short."""
        blur = self.ground.noise.at(np.array([self.ground.typical]))[0] / np.maximum(steps, SHORTEST_LENGTH)
        return np.asarray(np.maximum(self.least_new * self.size, TOLERANCE * blur * np.sqrt(self.ground.dim)))

    def fill_pool(self) -> None:
        """Test candidates until the pool is full, or too many of them bring nothing."""
        self.pool = self.pool.retested(self.ground, self.complement.basis, self.least, self.rng)
        tried = 0
        while len(self.pool) < POOL and tried < MOST_TRIED and self.step > SHORTEST_STEP * self.ground.scale:
            new, straight = self.candidates(POOL - len(self.pool))
            tried = 0 if len(new) else tried + straight
            self.pool += new
        tried = 0
        while len(self.pool) and tried < MOST_WEAK and self.pool.news.max() < WEAK * self.size:
            self.pool = (self.pool + self.candidates(POOL)[0]).best(POOL)
            tried += POOL

    def candidates(self, n: int) -> tuple[Pool, int]:
        """Those of n more points that are straight and have news, and how many are straight."""
        points, values = self.queue.draw(n)
        found, straight = tested(self.ground, self.complement.basis, points, values, self.step, self.rng)
        longer = self.step * LONGER ** straight.sum() * SHORTER ** (~straight).sum()
        self.step = min(float(longer), LONGEST_STEP * self.ground.typical)  # bounds make any step straight
        return found[straight & (found.news > self.least_news(found.straight))], int(straight.sum())

    def measure_best(self) -> None:
        """Take the gradient at the candidate with most news, along the complement alone."""
        best = int(np.argmax(self.pool.news))
        one, self.pool = self.pool[[best]], self.pool.without(best)
        if not self.is_straight(one):
            return
        found = gradients(
            _knowing(self.ground.ask, one.points, one.values), one.points, self.complement.rows,
            one.straight / MARGIN, self.ground.noise, self.rng, domain=self.ground.domain,
        )  # fmt: skip
        self.measured += 1
        if found.good[0] and self.add(found.slope[0], float(found.sd[0])):
            self.points.append(one.points[0])
            self.values.append(one.values[0])
            self.steps.append(float(found.step[0]))

    def is_straight(self, one: Pool) -> bool:
        """A crease along the first step was not seen, but the hundreds of a gradient would meet it. Cost: 2 rows."""
        step = CLOSER * float(one.straight[0])
        return bool(tested(self.ground, self.complement.basis, one.points, one.values, step, self.rng)[1][0])

    def add(self, slope: FloatArray, sd: float) -> bool:
        """Keep what is new in the gradients (m, n - k) of all outputs."""
        _, parts, directions = np.linalg.svd(slope, full_matrices=False)
        self.size = max(self.size, float(parts[0]))
        new = parts > max(self.least_new * self.size, TOLERANCE * sd * np.sqrt(slope.shape[1]))
        if new.any():
            self.kept = min(self.kept, float(parts[new].min()) / self.size)
            self.complement.take(directions[new])
        return bool(new.any())

    def hear(self) -> bool:
        """Long steps from every point measured and as many others; places where they change the answers wait first."""
        active = np.array(self.points).reshape(-1, self.ground.dim), np.array(self.values).reshape(-1, self.outputs)
        heard = loud_places(self.ground, self.complement.basis, *active, self.size, self.least_new, self.rng)
        self.leak = heard.leak
        if not len(heard.points):
            return False
        self.queue.put_first(heard.points, heard.values)
        return True

    def found(self, complete: bool) -> Found:
        points = np.array(self.points).reshape(-1, self.ground.dim)
        margin = max(self.leak, self.least / max(self.size, self.least)) / self.kept if self.rank else 0.0
        values = np.array(self.values).reshape(-1, self.outputs)
        return Found(
            self.complement.basis, points, values, np.array(self.steps), self.size,
            margin=margin if complete else np.inf, leak=self.leak, limit=self.least_new, gradients=self.measured,
            kept=self.kept,
        )  # fmt: skip


def _knowing(ask: Ask, point: FloatArray, value: FloatArray) -> Ask:
    """The same question, where the first row is a point (1, d) whose value (1, m) is known and not asked again."""

    def rest(rows: FloatArray) -> FloatArray:
        known = bool((rows[0] == point[0]).all())
        return np.concatenate([value, ask(rows[1:])]) if known else ask(rows)

    return rest
