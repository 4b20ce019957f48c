"""The row space of a target: the directions of input space that change its answers.

A point is worth a gradient only if a long random step orthogonal to the directions so far changes the answers,
which two rows show. This works for any piecewise linear function of any depth; a constant one has rank 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.geometry.gradients import gradients
from reluctant.geometry.lines import DistanceNoise, Frame, orthogonal_moves
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles.base import Ask

LEAST_FRESH = 1e-6  # part of a gradient outside the directions so far that may be a new one


@dataclass(frozen=True)
class RowSpace:
    """An orthonormal basis (through the origin), and how clear its rank is.

    margin: largest part of a measured gradient that counted as nothing, over the smallest that counted as
    a direction; noise where nothing was left over. 0 for a constant, infinite if there are more directions that
    could not be measured.
    """

    frame: Frame
    margin: float
    gradients: int  # measured

    @property
    def rank(self) -> int:
        """Number of directions."""
        return len(self.frame.basis)


def row_space(ask: Ask, dim: int, noise: DistanceNoise, rng: np.random.Generator) -> RowSpace:
    """Find the row space. Cost: about dim + 30 rows for every min(outputs, open directions) of the rank."""
    enough_unchanged = 3  # rounds without any change that end the search
    fresh, less = 1e-2, 10.0  # part of a gradient that is a new direction, and how much less after a point without any
    most_failures = 20  # in a row: points at which no new direction could be measured
    search = _RowSpaceSearch(ask, dim, noise, rng)
    unchanged = failures = 0
    while unchanged < enough_unchanged and search.rank < dim:
        if failures == most_failures:
            return replace(search.result(), margin=float("inf"))
        segment = search.changing_segment()
        if segment is None:
            unchanged += 1
            continue
        unchanged = 0
        failures = 0 if search.measure(*segment, max(fresh / less**failures, LEAST_FRESH)) else failures + 1
    return search.result()


def value_changes(ask: Ask, starts: FloatArray, moves: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Largest change (n,) of any output along each step, and all answers at the starts. Cost: 2 rows a step."""
    before, after = np.split(ask(np.concatenate([starts, starts + moves])), 2)
    return np.abs(after - before).max(axis=1), before


class _RowSpaceSearch:
    """The directions found so far, and the gradients they come from."""

    def __init__(self, ask: Ask, dim: int, noise: DistanceNoise, rng: np.random.Generator) -> None:
        self.ask, self.dim, self.noise, self.rng = ask, dim, noise, rng
        self.basis = np.empty((0, dim))
        self.rows: list[FloatArray] = []  # gradients of single outputs, of norm one
        self.kept, self.left = np.inf, 0.0  # smallest part that counts as a direction, largest that does not
        self.spread = 0.0

    @property
    def rank(self) -> int:
        return len(self.basis)

    def changing_segment(self) -> tuple[FloatArray, FloatArray] | None:
        """Start and step along which the answers change most, None if they do not."""
        tests = 6  # steps tried together
        reach = 3.0  # length of a test step, in typical inputs
        new = 1e-7  # change that counts, of the spread of the answers: the directions so far are not exact either
        starts = self.rng.standard_normal((tests, self.dim))
        length = reach * float(np.sqrt(self.dim))
        moves = orthogonal_moves(self.basis, tests, length, self.rng)
        change, answers = value_changes(self.ask, starts, moves)
        self.spread = max(self.spread, float(answers.std(axis=0).max()), float(change.max()))
        best = int(np.argmax(change))
        enough = max(new * self.spread, 2 * DOUBLE.in_line * float(self.noise.at(np.array([2 * length]))[0]))
        return (starts[best], moves[best]) if change[best] > enough else None

    def measure(self, start: FloatArray, move: FloatArray, fresh: float) -> bool:
        """Take the gradient where the answers change most; True if it brought a new direction."""
        count, within = 8, (0.2, 0.8)  # positions on the step, each so far along its part of it
        places = (np.arange(count) + self.rng.uniform(*within, count)) / count
        answers = self.ask(start + places[:, None] * move)
        fastest = int(np.argmax(np.abs(np.diff(answers, axis=0)).max(axis=1) / np.diff(places)))
        point = (start + (places[fastest] + places[fastest + 1]) / 2 * move)[None]
        room = self.room(point)
        if room is None:
            return False
        found = gradients(self.ask, point, None, np.array([room]), self.noise, self.rng)
        return bool(found.good[0]) and self.add(found.slope[0], float(found.sd[0]), fresh)

    def room(self, point: FloatArray) -> float | None:
        """The longest step over which the function is affine along random directions; None beside a crease."""
        # Of a gradient, in units of one coordinate; shorter ones lose digits.
        longest_step, shorter, most_steps = 1.0, 2.0, 13
        wider = 6.0  # a coordinate may weigh this much more than a random direction
        sd = float(self.noise.at(np.linalg.norm(point, axis=1))[0])
        here, step = self.ask(point), longest_step
        for _ in range(most_steps):
            move = wider * step * self.rng.standard_normal((2, self.dim)) / np.sqrt(self.dim)
            ahead, behind = np.split(self.ask(np.concatenate([point + move, point - move])), 2)
            if np.abs(ahead + behind - 2 * here).max() <= DOUBLE.in_line * sd:
                return step
            step /= shorter
        return None

    def add(self, slope: FloatArray, sd: float, fresh: float) -> bool:
        """Keep the new part of the gradients (m, d) of all outputs; if none is new enough, nothing at all."""
        sizes = np.linalg.norm(slope, axis=1)
        size = float(sizes.max())
        if not size > 0:
            return False
        blur = sd * float(np.sqrt(self.dim)) / size
        rest = slope - (slope @ self.basis.T) @ self.basis
        rest -= (rest @ self.basis.T) @ self.basis
        _, parts, directions = np.linalg.svd(rest / size, full_matrices=False)
        new = parts > max(fresh, DOUBLE.in_line * blur)
        new[self.dim - self.rank :] = False
        self.left = max(self.left, blur, float(parts[parts < LEAST_FRESH].max(initial=0.0)))
        if not new.any():
            return False
        self.kept = min(self.kept, float(parts[new].min()))
        self.rows.extend(slope / size)
        directions = directions[new] - (directions[new] @ self.basis.T) @ self.basis
        self.basis = np.concatenate([self.basis, np.linalg.qr(directions.T)[0].T])
        return True

    def result(self) -> RowSpace:
        """The basis that fits all gradients best."""
        margin = self.left / self.kept if self.rank else 0.0
        basis = np.linalg.svd(np.array(self.rows), full_matrices=False)[2][: self.rank] if self.rank else self.basis
        return RowSpace(Frame(np.zeros(self.dim), basis), margin, len(self.rows))
