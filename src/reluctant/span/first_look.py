"""The first look of a span search: its inputs, its scale, its noise, and live points.

A neuron may sleep on all inputs drawn at random and work on every photograph. Inside a box several kinds of rows
are drawn, so that brightness, sparseness and smoothness vary; inputs of the user's own are better than any of
them. A thin network is constant on most of its inputs: where two random points give the very same answer both
count as dead, and a live point costs a row for each try. `Ground` carries what every later stage needs: how to
ask, where, at which scale, with which noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from reluctant.domains import Domain
from reluctant.geometry import DistanceNoise
from reluctant.geometry.boundary import WITHIN_BOUNDS
from reluctant.geometry.lines import BoolArray, orthogonal_moves
from reluctant.interface import Interface
from reluctant.interface.health import examine
from reluctant.messages import Diagnosis
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.base import Ask, check_rows

REACH = 15.0  # of long steps, in typical inputs: noise of ten times the norm of a row stays within it
LABEL_REACH = 3.0  # the same from labels: farther out a crossing is placed too roughly to be called unmoved
TO_CORNERS = 0.4  # both parameters of a beta distribution: most of its mass lies beside the bounds


@dataclass(frozen=True)
class Inputs:
    """All of a domain, and rows (n, d) of the user's around which every second input is drawn."""

    domain: Domain
    dim: int
    given: FloatArray | None = None

    @classmethod
    def of(cls, domain: Domain, dim: int, given: ArrayLike | None) -> Inputs:
        """Check what the user gave."""
        return cls(domain, dim, None if given is None else check_rows(given, dim, domain, "inputs"))

    def within(self, domain: Domain) -> Inputs:
        """The inputs inside another domain, with the user's rows that lie there."""
        rows = None if self.given is None else self.given[[domain.contains(row) for row in self.given]]
        return Inputs(domain, self.dim, rows if rows is not None and len(rows) else None)

    @property
    def unit(self) -> float:
        """Scale of a coordinate that the first draws have: that of the user's inputs, else 1."""
        size = 0.0 if self.given is None else float(np.sqrt((self.given**2).mean()))
        return size if size > 0 else 1.0

    def draw(self, n: int, scale: float, rng: np.random.Generator) -> FloatArray:
        """Inputs (n, d), Gaussian of this scale in all of space; every sixth has room on all sides."""
        points = self.domain.interior(rng, n, self.dim, scale)
        if self.domain.is_box:
            points = np.where(np.arange(n)[:, None] % len(BOX_KINDS) == 0, points, self._in_box(n, rng))
        if self.given is not None:
            points[1::2] = self._like_given(len(points[1::2]), scale, rng)
        return points

    def until_answers_differ(
        self, ask: Ask, blocks: tuple[tuple[int, float], ...], rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, float]:
        """Inputs of one scale with their answers, block after block of (rows, how far out) until two are different."""
        seen: dict[float, list[tuple[FloatArray, FloatArray]]] = {}
        for size, farther in blocks:
            scale = farther * self.unit
            points = self.draw(size, scale, rng)
            seen.setdefault(scale, []).append((points, ask(points)))
            answers = np.concatenate([some for _, some in seen[scale]])
            if len(np.unique(answers, axis=0)) > 1:
                break
        return np.concatenate([rows for rows, _ in seen[scale]]), answers, scale

    def _in_box(self, n: int, rng: np.random.Generator) -> FloatArray:
        shares = np.choose(np.arange(n)[:, None] % len(BOX_KINDS), [kind(n, self.dim, rng) for kind in BOX_KINDS])
        return self._inside(shares)

    def _inside(self, shares: FloatArray) -> FloatArray:
        """Points of a box by their shares of its width, with some room left."""
        beside_bounds = 0.02  # of the width of a box: room that is left
        shares = beside_bounds + (1 - 2 * beside_bounds) * shares
        return np.asarray(self.domain.low + shares * np.subtract(self.domain.high, self.domain.low))

    def _like_given(self, n: int, scale: float, rng: np.random.Generator) -> FloatArray:
        """One of the user's inputs with a little of another."""
        most_mixed = 0.3  # largest share of a second input of the user's in a first one
        assert self.given is not None
        first, second = self.given[rng.integers(len(self.given), size=(2, n))]
        rows = first + rng.uniform(0, most_mixed, (n, 1)) * (second - first)
        if self.domain.is_box:
            return self._inside((rows - self.domain.low) / np.subtract(self.domain.high, self.domain.low))
        return np.asarray(rows * (scale / self.unit) if self.domain.is_space else rows)

    def scale_of(self, points: FloatArray, drawn: float) -> float:
        """Scale of a coordinate: that of the draw in all of space, else how far points are spread inside the bounds."""
        return drawn if self.domain.is_space else float(points.std(axis=0).mean())

    def asked(self, scale: float, reach: float) -> Diagnosis:
        """The inputs drawn at this scale, and the length of steps in norms of an input."""
        given = None if self.given is None else len(self.given)
        drawn = {"domain": self.domain.describe(), "scale": None if self.domain.is_box else scale, "given": given}
        return Diagnosis("span-asked", drawn | {"reach": reach})


