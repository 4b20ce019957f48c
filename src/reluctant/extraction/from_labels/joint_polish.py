"""All numbers of a `BentModel` from located boundary points: damped Gauss–Newton, and their standard errors.

Scales are free: that of each neuron, and a common one. Rows that keep them take the place of a cut-off, for weak
directions that are real reach 1e-8 of the strong ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol, Self, TypeVar

import numpy as np
from scipy.linalg import qr, solve_triangular

from reluctant.extraction.from_labels.bent_model import FIRST_TWO, BentModel, Points, Terms, row_norms
from reluctant.fitting.least_squares import Damping, Linearisation, StepRules, least_squares
from reluctant.geometry.lines import Batch
from reluctant.numerics import DOUBLE, FloatArray


@dataclass(frozen=True)
class LocatedPoints(Batch):
    """Boundary points (n, r), located to within tol (n,), between the labels `pairs` (n, 2): 0 and 1 unless given."""

    points: FloatArray
    tol: FloatArray
    pairs: np.ndarray = field(default_factory=lambda: FIRST_TWO)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", np.broadcast_to(self.pairs, (len(self.points), 2)))

    @classmethod
    def none(cls, dim: int) -> LocatedPoints:
        """No points."""
        return cls(np.empty((0, dim)), np.empty(0))


class Fitted(Protocol):
    """A model whose numbers can be fitted to points of its boundary."""

    def equations(self, at: Points) -> tuple[FloatArray, FloatArray]:
        """Distances (n,) of points from the boundary, and their derivatives (n, p) by all numbers."""

    def moved(self, step: FloatArray) -> Self:
        """The model with these changes (p,) to its numbers, scales as before."""

    def scale_rows(self) -> FloatArray:
        """Rows (q, p) of steps that change nothing but what labels leave open."""


ModelT = TypeVar("ModelT", bound=Fitted)
# First damping: all numbers show in the points, some may not, or few digits do not tell which.
ALL_SEEN, SOME_UNSEEN, FEW_SEEN = 1e-13, 1e-10, 1e-4


def polished(
    model: ModelT, located: LocatedPoints, *, robust: bool = False, damping: float = ALL_SEEN, steps: int = 12
) -> tuple[ModelT, FloatArray]:
    """The model that fits all points best, and the residuals (n,), in their tolerances."""
    tol = located.tol
    outlier = 5.0  # times the median from which a point counts less, if robust

    def weights(left: FloatArray) -> FloatArray:
        if not robust:
            return np.ones(len(left))
        usual = max(outlier * float(np.median(np.abs(left))), outlier)
        return 1 / (1 + (left / usual) ** 2)

    def linearise(state: ModelT) -> Linearisation[ModelT, FloatArray]:
        distance, rows = state.equations(located)
        left = distance / tol
        weight = weights(left)
        columns = np.sqrt((rows**2).sum(axis=0))
        columns[columns == 0] = 1.0  # a number that no point shows
        strong = (weight / tol).max()
        fixed = state.scale_rows() / columns * np.sqrt(len(tol))
        whole = np.concatenate([rows * (weight / tol / strong)[:, None] / columns, fixed])
        wanted = np.append(-left * weight / strong, np.zeros(len(fixed)))

        factor = triangle(np.column_stack([whole, wanted]))  # the last column is what rows want

        def solve(damping: float) -> FloatArray:
            unknown = whole.shape[1]
            damped = triangle(np.concatenate([factor, damping * np.eye(unknown, unknown + 1)]))
            return np.asarray(solve_triangular(damped[:unknown, :unknown], damped[:unknown, unknown]) / columns)

        def move(step: FloatArray) -> tuple[ModelT, float] | None:
            if not np.isfinite(step).all():
                return None
            there = state.moved(step)
            return there, float(np.linalg.norm(weight * there.equations(located)[0] / tol))

        return Linearisation(state, float(np.linalg.norm(weight * left)), solve, move)

    rules = StepRules(
        steps=steps,
        policy=Damping(first=damping, least=damping / 10, refused=1e-8, singular=1e-8, tries=8),
        enough=lambda before, after: after > before / 2 and after < np.sqrt(len(tol)),
    )
    found = least_squares(model, linearise, rules).state
    return found, np.abs(found.equations(located)[0]) / tol


def triangle(rows: FloatArray) -> FloatArray:
    """R (p, p) of a QR decomposition."""
    return np.asarray(np.linalg.qr(rows, mode="r"))


def solved_terms(model: BentModel, terms: Terms, located: LocatedPoints, size: float) -> tuple[Terms, FloatArray]:
    """The terms that fit these points best beside a model that stays as it is, and the residuals (n,) in tolerances.

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


def most_telling(whitened: FloatArray, least: float) -> np.ndarray:
    """Which points (rows of standard errors) say most of a model, best first; each by more than `least`.

    A row counts for what those before it leave open: the diagonal of a pivoted QR decomposition.
    """
    if not len(whitened):
        return np.empty(0, dtype=int)
    triangular, order = qr(whitened.T, pivoting=True, mode="r")
    open_ = np.abs(np.diag(triangular))
    return np.asarray(order[: len(open_)][open_ > least])


@dataclass(frozen=True)
class Certainty:
    """Standard errors of a model that was fitted to located points."""

    model: Fitted
    factor: FloatArray  # triangular (p, p), of the equations

    @classmethod
    def of(cls, model: Fitted, located: LocatedPoints) -> Certainty:
        """From the equations of these points; scales count as known."""
        rows = model.equations(located)[1] / located.tol[:, None]
        fixed = model.scale_rows() / located.tol.min()
        # A number that no point shows has no error without this: it counts as known to one in its own unit.
        least = np.eye(rows.shape[1])
        return cls(model, np.asarray(np.linalg.qr(np.concatenate([rows, fixed, least]), mode="r")))

    def whitened(self, at: Points) -> FloatArray:
        """Rows (n, p) whose norms are the standard errors of the model's boundary at points."""
        rows = self.model.equations(at)[1]
        return np.asarray(solve_triangular(self.factor, rows.T, trans="T").T)

    def errors(self, at: Points) -> FloatArray:
        """Standard errors (n,) of the model's boundary at points."""
        return np.asarray(np.linalg.norm(self.whitened(at), axis=1))

    def directions(self, width: int, dim: int) -> FloatArray:
        """Standard errors (k,) of the unit directions of so many neurons, the model's first numbers."""
        inverse = solve_triangular(self.factor, np.eye(len(self.factor)))
        return np.asarray(np.sqrt((inverse[: width * dim] ** 2).reshape(width, dim * len(inverse)).sum(axis=1)))
