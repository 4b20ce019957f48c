"""All numbers of a `BentModel` from located boundary points: damped Gauss–Newton, and their standard errors.

Scales are free: that of each neuron, and a common one. Rows that keep them take the place of a cut-off, for weak
directions that are real reach 1e-8 of the strong ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from reluctant.extraction.from_labels.bent_model import BentModel, Terms, row_norms
from reluctant.fitting.least_squares import Damping, Linearisation, StepRules, least_squares
from reluctant.numerics import DOUBLE, FloatArray


@dataclass(frozen=True)
class LocatedPoints:
    """Boundary points (n, r), located to within tol (n,)."""

    points: FloatArray
    tol: FloatArray

    @classmethod
    def none(cls, dim: int) -> LocatedPoints:
        """No points."""
        return cls(np.empty((0, dim)), np.empty(0))

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, which: slice | np.ndarray) -> LocatedPoints:
        return LocatedPoints(self.points[which], self.tol[which])

    def __add__(self, other: LocatedPoints) -> LocatedPoints:
        return LocatedPoints(np.concatenate([self.points, other.points]), np.append(self.tol, other.tol))


def equations(model: BentModel, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distances (n,) of points from the model's boundary, and their derivatives (n, p) by all its numbers."""
    z = model.preactivations(y)
    side = np.sign(z) * model.bends
    size = row_norms(side @ model.directions + model.slope)[:, None]
    by_direction = (side[:, :, None] * y[:, None, :]).reshape(len(y), model.directions.size)
    rows = np.concatenate([by_direction, side, np.abs(z), y, np.ones((len(y), 1))], axis=1)
    return model(y) / size[:, 0], rows / size


def moved(model: BentModel, step: FloatArray) -> BentModel:
    """The model with these changes (p,) to its numbers, scales as before."""
    k, r = model.directions.shape
    by_direction, offsets, bends, slope, level = np.split(step, np.cumsum([k * r, k, k, r]))
    directions, offsets = model.directions + by_direction.reshape(k, r), model.offsets + offsets
    bends, slope, level = model.bends + bends, model.slope + slope, model.level + level[0]
    length = row_norms(directions)
    common = float(np.linalg.norm(slope)) or 1.0
    return BentModel(
        directions / length[:, None], offsets / length, bends * length / common, slope / common, float(level) / common
    )


def _scale_rows(model: BentModel) -> FloatArray:
    """Rows (k + 1, p) of steps that change nothing but scales."""
    k, r = model.directions.shape
    rows = np.zeros((k + 1, k * r + 2 * k + r + 1))
    for i in range(k):
        rows[i, i * r : (i + 1) * r], rows[i, k * r + i] = model.directions[i], 0.0
    rows[k, k * r + 2 * k : -1] = model.slope
    return rows


def polished(model: BentModel, located: LocatedPoints, *, robust: bool = False) -> tuple[BentModel, FloatArray]:
    """The model that fits all points best, and what is left (n,) at each, in their tolerances."""
    y, tol = located.points, located.tol
    outlier = 5.0  # times the median from which a point counts less, if robust

    def weights(left: FloatArray) -> FloatArray:
        if not robust:
            return np.ones(len(left))
        usual = max(outlier * float(np.median(np.abs(left))), outlier)
        return 1 / (1 + (left / usual) ** 2)

    def linearise(state: BentModel) -> Linearisation[BentModel, FloatArray]:
        distance, rows = equations(state, y)
        left = distance / tol
        weight = weights(left)
        columns = np.maximum(np.sqrt((rows**2).sum(axis=0)), DOUBLE.tiny)
        strong = (weight / tol).max()
        fixed = _scale_rows(state) / columns * np.sqrt(len(y))
        whole = np.concatenate([rows * (weight / tol / strong)[:, None] / columns, fixed])
        wanted = np.append(-left * weight / strong, np.zeros(len(fixed)))

        def solve(damping: float) -> FloatArray:
            damped = np.concatenate([whole, damping * np.eye(whole.shape[1])])
            q, r = np.linalg.qr(damped)
            return np.asarray(solve_triangular(r, q[: len(whole)].T @ wanted) / columns)

        def move(step: FloatArray) -> tuple[BentModel, float] | None:
            if not np.isfinite(step).all():
                return None
            there = moved(state, step)
            return there, float(np.linalg.norm(weight * equations(there, y)[0] / tol))

        return Linearisation(state, float(np.linalg.norm(weight * left)), solve, move)

    rules = StepRules(
        steps=12,
        policy=Damping(first=1e-13, least=1e-14, refused=1e-8, singular=1e-8, tries=8),
        enough=lambda before, after: after > before / 2 and after < np.sqrt(len(y)),
    )
    found = least_squares(model, linearise, rules).state
    return found, np.abs(equations(found, y)[0]) / tol


def solved_terms(model: BentModel, terms: Terms, located: LocatedPoints, size: float) -> tuple[Terms, FloatArray]:
    """The terms that fit these points best beside a model that stays as it is, and what is left (n,) in tolerances.

    Linear, since the points say which creases they lie behind.
    """
    y, (q, r) = located.points, terms.slopes.shape
    grown = terms.added_to(model)
    values, length = y @ terms.slopes.T + terms.levels, row_norms(grown.gradients(y))
    behind = values * ((terms.slopes * terms.behind).sum(axis=1) + terms.levels) > 0
    weight = 1 / (length * located.tol)
    rows = (behind[:, :, None] * np.column_stack([y / size, np.ones(len(y))])[:, None]).reshape(len(y), -1)
    rows, wanted = rows * weight[:, None], -grown(y) * weight
    columns = np.maximum(np.linalg.norm(rows, axis=0), DOUBLE.tiny)
    change = np.linalg.lstsq(rows / columns, wanted, rcond=None)[0] / columns
    left = np.abs(rows @ change - wanted)
    change = change.reshape(q, r + 1)
    return replace(terms, slopes=terms.slopes + change[:, :r] / size, levels=terms.levels + change[:, r]), left


@dataclass(frozen=True)
class Certainty:
    """Standard errors of a model that was fitted to located points."""

    model: BentModel
    factor: FloatArray  # triangular (p, p), of the equations

    @classmethod
    def of(cls, model: BentModel, located: LocatedPoints) -> Certainty:
        """From the equations of these points; scales count as known."""
        rows = equations(model, located.points)[1] / located.tol[:, None]
        fixed = _scale_rows(model) / located.tol.min()
        # A number that no point shows has no error without this: it counts as known to one in its own unit.
        least = np.eye(rows.shape[1])
        return cls(model, np.asarray(np.linalg.qr(np.concatenate([rows, fixed, least]), mode="r")))

    def whitened(self, y: FloatArray) -> FloatArray:
        """Rows (n, p) whose norms are the standard errors of the model's boundary at points (n, r)."""
        rows = equations(self.model, y)[1]
        return np.asarray(solve_triangular(self.factor, rows.T, trans="T").T)

    def errors(self, y: FloatArray) -> FloatArray:
        """Standard errors (n,) of the model's boundary at points (n, r)."""
        return np.asarray(np.linalg.norm(self.whitened(y), axis=1))

    def directions(self) -> FloatArray:
        """Standard errors (k,) of the neurons' unit directions."""
        k, r = self.model.directions.shape
        inverse = solve_triangular(self.factor, np.eye(len(self.factor)))
        return np.asarray(np.sqrt((inverse[: k * r] ** 2).reshape(k, r * len(inverse)).sum(axis=1)))