# ---- kinds of inputs in a box, as shares (n, d) of its width


def _even(n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    return rng.uniform(0, 1, (n, dim))


def _corners(n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    return rng.beta(TO_CORNERS, TO_CORNERS, (n, dim))


def _sparse(n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """Most coordinates at one bound."""
    half_share = 0.5
    shares = np.where(
        rng.uniform(0, 1, (n, dim)) < rng.uniform(0, half_share, (n, 1)), rng.uniform(0, 1, (n, dim)), 0.0
    )
    return np.where(rng.random((n, 1)) < half_share, shares, 1 - shares)


def _levels(n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """Rows that are dark or bright as a whole."""
    around_level = 0.25  # of a level, how far coordinates of one row are from it
    return np.clip(rng.uniform(0, 1, (n, 1)) + around_level * rng.uniform(-1, 1, (n, dim)), 0, 1)


def _smooth(n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """Rows whose neighbouring coordinates are alike."""
    knots = (2, 12)  # between which a smooth row is interpolated: fewest, most
    at = np.linspace(0, 1, dim)
    counts = rng.integers(knots[0], knots[1] + 1, size=n)
    return np.array([np.interp(at, np.linspace(0, 1, k), rng.beta(TO_CORNERS, TO_CORNERS, k)) for k in counts])


BOX_KINDS = (_even, _even, _corners, _sparse, _levels, _smooth)  # the first is drawn with room on all sides

UNCLEAR_MARGIN = 1 / 3  # a rank whose margin is worse is not stated
UNCLEAR_ANGLE = 0.1  # directions that may be off by more, as a sine, are not known
RULE_OF_THREE = 3.0  # nothing in n looks: with 95 % confidence its share is below 3 / n


@dataclass(frozen=True)
class Ground:
    """Where and at which scale to ask, and the quality of the answers there."""

    ask: Ask
    inputs: Inputs
    noise: DistanceNoise
    scale: float = 1.0  # of a typical input, one coordinate
    drawn: float = 1.0  # scale that inputs are drawn with
    reach: float = REACH  # of long steps, in typical inputs

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.inputs.dim

    @property
    def domain(self) -> Domain:
        """Where it may be asked."""
        return self.inputs.domain

    @property
    def typical(self) -> float:
        """Norm of a typical input."""
        return self.scale * float(np.sqrt(self.dim))

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Inputs (n, d) all over the domain."""
        return self.inputs.draw(n, self.drawn, rng)

    def sd(self, points: FloatArray) -> FloatArray:
        """Noise (n,) of answers at these points."""
        return self.noise.at(np.linalg.norm(points, axis=-1))


def as_long_as_allowed(domain: Domain, points: FloatArray, moves: FloatArray, *, both: bool = False) -> FloatArray:
    """The moves (n, d) made shorter where they, or their opposites as well, would leave the domain."""
    if domain.is_space:
        return moves
    room = domain.room(points, moves)
    room = np.minimum(room, domain.room(points, -moves)) if both else room
    return np.asarray(moves * np.minimum(1.0, WITHIN_BOUNDS * room)[..., None])


def moves_outside(
    basis: FloatArray,
    points: FloatArray,
    length: float | FloatArray,
    domain: Domain,
    rng: np.random.Generator,
    *,
    both: bool = False,
) -> FloatArray:
    """Random moves (n, d) orthogonal to a basis, of this length or as long as the domain allows."""
    moves = orthogonal_moves(basis, len(points), 1.0, rng) * np.reshape(length, (-1, 1))
    return as_long_as_allowed(domain, points, moves, both=both)


def asked_inside(ask: Ask, domain: Domain) -> Ask:
    """The question with rows moved onto the domain where rounding put them beside it."""
    return ask if domain.is_space else lambda rows: ask(domain.nearest(rows))


# Rows asked one block after the other until something is alive, and at which scale.
DRAWN_TOGETHER = 16  # points asked for their value together


@dataclass(frozen=True)
class FirstLook:
    """The answers so far: points with their answers, which of them are alive, and the answers' health."""

    points: FloatArray  # (n, d)
    values: FloatArray  # (n, m)
    live: BoolArray  # (n,)
    health: Interface
    ground: Ground

    @property
    def live_share(self) -> float:
        """Share of the points that are alive."""
        return float(self.live.mean())

    @property
    def is_constant(self) -> bool:
        """True if every answer was the same."""
        return bool((self.values == self.values[0]).all())


def first_look(oracle: Counting, inputs: Inputs, rng: np.random.Generator, reach: float) -> FirstLook:
    """Find live points and check the health there. Cost: 64 rows and 68 for the check; 4096 for a dead target."""
    look_blocks = ((64, 1.0), (192, 1.0), (256, 10.0), (512, 1.0), (1024, 1.0), (2048, 1.0))
    look_lines = 4
    with oracle.stage("look"):
        points, values, scale = inputs.until_answers_differ(oracle.query, look_blocks, rng)
    _, where, counts = np.unique(values, axis=0, return_inverse=True, return_counts=True)
    live = np.asarray(counts[where.reshape(-1)] == 1)
    chosen = np.flatnonzero(live if live.any() else np.ones(len(live), dtype=bool))
    chosen = chosen[np.argsort(chosen % len(BOX_KINDS), kind="stable")]  # in bounds the first kind has room around it
    centres = points[np.resize(chosen, look_lines)]
    health = examine(oracle, rng, look_lines, centres=centres)
    noise = DistanceNoise.of(health, oracle.dim) if health.readings else DistanceNoise(0.0, 0.0)
    ground = Ground(
        asked_inside(oracle.query, inputs.domain), inputs, noise,
        scale=inputs.scale_of(points, scale), drawn=scale, reach=reach,
    )  # fmt: skip
    return FirstLook(points, values, live, health, ground)


class LivePoints:
    """Live points with their values, the first look's before others."""

    def __init__(self, seen: FirstLook, rng: np.random.Generator) -> None:
        rarely_alive = 0.3  # share of live points below which others are looked for near them
        self.ground, self.rng = seen.ground, rng
        live = seen.live if seen.live.any() else np.ones(len(seen.live), dtype=bool)
        self.points, self.values = seen.points[live], seen.values[live]
        self.dead = set(map(bytes, seen.values[~live]))
        self.rare = live.mean() < rarely_alive
        self.known = self.points

    def draw(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Take n of them out. Cost: a row for each point that has to be asked, dead ones too."""
        while len(self.points) < n:
            points = self.near_known() if self.rare else self.ground.sample(DRAWN_TOGETHER, self.rng)
            values = self.ground.ask(points)
            live = np.array([bytes(value) not in self.dead for value in values])
            self.put_last(points[live], values[live])
        points, values = self.points[:n], self.values[:n]
        self.points, self.values = self.points[n:], self.values[n:]
        return points, values

    def near_known(self) -> FloatArray:
        """Points between ones known to be alive and any others: more of them are alive."""
        # How much of a live point is in those: as a part of the norm, or squared as a share of the way.
        like_a_live_point = 0.8
        known = self.known[self.rng.integers(len(self.known), size=DRAWN_TOGETHER)]
        others = self.ground.sample(DRAWN_TOGETHER, self.rng)
        if self.ground.domain.is_space:
            return np.asarray(like_a_live_point * known + np.sqrt(1 - like_a_live_point**2) * others)
        return np.asarray(like_a_live_point**2 * known + (1 - like_a_live_point**2) * others)

    def put_first(self, points: FloatArray, values: FloatArray) -> None:
        """Points to be drawn before all others."""
        self.points, self.values = np.concatenate([points, self.points]), np.concatenate([values, self.values])

    def put_last(self, points: FloatArray, values: FloatArray) -> None:
        """Points to be drawn after all others."""
        self.points, self.values = np.concatenate([self.points, points]), np.concatenate([self.values, values])
