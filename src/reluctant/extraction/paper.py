"""The algorithms of "An exact poly-time membership-queries algorithm for extracting a three-layer ReLU network"
(Daniely and Granot, ICLR 2023), one function each, in the paper's terms.

They spend 2(d + 1) queries a neuron where `DepthTwo` spends d + 1, and need creases at least δ apart; they are
here to be read beside the paper and used on their own. `ask` is any function of an (n, d) array, such as
`oracle.query`; functions have one output, as in the paper. Equality of real numbers becomes equality up to
`tol`, the largest deviation of an answer that counts as none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = [
    "AffineMap",
    "affine",
    "find_critical_point",
    "find_critical_points",
    "find_hyperplane",
    "is_convex",
    "is_general",
    "recover_depth_two",
]

Ask: TypeAlias = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class AffineMap:
    """Λ(x) = ⟨w, x⟩ + b."""

    w: FloatArray
    b: float

    def __call__(self, x: FloatArray) -> FloatArray:
        """Values at rows (n, d)."""
        return np.asarray(x) @ self.w + self.b

    def __sub__(self, other: AffineMap) -> AffineMap:
        return AffineMap(self.w - other.w, self.b - other.b)


def affine(ask: Ask, epsilon: float, x: FloatArray) -> AffineMap:
    """Algorithm 2, AFFINE: the map around an ε-general point. Cost: d + 1 rows."""
    steps = epsilon * np.eye(len(x))
    answers = ask(np.vstack([x, x + steps]))[:, 0]
    w = (answers[1:] - answers[0]) / epsilon
    return AffineMap(w, float(answers[0] - w @ x))


def find_critical_point(ask: Ask, delta: float, a: float, tol: float) -> float | None:
    """Algorithm 1, FIND_CP: the left-most critical point of a δ-nice function of one variable in (a, 1/δ).

    The search starts at a, not at -1/δ as printed: critical points left of a would else count as found.
    None if there is no critical point. Cost: about 4·log₂(1/δ) rows.
    """
    if not 0 < delta < 1:
        raise InvalidInput.about("delta", got=delta, expected="a number between 0 and 1")
    step = delta**2
    left, right = a + step, 1 / delta
    if left >= right:
        return None
    first = affine(ask, step, np.array([left]))
    if _same_piece(first, affine(ask, step, np.array([right])), delta, tol):
        return None
    for _ in range(int(np.ceil(np.log2((right - left) / delta))) + 1):
        middle = (left + right) / 2
        if _same_piece(first, affine(ask, step, np.array([middle])), delta, tol):
            left = middle
        else:
            right = middle
    # Intersect from nearby, where no digits are lost, but not so near that a step crosses the point itself.
    before, after = affine(ask, step, np.array([left - step])), affine(ask, step, np.array([right + 2 * step]))
    gap = after(np.array([[left]]))[0] - before(np.array([[left]]))[0]
    bend = before.w[0] - after.w[0]
    point = left + gap / bend if bend else np.nan
    if not left - delta <= point <= right + delta:
        raise InvalidInput.about(
            "ask", got=f"no single critical point between {left:g} and {right:g}",
            expected=f"a {delta:g}-nice function: pieces no shorter than δ", fix="Try a smaller delta.",
        )  # fmt: skip
    return float(point)


def _same_piece(one: AffineMap, other: AffineMap, delta: float, tol: float) -> bool:
    """True if the maps agree: slopes over a step of δ², constants over a distance of 1/δ."""
    difference, slope_tol = one - other, 2 * tol / delta**2
    return bool(abs(difference.w[0]) <= slope_tol and abs(difference.b) <= slope_tol / delta)


def find_critical_points(ask: Ask, delta: float, tol: float) -> list[float]:
    """All critical points in (-1/δ, 1/δ), one after the other from the left (Section 3.2.2)."""
    found: list[float] = []
    position: float | None = -1 / delta
    while position is not None and len(found) <= 2 / delta**2:  # more pieces than that are shorter than δ
        position = find_critical_point(ask, delta, position, tol)
        if position is not None:
            found.append(position)
    return found


def find_hyperplane(ask: Ask, delta: float, x: FloatArray) -> AffineMap:
    """Algorithm 3, FIND_HP: the critical hyperplane through a δ-non-degenerate critical point.

    It is where the returned map is zero. Cost: 2(d + 1) rows.
    """
    epsilon = (delta / 2) ** 2
    step = np.zeros_like(x)
    step[0] = delta / 2
    return affine(ask, epsilon, x + step) - affine(ask, epsilon, x - step)


def is_convex(ask: Ask, delta: float, x: FloatArray) -> bool:
    """Algorithm 4, IS_CONVEX: convex rather than concave at a critical point. Cost: 3 rows."""
    ahead, here, behind = _along_first_axis(ask, delta, x)
    return bool(ahead - here > here - behind)


def is_general(ask: Ask, epsilon: float, x: FloatArray, tol: float) -> bool:
    """Algorithm 5, IS_GENERAL: a general rather than a critical point. Cost: 3 rows."""
    ahead, here, behind = _along_first_axis(ask, epsilon, x)
    return bool(abs(ahead - 2 * here + behind) <= tol)


def _along_first_axis(ask: Ask, step: float, x: FloatArray) -> FloatArray:
    rows = np.repeat(np.asarray(x, dtype=float)[None], 3, axis=0)
    rows[:, 0] += [step, 0.0, -step]
    return ask(rows)[:, 0]


def recover_depth_two(ask: Ask, dim: int, delta: float, tol: float, rng: np.random.Generator) -> ReLUNetwork:
    """Algorithm 6: a δ-regular depth-two network, up to an affine map that is recovered with it (Theorem 1).

    Cost: about 4·log₂(1/δ) + 2(d + 1) + 3 rows a neuron.
    """
    axis = np.eye(dim)[:1]
    critical = find_critical_points(lambda t: ask(t * axis), delta, tol)
    points = [t * axis[0] for t in critical]
    planes = [find_hyperplane(ask, delta, x) for x in points]
    signs = np.array([1.0 if is_convex(ask, delta, x) else -1.0 for x in points])
    w = np.array([plane.w for plane in planes]).reshape(-1, dim)
    b = np.array([plane.b for plane in planes])
    neurons = ReLUNetwork([w, signs[None]], [b, np.zeros(1)])
    rest = affine(lambda x: ask(x) - neurons(x), delta, rng.standard_normal(dim))
    return ReLUNetwork([w, signs[None]], [b, np.array([rest.b])], rest.w[None])
