"""Fifth stage: Gauss–Newton on all parameters at once, with every answer that was paid for.

The answers of the subspace and of the extension give exact equations in the form of an arrow; those at random inputs
give products with their Jacobian alone. Conjugate gradients solve for each step; the arrow, with the random inputs
as they are on average, is the preconditioner, so a few iterations are enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from reluctant.extraction.few_digits.anywhere import Anywhere, Linearised
from reluctant.extraction.few_digits.arrow import Arrow, arrow_equations, row_sets
from reluctant.extraction.few_digits.extension import Extension
from reluctant.extraction.few_digits.layout import Layout, Step
from reluctant.extraction.few_digits.subspace_fit import Points
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Fit", "polish_all"]

STEPS = 6
SHORTER = (1.0, 0.3, 0.1)  # parts of a step that are tried
DAMPING = 1e-9  # of columns of norm one: scales of neurons are free
ITERATIONS, CLOSE = 15, 1e-5  # of conjugate gradients, and the part of the first gradient, squared, that may be left
ENOUGH = 0.03  # squares for each unknown: noise itself leaves them one each uncertain


@dataclass(frozen=True)
class Fit:
    """The network in the subspace, its weights in all other directions, and all answers it is fitted to."""

    core: ReLUNetwork
    extension: Extension
    points: Points
    anywhere: Anywhere

    @cached_property
    def random_residual(self) -> FloatArray:
        """What is left of the answers at random inputs."""
        return self.anywhere.residual(self.core, self.extension)

    @cached_property
    def square(self) -> float:
        """Sum of the squares of all residuals."""
        inside = sum(float((rows.residual(self.core) ** 2).sum()) for rows in row_sets(self.points, self.extension))
        return inside + float((self.random_residual**2).sum())

    @property
    def chi(self) -> float:
        """Root mean square of all residuals, in deviations of the noise."""
        return float(np.sqrt(self.square / self.answers))

    @property
    def answers(self) -> int:
        """Number of answers."""
        return int(self.points.f.size + self.extension.f.size + self.anywhere.f.size)

    @property
    def network(self) -> ReLUNetwork:
        """The network as a function of the input itself."""
        return self.extension.lifted(self.core, self.anywhere.frame)


def polish_all(fit: Fit) -> tuple[Fit, FloatArray]:
    """The fit with all parameters free, and the standard error (h,) of a weight of each neuron."""
    for _ in range(STEPS):
        arrow = arrow_equations(fit.core, fit.points, fit.extension)
        random = Linearised(fit.anywhere, fit.core, fit.extension)
        step = _gauss_newton_step(arrow, random, fit)
        better = None if step is None else _best_part(fit, step)
        if better is None:
            break
        gain, fit = fit.square - better.square, better
        if gain < ENOUGH * arrow.unknowns:
            break
    return fit, _weight_errors(random.added_to(arrow), Layout.of(fit.core))


def _best_part(fit: Fit, step: Step) -> Fit | None:
    tries = (_moved(fit, step, part) for part in SHORTER)
    return next((moved for moved in tries if moved.square < fit.square), None)


def _gauss_newton_step(arrow: Arrow, random: Linearised, fit: Fit) -> Step | None:
    """The step, or None where the gradient promises that it would gain nothing."""
    inverse = random.added_to(arrow).inverse(DAMPING)
    products = random.back(fit.random_residual)
    wanted = _plus((arrow.core_wanted, arrow.wanted), products, 1.0)
    enough = ENOUGH * arrow.unknowns
    if _dot(wanted, inverse @ wanted) < enough:
        return None

    def normal(step: Step) -> Step:
        return _plus(arrow @ step, random.back(random.forward(step)), 1.0)

    return _conjugate_gradients(normal, lambda gradient: inverse @ gradient, wanted, enough)


def _conjugate_gradients(
    normal: Callable[[Step], Step], nearly: Callable[[Step], Step], wanted: Step, enough: float
) -> Step:
    """Solve normal(step) = wanted; `nearly` inverts `normal` about, `enough` squares may be left to gain."""
    step: Step = (np.zeros_like(wanted[0]), np.zeros_like(wanted[1]))
    left, direction = wanted, nearly(wanted)
    size = first = _dot(left, direction)
    for _ in range(ITERATIONS):
        if not size > max(CLOSE * first, enough):
            break
        ahead = normal(direction)
        length = size / _dot(direction, ahead)
        step, left = _plus(step, direction, length), _plus(left, ahead, -length)
        conditioned = nearly(left)
        before, size = size, _dot(left, conditioned)
        direction = _plus(conditioned, direction, size / before)
    return step


def _plus(one: Step, other: Step, factor: float) -> Step:
    return one[0] + factor * other[0], one[1] + factor * other[1]


def _dot(one: Step, other: Step) -> float:
    return float(one[0] @ other[0] + np.vdot(one[1], other[1]))


def _moved(fit: Fit, step: Step, part: float) -> Fit:
    core, own = part * step[0], part * step[1]
    layout, old = Layout.of(fit.core), fit.extension
    skip = old.skip + own[:, layout.h :] if layout.affine else old.skip
    extension = replace(old, weights=old.weights + own[:, : layout.h], skip=skip)
    return replace(fit, core=layout.moved(fit.core, core), extension=extension)


def _weight_errors(arrow: Arrow, layout: Layout) -> FloatArray:
    """Standard error of a weight of each neuron: over all directions, or in the subspace where there are none."""
    if len(arrow.blocks):
        variances = np.diagonal(np.linalg.inv(arrow.blocks), axis1=1, axis2=2)[:, : layout.h].mean(axis=0)
    else:
        of_core = np.diag(np.linalg.pinv(arrow.core, hermitian=True))
        variances = layout.split_core(of_core)[0][:, : layout.k].mean(axis=1)
    return np.asarray(np.sqrt(np.maximum(variances, 0)))
