"""Directions one by one, from answers with all digits: the search that saves queries.

A candidate is a point with room around it. It costs three rows: its value, and a step to both sides that shows
whether the function is straight there. As the span grows one more row tells whether it still has news: a slope
orthogonal to all directions so far. Only the candidate with most news gets a gradient, and only along the
orthogonal complement, so a span of k directions in n dimensions costs about k·n - k²/2 rows. All outputs share the
span: one point may bring several.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reluctant.geometry.gradients import gradients
from reluctant.geometry.lines import Batch, BoolArray
from reluctant.interface.noise import SECOND_DIFFERENCE_GAIN
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles.base import Ask
from reluctant.span.first_look import FirstLook, Ground, LivePoints, moves_outside
from reluctant.span.subspace import LEAST_NEW, Complement, FoundSpan, loud_places


@dataclass(frozen=True)
class Pool(Batch):
    """Points with their values, how far the function is straight along a random step, and the new part there.

    news: size of the gradient orthogonal to the span so far, as random steps show it.
    """

    points: FloatArray  # (n, d)
    values: FloatArray  # (n, m)
    straight: FloatArray  # (n,)
    news: FloatArray  # (n,)

    @classmethod
    def empty(cls, dim: int, outputs: int) -> Pool:
        """No candidate."""
        return cls(np.empty((0, dim)), np.empty((0, outputs)), np.empty(0), np.empty(0))

    def without(self, index: int) -> Pool:
        """All but one."""
        return self[np.arange(len(self)) != index]

    def best(self, n: int) -> Pool:
        """The n with most news."""
        return self[np.argsort(-self.news, kind="stable")[:n]]

    def retested(self, ground: Ground, basis: FloatArray, least: float, rng: np.random.Generator) -> Pool:
        """The points that still have news beside a larger span. Cost: 1 row each."""
        faded_news = 0.1  # of the news before: less is no chance of the step, the new direction there is known
        if not len(self):
            return self
        moves = moves_outside(basis, self.points, self.straight, ground.domain, rng)
        change = np.linalg.norm(ground.ask(self.points + moves) - self.values, axis=1)
        fresh = change / np.linalg.norm(moves, axis=1) * np.sqrt(ground.dim - len(basis))
        news = np.where(fresh < faded_news * self.news, fresh, np.sqrt((self.news**2 + fresh**2) / 2))
        return replace(self, news=news)[fresh > least]


def tested_candidates(
    ground: Ground, basis: FloatArray, points: FloatArray, values: FloatArray, step: float, rng: np.random.Generator
) -> tuple[Pool, BoolArray]:
    """Candidates at these points, and which of them are straight within the step. Cost: 2 rows a point."""
    moves = moves_outside(basis, points, step, ground.domain, rng, both=True)
    ahead, behind = np.split(ground.ask(np.concatenate([points + moves, points - moves])), 2)
    bent = np.abs(ahead + behind - 2 * values).max(axis=1)
    straight = bent <= DOUBLE.in_line * SECOND_DIFFERENCE_GAIN * ground.sd(points)
    length = np.linalg.norm(moves, axis=1)
    with np.errstate(over="ignore"):  # answers close to the largest number
        slope = np.linalg.norm(ahead - behind, axis=1) / (2 * length)
    news = slope * np.sqrt(ground.dim - len(basis))
    return Pool(points, values, length, news), straight


LONGER, SHORTER = 1.15, 0.7  # what a step becomes after a straight and a bent candidate: three of four are straight


def search_directions(
    seen: FirstLook,
    rng: np.random.Generator,
    keep: Callable[[FloatArray], None],
    *,
    start: FoundSpan | None = None,
    least: float = LEAST_NEW,
) -> FoundSpan:
    """Find directions until long steps orthogonal to them change nothing; `keep` gets them on the way.

    start: what was found before, with an error far below `least`, the part of a gradient that may be a direction.
    """
    most_failed = 64  # candidates in a row whose gradient brought nothing: what they have to tell is noise
    most_loud = 12  # times that long steps may bring nothing a gradient can find
    run = _DirectionSearch(seen, rng, start, least)
    loud = failed = 0
    while run.rank < run.ground.dim and loud < most_loud and failed < most_failed:
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


class _DirectionSearch:
    """The directions so far, the pool of candidates, and points not yet used."""

    def __init__(self, seen: FirstLook, rng: np.random.Generator, start: FoundSpan | None, least: float) -> None:
        first_step = 2.0**-4  # along which a function is asked to be straight, of the norm of a typical coordinate
        self.ground, self.rng, self.least_new = seen.ground, rng, least
        self.queue = LivePoints(seen, rng)
        self.complement = Complement(self.ground.dim)
        self.outputs = seen.values.shape[1]
        self.pool = Pool.empty(self.ground.dim, self.outputs)
        self.step = first_step * self.ground.typical
        self.size, self.kept, self.leak, self.measured = 0.0, np.inf, 0.0, 0
        self.points: list[FloatArray] = []
        self.values: list[FloatArray] = []
        self.steps: list[float] = []
        if start is not None:
            self.go_on_from(start)

    def go_on_from(self, start: FoundSpan) -> None:
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
        blur = self.ground.noise.at(np.array([self.ground.typical]))[0] / np.maximum(steps, DOUBLE.tiny)
        return np.asarray(np.maximum(self.least_new * self.size, DOUBLE.in_line * blur * np.sqrt(self.ground.dim)))

    def fill_pool(self) -> None:
        """Test candidates until the pool is full, or too many of them bring nothing."""
        pool_size = 4  # candidates kept: the one with most news is measured
        shortest_step = 2.0**-30  # of a typical coordinate
        most_tried = 16  # candidates without news in a row that send the search to long steps
        # Of a gradient: where no candidate has more news, so many others are tried for a better one.
        weak_news, most_weak_tried = 4e-3, 48
        self.pool = self.pool.retested(self.ground, self.complement.basis, self.least, self.rng)
        tried = 0
        while len(self.pool) < pool_size and tried < most_tried and self.step > shortest_step * self.ground.scale:
            new, straight = self.candidates(pool_size - len(self.pool))
            tried = 0 if len(new) else tried + straight
            self.pool += new
        tried = 0
        while len(self.pool) and tried < most_weak_tried and self.pool.news.max() < weak_news * self.size:
            self.pool = (self.pool + self.candidates(pool_size)[0]).best(pool_size)
            tried += pool_size

    def candidates(self, n: int) -> tuple[Pool, int]:
        """The straight ones of n more points that have news, and how many are straight."""
        longest_step = 2.0**6  # of a typical input
        points, values = self.queue.draw(n)
        found, straight = tested_candidates(self.ground, self.complement.basis, points, values, self.step, self.rng)
        longer = self.step * LONGER ** straight.sum() * SHORTER ** (~straight).sum()
        self.step = min(float(longer), longest_step * self.ground.typical)  # bounds make any step straight
        return found[straight & (found.news > self.least_news(found.straight))], int(straight.sum())

    def measure_best(self) -> None:
        """Take the gradient at the candidate with most news, along the complement alone."""
        step_margin = 96.0  # the gradient's own steps are so much shorter: no crease on any of hundreds of them
        best = int(np.argmax(self.pool.news))
        one, self.pool = self.pool[[best]], self.pool.without(best)
        if not self.is_straight(one):
            return
        found = gradients(
            _asking_the_rest(self.ground.ask, one.points, one.values), one.points, self.complement.rows,
            one.straight / step_margin, self.ground.noise, self.rng, domain=self.ground.domain,
        )  # fmt: skip
        self.measured += 1
        if found.good[0] and self.add(found.slope[0], float(found.sd[0])):
            self.points.append(one.points[0])
            self.values.append(one.values[0])
            self.steps.append(float(found.step[0]))

    def is_straight(self, one: Pool) -> bool:
        """A crease along the first step was not seen, but the hundreds of a gradient would meet it. Cost: 2 rows."""
        # Of the step that was straight: a second look there, in another direction, before a gradient is measured.
        closer_step = 0.25
        step = closer_step * float(one.straight[0])
        return bool(tested_candidates(self.ground, self.complement.basis, one.points, one.values, step, self.rng)[1][0])

    def add(self, slope: FloatArray, sd: float) -> bool:
        """Keep the new part of the gradients (m, n - k) of all outputs."""
        _, parts, directions = np.linalg.svd(slope, full_matrices=False)
        self.size = max(self.size, float(parts[0]))
        new = parts > max(self.least_new * self.size, DOUBLE.in_line * sd * np.sqrt(slope.shape[1]))
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

    def found(self, complete: bool) -> FoundSpan:
        points = np.array(self.points).reshape(-1, self.ground.dim)
        margin = max(self.leak, self.least / max(self.size, self.least)) / self.kept if self.rank else 0.0
        values = np.array(self.values).reshape(-1, self.outputs)
        return FoundSpan(
            self.complement.basis, points, values, np.array(self.steps), self.size,
            margin=margin if complete else np.inf, leak=self.leak, limit=self.least_new, gradients=self.measured,
            kept=self.kept,
        )  # fmt: skip


def _asking_the_rest(ask: Ask, point: FloatArray, value: FloatArray) -> Ask:
    """The question without its first row where that is a point (1, d) with a known value (1, m)."""

    def rest(rows: FloatArray) -> FloatArray:
        known = bool((rows[0] == point[0]).all())
        return np.concatenate([value, ask(rows[1:])]) if known else ask(rows)

    return rest
