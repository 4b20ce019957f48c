"""Section 3.5 of "An exact poly-time membership-queries algorithm for extracting a three-layer ReLU network"
(Daniely and Granot, ICLR 2023): the first layer of three, one function for each step, in the paper's terms.

They are here to be read beside the paper and used on their own; `depth_three` finds the same with far fewer
queries and without the paper's conditions. `ask` is any function of an (n, d) array with one output. Equality
of real numbers becomes equality up to `tol`. The paper's δ′, about 2^-2(d₁+d₂), is below the resolution of
floating point: the step `delta` is taken instead, and a critical point nearby has a chance of about δ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.extraction.paper import AffineMap, Ask, find_critical_points, find_hyperplane, is_general
from reluctant.numerics import FloatArray

__all__ = ["CriticalPoint", "first_layer", "is_first_layer", "neuron_sign", "separation", "through_right_inverse"]


@dataclass(frozen=True)
class CriticalPoint:
    """A pair (x, P) of the list L: a non-degenerate critical point and its hyperplane, of norm one."""

    x: FloatArray
    plane: AffineMap

    @classmethod
    def of(cls, x: FloatArray, plane: AffineMap) -> CriticalPoint:
        """With the normal of the hyperplane scaled to norm one and through x."""
        w = plane.w / np.linalg.norm(plane.w)
        return cls(x, AffineMap(w, -float(w @ x)))


def separation(dim: int, pairs: int) -> float:
    """Step 2 of Algorithm 7: R with exp(-R²/2) ≤ 2^-(d+1) / m²."""
    return float(np.sqrt(2 * ((dim + 1) * np.log(2) + 2 * np.log(max(pairs, 1)))))


def is_first_layer(
    ask: Ask, pairs: list[CriticalPoint], index: int, delta: float, tol: float, rng: np.random.Generator
) -> bool:
    """Algorithm 7: does the hyperplane of pairs[index] correspond to a first-layer neuron?

    On the far side of every other hyperplane of the list a random point of it must be critical. Cost: at most 3
    rows for each other pair.
    """
    here = pairs[index]
    far = separation(len(here.x), len(pairs))
    for k, other in enumerate(pairs):
        if k == index:
            continue
        beyond = _across(here, other.plane, far, delta)
        if beyond is None:
            continue
        step = rng.standard_normal(len(here.x))
        step -= (step @ here.plane.w) * here.plane.w
        if is_general(ask, delta, beyond + step, tol):
            return False
    return True


def _across(here: CriticalPoint, plane: AffineMap, distance: float, delta: float) -> FloatArray | None:
    """Step 4: the nearest point of the hyperplane that another one separates from x by this distance.

    None for hyperplanes at an angle below δ, which regularity excludes. Where one first-layer neuron alone is on,
    second-layer hyperplanes are parallel to its own, and separate nothing.
    """
    along = plane.w - (plane.w @ here.plane.w) * here.plane.w
    slope = float(along @ along)
    if slope < delta**2:
        return None
    value = float(plane(here.x))
    wanted = -np.copysign(distance * np.linalg.norm(plane.w), value)
    return np.asarray(here.x + (wanted - value) / slope * along)


def neuron_sign(
    ask: Ask, w: FloatArray, b: FloatArray, j: int, epsilon: float, tol: float, rng: np.random.Generator
) -> float:
    """Section 3.5.3: 1 if (w_j, b_j) has the neuron's sign, -1 if the opposite, 0 if neither side shows a change.

    0 is what the paper excludes by its condition on partial derivatives. Cost: 3 rows.
    """
    inverse = np.linalg.pinv(w)
    if not np.allclose(w @ inverse, np.eye(len(w)), atol=np.sqrt(np.finfo(float).eps)):
        raise InvalidInput.about("w", got=f"rank below {len(w)}", expected="rows that are linearly independent")
    z = inverse[:, j] / np.linalg.norm(inverse[:, j])  # orthogonal to the other rows
    x = rng.standard_normal(w.shape[1])
    x -= (w[j] @ x + b[j]) / (w[j] @ w[j]) * w[j]
    ahead, here, behind = ask(np.stack([x + epsilon * z, x, x - epsilon * z]))[:, 0]
    if max(abs(ahead - here), abs(behind - here)) <= tol:
        return 0.0
    return 1.0 if abs(ahead - here) > abs(behind - here) else -1.0


def through_right_inverse(ask: Ask, w: FloatArray, b: FloatArray) -> Ask:
    """Section 3.5.4: the top two layers as a function of hidden values y ≥ 0, asked at W⁺(y - b)."""
    inverse = np.linalg.pinv(w)
    return lambda y: ask((np.asarray(y) - b) @ inverse.T)


def first_layer(
    ask: Ask, dim: int, delta: float, tol: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Steps one to three: weights (n, d) of norm one, biases, and signs, 0 where one could not be told.

    Critical points on the first axis, their hyperplanes, those that are critical everywhere, and their signs.
    """
    axis = np.eye(dim)[:1]
    points = [t * axis[0] for t in find_critical_points(lambda t: ask(t * axis), delta, tol)]
    pairs = [CriticalPoint.of(x, find_hyperplane(ask, delta, x)) for x in points]
    first = [pair for k, pair in enumerate(pairs) if is_first_layer(ask, pairs, k, delta, tol, rng)]
    w = np.array([pair.plane.w for pair in first]).reshape(-1, dim)
    b = np.array([pair.plane.b for pair in first])
    signs = np.array([neuron_sign(ask, w, b, j, delta, tol, rng) for j in range(len(b))])
    flip = np.where(signs < 0, -1.0, 1.0)
    return w * flip[:, None], b * flip, signs
