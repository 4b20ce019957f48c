"""Algorithms and conditions of the extraction paper, one function each (Daniely and Granot, ICLR 2023).

The paper is "An exact poly-time membership-queries algorithm for extracting a three-layer ReLU network". Names are
those of the paper.

They are here to be read beside the paper and used on their own: `DepthTwo` and `DepthThree` find the same networks
with far fewer queries and fewer conditions. `ask` is any function of an (n, d) array with one output, such as
`oracle.query`. Equality of real numbers becomes equality up to `tol`, the largest deviation of an answer that
counts as none. The paper's δ′, about 2^-2(d₁+d₂), is below the resolution of floating point: the three-layer steps
take `delta` instead, and a critical point nearby has a chance of about δ.

`regularity` (Appendix A) and `three_layer_conditions` (Theorem 3, Lemma 4) diagnose a given network: each number
says how far it is from violating one condition. They ask nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TypeAlias

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator

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
        beyond = _beyond_hyperplane(here, other.plane, far, delta)
        if beyond is None:
            continue
        step = rng.standard_normal(len(here.x))
        step -= (step @ here.plane.w) * here.plane.w
        if is_general(ask, delta, beyond + step, tol):
            return False
    return True


def _beyond_hyperplane(here: CriticalPoint, plane: AffineMap, distance: float, delta: float) -> FloatArray | None:
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


def recover_first_layer(
    ask: Ask, dim: int, delta: float, tol: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Steps one to three: weights (n, d) of norm one, biases, and signs, 0 for an unknown one.

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


@dataclass(frozen=True)
class Regularity:
    """How far a network is from violating each condition.

    inside: critical points on the axes have 1/|t| at least this (condition 1).
    off_origin: critical points on the axes have |t| at least this (condition 1).
    piece: shortest piece on an axis (condition 1).
    non_degenerate: distance from a critical point on an axis to the nearest other hyperplane (condition 2).
    apart: distance between two hyperplanes, the sine of their angle (conditions 3 and 4).
    general: smallest angle between a hyperplane and an axis, as a sine (condition 5).
    """

    inside: float
    off_origin: float
    piece: float
    non_degenerate: float
    apart: float
    general: float

    @property
    def delta(self) -> float:
        """The largest δ for which the network is δ-regular."""
        return min(asdict(self).values())

    @property
    def weakest(self) -> str:
        """The condition that limits δ."""
        numbers = asdict(self)
        return min(numbers, key=numbers.__getitem__)


def regularity(network: ReLUNetwork) -> Regularity:
    """Diagnose the first-layer hyperplanes of a network. No queries; it reads d·h² numbers."""
    normals, offsets = network.hyperplanes()
    live = np.isfinite(normals).all(axis=1)
    normals, offsets = normals[live], offsets[live]
    with np.errstate(divide="ignore", invalid="ignore"):
        critical = -offsets[:, None] / normals  # (h, d): where each hyperplane meets each axis, inf if nowhere
        sizes = np.abs(critical)
    largest = float(np.nanmax(sizes, initial=0))
    return Regularity(
        inside=1 / largest if largest else np.inf,
        off_origin=float(np.nanmin(sizes, initial=np.inf)),
        piece=min((_shortest_piece(axis) for axis in critical.T), default=np.inf),
        non_degenerate=_nearest_other(normals, offsets, critical),
        apart=_smallest_sine(normals),
        general=float(np.abs(normals).min(initial=np.inf)),
    )


def _shortest_piece(critical: FloatArray) -> float:
    return float(np.diff(np.sort(critical[np.isfinite(critical)])).min(initial=np.inf))


def _nearest_other(normals: FloatArray, offsets: FloatArray, critical: FloatArray) -> float:
    nearest = np.inf
    for i in range(normals.shape[1]):
        meets = np.flatnonzero(np.isfinite(critical[:, i]))
        distance = np.abs(np.outer(critical[meets, i], normals[:, i]) + offsets)  # of critical point j from plane k
        distance[np.arange(len(meets)), meets] = np.inf
        nearest = min(nearest, float(distance.min(initial=np.inf)))
    return nearest


def _smallest_sine(normals: FloatArray) -> float:
    """Smallest sine of an angle between two normals; from differences, which keep the digits of small ones."""
    smallest = np.inf
    for j in range(1, len(normals)):
        ahead = np.linalg.norm(normals[:j] - normals[j], axis=1)
        behind = np.linalg.norm(normals[:j] + normals[j], axis=1)
        smallest = min(smallest, float((ahead * behind / 2).min()))
    return smallest


ORTHANT_POINTS = 2000
DEAD_SHARE = 0.5  # of the hidden values of a point that are zero, at most


@dataclass(frozen=True)
class ThreeLayerConditions:
    """How far a three-layer network is from violating each condition of Theorem 3.

    spare_inputs: d - d₁; negative ones rule a right inverse out.
    surjective: smallest singular value of the first layer's unit rows over the largest.
    width_ratio: d₂ / d₁; Lemma 4 asks for 3.5.
    zero_derivatives: share of hidden points at which some partial derivative of the top layer is zero.
    regularity: of the first layer's hyperplanes (Appendix A).
    """

    spare_inputs: int
    surjective: float
    width_ratio: float
    zero_derivatives: float
    regularity: Regularity

    @property
    def invertible(self) -> bool:
        """True if the first layer has a right inverse."""
        return self.spare_inputs >= 0 and self.surjective > 0

    @property
    def holds(self) -> bool:
        """True if no measurement contradicts the conditions of Theorem 3."""
        return self.invertible and self.zero_derivatives == 0 and self.regularity.delta > 0


def three_layer_conditions(network: ReLUNetwork, rng: Rng = 0) -> ThreeLayerConditions:
    """Diagnose a network with two hidden layers. No queries."""
    if len(network.weights) != 3:
        raise InvalidInput.about("network", got=f"widths {network.widths}", expected="two hidden layers")
    d, d1, d2, _ = network.widths
    w = network.weights[0]
    norms = np.linalg.norm(w, axis=1, keepdims=True)
    singular = np.linalg.svd(w / np.where(norms > 0, norms, 1.0), compute_uv=False)
    zero = _zero_derivatives(network, as_generator(rng).spawn(1)[0])
    full = float(singular[-1] / singular[0]) if d1 <= d else 0.0
    return ThreeLayerConditions(d - d1, full, d2 / d1, zero, regularity(network))


def _zero_derivatives(network: ReLUNetwork, rng: np.random.Generator) -> float:
    """Share of random points of the orthant, some of their values zero, with a zero partial derivative."""
    (_, v, a), (_, c, _) = network.weights, network.biases
    y: FloatArray = np.abs(rng.standard_normal((ORTHANT_POINTS, v.shape[1])))
    y[rng.random(y.shape) < DEAD_SHARE * rng.random((ORTHANT_POINTS, 1))] = 0
    active = y @ v.T + c > 0
    derivatives = np.einsum("ok,nk,kj->noj", a, active, v, optimize=True)
    return float((np.abs(derivatives).max(axis=1) == 0).any(axis=1).mean())
