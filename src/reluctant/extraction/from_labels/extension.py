"""Extension: a model of a flat becomes one of the whole space, one direction at a time, by linear equations.

Along a direction e outside the flat a model with k neurons and m classes has k + m − 1 unknown numbers, uᵢ·e and s_c·e
less that of the first class. Boundary points of flat + t·e are linear in them while the model says on which side of
each crease they lie. Short steps t keep the sides of the flat and give 12 bits; with these the sides of long steps are
known, which give all digits. Each takes a line for each unknown and one to check: about as many labels as the numbers
have bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from reluctant.extraction.from_labels.bent_model import BoundaryPoints, row_norms
from reluctant.extraction.from_labels.class_model import ClassModel
from reluctant.extraction.from_labels.flat import Flat
from reluctant.extraction.method import StageFailed
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles.ledger import check_time

TWO = 2  # classes, whose model has no bends that labels of the flat do not show
SPARE = 1  # equations more than unknowns
SHORT_STEP, SHORT_BITS = 0.15, 12  # of the distance to the nearest crease; of a slope
LONG_STEPS = (0.1, 0.3)  # of a typical input
CANDIDATES = 400  # random segments for each unknown number, across which a boundary point is looked for
SETS, CLASS_SETS = 8, 24  # of points, each as many as unknown numbers: of two classes, of more
ROWS_TOGETHER = 2**21  # numbers in the rows of one request


@dataclass
class Extension:
    """The extension of one flat: `slopes` (l, k + m − 1) has the unknown numbers of each direction e (l, d) outside.

    errors (l, k + m − 1): how far off these may be after short steps.
    """

    flat: Flat
    model: ClassModel
    holds: Callable[[BoundaryPoints], BoolArray]  # where in the flat the model is right
    outside: FloatArray
    slopes: FloatArray
    errors: FloatArray

    @classmethod
    def of(cls, flat: Flat, model: ClassModel, holds: Callable[[BoundaryPoints], BoolArray]) -> Extension:
        """With random directions outside."""
        dim = len(flat.origin)
        random = flat.rng.standard_normal((dim, dim - flat.dim))
        inside = flat.along(np.eye(flat.dim)).T
        outside = np.linalg.qr(np.concatenate([inside, random], axis=1))[0][:, flat.dim :].T
        slopes = np.zeros((len(outside), model.width + model.classes - 1))
        return cls(flat, model, holds, outside, slopes, np.full_like(slopes, np.inf))

    @property
    def unknown(self) -> int:
        """Unknown numbers of a direction."""
        return self.slopes.shape[1]

    def run(self) -> ClassModel:
        """The model of the whole space. Cost: about 47·(k + m + 1) rows a direction."""
        self.short_steps()
        self.long_steps()
        model, flat = self.model, self.flat
        k = model.width
        directions = flat.along(model.directions) + self.slopes[:, :k].T @ self.outside
        slopes = flat.along(model.slopes)
        slopes[1:] += self.slopes[:, k:].T @ self.outside
        length = row_norms(directions)
        offsets = model.offsets - directions @ flat.origin
        levels = model.levels - slopes @ flat.origin
        return ClassModel(directions / length[:, None], offsets / length, model.bends * length, slopes, levels)

    def short_steps(self) -> None:
        """A first solution, where no step changes the side of a crease."""
        tries, shorter, consistent, farthest = 6, 6.0, 12.0, 64.0
        model, size = self.model, self.flat.typical
        points = self.candidates()
        room = np.minimum(model.room(points.points), model.junction_room(points))
        step = np.minimum(SHORT_STEP * room, 0.1 * size)
        rows = self.rows(model, points)
        use = self.choice(rows * step[:, None])
        points, rows, step = points[use], rows[use], step[use]
        base, across = self.flat.rows(points.points), self.flat.along(points.across)
        todo, part, steep = np.arange(len(self.outside)), np.ones(len(self.outside)), 1.0
        inside = np.append(row_norms(model.directions), np.repeat(row_norms(model.slopes).max(), model.classes - 1))
        expected = row_norms(rows * inside) / np.sqrt(self.flat.dim)  # outside the flat neurons are as steep as inside
        for _ in range(tries):
            again = []
            for some in self.batches(todo, len(use)):
                t = step * part[some][:, None]
                scale = steep * expected * t
                tol = np.maximum(scale * 2.0**-SHORT_BITS, self.flat.finest)
                starts = base + t[:, :, None] * self.outside[some][:, None]
                shift = self.crossings(starts, across, points.pairs, scale, tol, farthest * scale)
                for e, moved, one, off in zip(some, shift, t, tol, strict=True):
                    found = np.isfinite(moved)
                    if found.sum() < rows.shape[1] + 1:
                        again.append(e)
                        continue
                    weighted, wanted = (rows * (one / off)[:, None])[found], (-moved / off)[found]
                    inverse = np.linalg.pinv(weighted)
                    self.slopes[e], self.errors[e] = inverse @ wanted, row_norms(inverse)
                    if np.abs(weighted @ self.slopes[e] - wanted).max() > consistent:
                        again.append(e)
                moved = np.abs(shift / t) / expected
                steep = max(float(np.nanmedian(moved)), 1e-6) if np.isfinite(moved).any() else steep
            if not again:
                return
            todo = np.array(again)
            part[todo] /= shorter
        raise StageFailed("extension", "directions without a solution", number=len(todo), limit=0)

    def long_steps(self) -> None:
        """All digits, from long steps whose sides the first solution knows; shorter ones where it is wrong."""
        tries, shorter = 4, 3.0
        points = self.fixing(self.candidates())
        todo, part = np.arange(len(self.outside)), 1.0
        for attempt in range(tries):
            todo = self.longer(todo, points, part, last=attempt == tries - 1)
            if not len(todo):
                return
            part /= shorter
        raise StageFailed("extension", "directions whose equations do not agree", number=len(todo), limit=0)

    def longer(self, directions: np.ndarray, points: BoundaryPoints, part: float, *, last: bool) -> np.ndarray:
        """Solve these directions from this part of a long step; those that stay open.

        Their equations do not agree, or leave a number open; in the last attempt such a number may stay as it is.
        """
        clear, consistent, told, usual, unsolved = 2e-3, 200.0, 1e-3, 0.2, []
        size, finest = self.flat.typical, self.flat.finest
        for some in self.batches(directions, self.unknown + SPARE):
            lines, equations, solvable, expected = [], [], [], []
            for e in some:
                near, at = self.beside(e, points, clear * size, part)
                if len(at) < self.unknown + SPARE:  # it says too little of a crease for so long a step
                    unsolved.append(e)
                    continue
                rows = self.rows(near, at) * at.points[:, -1:]
                use = self.choice(rows)
                at, rows = at[use], rows[use]
                columns = row_norms(rows.T)
                weakest = max(float(np.linalg.svd(rows / columns, compute_uv=False)[-1]), DOUBLE.tiny)
                if weakest < told and (finest / weakest > told * self.errors[e] * columns).any() and not last:
                    unsolved.append(e)  # on the sides that are left two neurons look like one
                    continue
                solvable.append(e)
                expected.append(row_norms(rows * self.errors[e]))
                y, across = at.points, near.gradients(at.points, at.pairs)[:, :-1]
                length = row_norms(across)
                starts = self.flat.rows(y[:, :-1]) + y[:, -1:] * self.outside[e]
                lines.append((starts, self.flat.along(across / length[:, None]), at.pairs))
                equations.append((rows, -near.differences(at) / length))
            if not lines:
                continue
            starts, across, pairs = (np.stack(parts) for parts in zip(*lines, strict=True))
            scale = np.clip(usual * np.array(expected), 2 * finest, 0.01 * size)
            moved = self.crossings(starts, across, pairs, scale, finest, 0.3 * size)
            for e, (rows, wanted), t in zip(solvable, equations, moved, strict=True):
                found = np.isfinite(t)
                rows, wanted = rows[found], (wanted - t)[found]
                columns = row_norms(rows.T)
                change = np.linalg.lstsq(rows / columns, wanted, rcond=None)[0] / columns
                if np.abs(rows @ change - wanted).max(initial=0.0) > consistent * finest or len(rows) <= rows.shape[1]:
                    unsolved.append(e)
                else:
                    self.slopes[e] += change
        return np.array(unsolved, dtype=int)

    def beside(self, e: int, points: BoundaryPoints, clear: float, part: float) -> tuple[ClassModel, BoundaryPoints]:
        """The model of flat and one direction; boundary points (n, r + 1) a part of a long step away, off creases."""
        model, steps, rng, k = self.model, 12, self.flat.rng, self.model.width
        near = ClassModel(
            np.column_stack([model.directions, self.slopes[e, :k]]), model.offsets, model.bends,
            np.column_stack([model.slopes, np.append(0.0, self.slopes[e, k:])]), model.levels,
        )  # fmt: skip
        away = part * rng.uniform(*LONG_STEPS, len(points)) * rng.choice([-1, 1], len(points)) * self.flat.typical
        there, across = (np.column_stack([inside, away]) for inside in (points.points, points.across))
        at = BoundaryPoints(there, across, points.pairs)
        for _ in range(steps):
            across = near.gradients(at.points, at.pairs)[:, :-1]
            at.points[:, :-1] -= (near.differences(at) / row_norms(across) ** 2)[:, None] * across
        across = row_norms(near.gradients(at.points, at.pairs)[:, :-1])
        known = np.abs(near.preactivations(at.points)) - np.abs(away)[:, None] * self.errors[e, :k]  # on which side
        room = (known / row_norms(near.directions)).min(axis=1, initial=np.inf)
        room = np.minimum(room, near.junction_room(at))
        there = np.abs(near.differences(at)) < 1e-9 * self.flat.typical * across
        close = np.linalg.norm(at.points[:, :-1] - points.points, axis=1) < 2 * self.flat.typical
        rows = self.flat.rows(at.points[:, :-1]) + at.points[:, -1:] * self.outside[e]
        close &= self.flat.whole().inside(rows, clear)
        if model.classes > TWO:  # behind another crease some class may have a bend that no label of the flat showed
            before, behind = model.preactivations(points.points), near.preactivations(at.points)
            close &= (np.sign(before) == np.sign(behind)).all(axis=1)
        return near, at[there & close & (room > clear)]

    # ---- points

    def candidates(self) -> BoundaryPoints:
        """Boundary points of the flat where the model is right. So many that every neuron has some on both sides."""
        points = self.model.boundary_points(self.flat.draw, CANDIDATES * self.unknown)
        return points[self.holds(points)]

    def fixing(self, points: BoundaryPoints) -> BoundaryPoints:
        """Sets of points that each fix the unknown numbers best, one after the other."""
        rows, left, chosen = self.rows(self.model, points), np.arange(len(points)), [np.empty(0, dtype=int)]
        for _ in range(SETS if self.model.classes == TWO else CLASS_SETS):
            if len(left):
                chosen.append(left[qr(rows[left].T, pivoting=True, mode="r")[1][: self.unknown]])
                left = np.setdiff1d(left, chosen[-1])
        return points[np.concatenate(chosen)]

    # ---- equations

    def rows(self, model: ClassModel, at: BoundaryPoints) -> FloatArray:
        """How far (n, k + m − 1) the boundary moves, inside the flat, for one more of each unknown number."""
        side = np.sign(model.preactivations(at.points)) * model.bends_between(at.pairs)
        across = model.gradients(at.points, at.pairs)[:, : self.flat.dim]
        return np.column_stack([side, model.class_signs(at.pairs)[:, 1:]]) / row_norms(across)[:, None]

    def choice(self, rows: FloatArray) -> np.ndarray:
        """The rows that fix the unknown numbers best, and some to check all of these."""
        unknown = rows.shape[1]
        if len(rows) < unknown + SPARE:
            raise StageFailed("extension", "too few boundary points", number=len(rows), limit=unknown + SPARE)
        order = qr(rows.T, pivoting=True, mode="r")[1]
        best, rest = order[:unknown], order[unknown:]
        shares = np.abs(np.linalg.pinv(rows[best].T) @ rows[rest].T)  # of each best row in every other one
        checked = np.log(shares + DOUBLE.rounding).sum(axis=0)  # a row is checked by those that it has a share in
        return np.concatenate([best, rest[np.argsort(-checked, kind="stable")[:SPARE]]])

    def batches(self, directions: np.ndarray, lines: int) -> list[np.ndarray]:
        """Directions whose lines are searched together."""
        check_time()
        together = int(np.clip(ROWS_TOGETHER // (lines * len(self.flat.origin)), 1, 64))
        return np.split(directions, range(together, len(directions), together))

    def crossings(
        self,
        starts: FloatArray,
        across: FloatArray,
        pairs: np.ndarray,
        scale: FloatArray | float,
        tol: FloatArray | float,
        limit: FloatArray | float,
    ) -> FloatArray:
        """Positions (l, n) of the boundary along lines from starts (l, n, d)."""
        shape = starts.shape
        across = np.broadcast_to(across, shape).reshape(-1, shape[-1])
        pairs = np.broadcast_to(pairs, (*shape[:2], 2)).reshape(-1, 2)
        whole = self.flat.whole()
        flat = [np.broadcast_to(part, shape[:2]).ravel() for part in (scale, tol, limit)]
        return whole.crossings(BoundaryPoints(starts.reshape(-1, shape[-1]), across, pairs), *flat).reshape(shape[:2])
