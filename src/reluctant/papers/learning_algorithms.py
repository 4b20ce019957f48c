"""Algorithms of the learning paper, one function each, and its corner case (Chen, Klivans and Meka, 2021).

The paper is "Efficiently Learning Any One Hidden Layer ReLU Network From Queries". Names are those of the paper.

They are here to be read beside the paper and used on their own on small problems; the grid is the one given, not
the theorem's (`theory.theorem`), which floats cannot hold. `ask` is any function of an (n, d) array with one
output, such as `oracle.query`. A neuron (w, b) is max(⟨w, x⟩ - b, 0): b is a threshold, the negative of a bias.
Equality of real numbers becomes equality up to `tol`, the largest deviation of an answer that counts as none.

The result is right up to the grid: of neurons whose kinks on the line are less than two intervals apart, only
their sum is seen, and a bump narrower than that may be missed altogether. Also missed are kinks beyond ±τ. The
regression knows nothing of a feature that no sample activates: the error is small under the Gaussian measure, not
everywhere. The paper's constants k, R and B must hold of the target; only a k that is too small can show.

The corner case (Sections 3.2 to 3.6). What a search sees of a cluster of close neurons is the sum (v*, b*) of the
changes at all of its kinks. Where that is not small it replaces the whole cluster (Lemma 3.21, 2.). Where the
neurons cancel it is close to zero and says nothing about where they are, but then the cluster is nearly an affine
function (Lemma 3.19), as measured by the square error. Let v and v' be at an angle θ. Then max(⟨v, x⟩ - b, 0) -
max(⟨v', x⟩ - b', 0) is the affine function ⟨v - v', x⟩ - (b - b') on one side of the hyperplane and zero on the other.
Both are of size θ, so is the error of ℓ, and so is the cluster itself: ℓ is right for ε well above θ² and useless
below.

Three things differ from the print. The intercept b_L(I) is one at x₀, not at the origin, and the neuron's threshold is
its negative: Step 12 of GETNEURONS includes ⟨w, x₀⟩ and the sign. The set 𝒮 holds each neuron once, and pairs of
intervals on one linear piece, which give none, are left out. The random directions of GETGRADIENT are orthogonal:
independent ones solve the same equations with fewer digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize

from reluctant.errors import InvalidInput
from reluctant.geometry.lines import BoolArray, IntArray, Lines
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.papers import learning_theory as theory
from reluctant.papers.exact import AffineMap, Ask


def cluster_orientation(v: FloatArray) -> BoolArray:
    """Definition 3.10: which neurons (n,) of a cluster are in S₁, turned like the first; the others are in S₂."""
    return np.asarray(v @ v[0] >= 0)


def representative(v: FloatArray, b: FloatArray, s: FloatArray) -> tuple[FloatArray, float]:
    """Lemma 3.21: (v*, b*), the change of the affine map across all kinks of a cluster."""
    turned = np.where(cluster_orientation(v), s, -s)
    return turned @ v, float(turned @ b)


def corner_case(v: FloatArray, b: FloatArray, s: FloatArray, separation: float) -> AffineMap | None:
    """Lemma 3.19: the affine function ℓ close to a cluster whose v* is as small as (6) asks; None if it is not."""
    v_star, _ = representative(v, b, s)
    largest = np.linalg.norm(v, axis=1).max()
    if np.linalg.norm(v_star) > (separation * largest) ** (2 / 9):
        return None
    first = np.where(cluster_orientation(v), s, 0.0)
    return AffineMap(first @ v, -float(first @ b))


NORM_SPARE = 1e-9  # of W: how close the norm of a bounded solution comes to it


@dataclass(frozen=True)
class Grid:
    """The line from -τ to τ in intervals of length r, and the step α of a finite difference."""

    r: float
    tau: float
    alpha: float

    @classmethod
    def of(cls, constants: theory.Constants, r: float, tau: float) -> Grid:
        """With the step that Lemma 4.10 asks for with this r."""
        return cls(r, tau, float(theory.gradient_step(constants, r)))

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= self.r / 2 <= self.tau < math.inf:
            raise InvalidInput.about("grid", got=self, expected="0 < α ≤ r/2 ≤ τ")

    def __len__(self) -> int:
        """m, the number of intervals."""
        return math.ceil(2 * self.tau / self.r * (1 - 4 * unit_roundoff(np.float64)))  # 2000.0000000000002 is 2000

    @property
    def intervals(self) -> FloatArray:
        """Both ends (m, 2) of I_1, …, I_m; the last one may reach a little beyond τ."""
        ends = -self.tau + self.r * np.arange(len(self) + 1)
        return np.stack([ends[:-1], ends[1:]], axis=1)


@dataclass(frozen=True)
class NeuronList:
    """The list 𝒮: neurons max(⟨w, x⟩ - b, 0) with weights (n, d) and thresholds (n,)."""

    w: FloatArray
    b: FloatArray

    def __len__(self) -> int:
        return len(self.b)

    def __call__(self, x: FloatArray) -> FloatArray:
        """Features (rows, n)."""
        return np.maximum(x @ self.w.T - self.b, 0)


def get_bias(ask: Ask, lines: Lines, line: IntArray, intervals: FloatArray) -> FloatArray:
    """Algorithm 1, GETBIAS: b_L(I), for each interval (n, 2) on its line, the intercept at t = 0 of its linear piece.

    Right for intervals without a kink. Cost: 3 rows an interval.
    """
    a, b = intervals.T
    t_mid = (a + b) / 2
    x = lines.points(np.tile(line, 3), np.concatenate([t_mid, a, b]))
    y_0, y_a, y_b = ask(x)[:, 0].reshape(3, -1)
    s = (y_b - y_a) / (b - a)
    return np.asarray(y_0 - s * t_mid)


def get_gradient(ask: Ask, x: FloatArray, alpha: float, rng: np.random.Generator) -> FloatArray:
    """Algorithm 2, GETGRADIENT: ∇F (n, d) at points (n, d) that are at least α from every hyperplane (17).

    Cost: d + 1 rows a point.
    """
    n, d = x.shape
    z = np.linalg.qr(rng.standard_normal((d, d)))[0]  # random unit vectors, one a row
    rows = np.concatenate([x[:, None], x[:, None] + alpha * z], axis=1)
    answers = ask(rows.reshape(-1, d))[:, 0].reshape(n, d + 1)
    v = (answers[:, 1:] - answers[:, :1]) / alpha
    return np.asarray(np.linalg.solve(z, v.T).T)


def get_neurons(ask: Ask, constants: theory.Constants, grid: Grid, tol: float, rng: np.random.Generator) -> NeuronList:
    """Algorithm 3, GETNEURONS: neurons of which some combination, and an affine function, is close to F.

    Cost: d + 4 rows an interval.
    """
    lines = Lines.random(rng, 1, constants.d)  # a Gaussian line: Definition 4.1
    line, intervals = np.zeros(len(grid), dtype=np.intp), grid.intervals
    x = lines.points(line, intervals.mean(axis=1))
    gradients = get_gradient(ask, x, grid.alpha, rng)
    biases = get_bias(ask, lines, line, intervals)
    equal = _Equal.up_to(tol, grid, constants.d)
    # One interval for each (∇, b) there is: k + 1 linear pieces and k intervals with a kink, at most.
    left, pieces = np.arange(len(biases)), list[int]()
    while len(left):
        first = int(left[0])
        same = np.linalg.norm(gradients[left] - gradients[first], axis=1) <= equal.gradient
        left = left[~(same & (np.abs(biases[left] - biases[first]) <= equal.bias))]
        pieces.append(first)
        if len(pieces) > 2 * constants.k + 1:
            raise InvalidInput.about(
                "constants.k, tol", got=f"more than {2 * constants.k + 1} different intervals on the line",
                expected=f"at most that many for {constants.k} neurons",
                fix="Give a larger k, or tol above the target's noise.",
            )  # fmt: skip
    return _piece_differences(lines.origins[0], gradients[pieces], biases[pieces], equal, constants)


@dataclass(frozen=True)
class _Equal:
    """By how much gradients and biases of one linear piece differ at most."""

    gradient: float
    bias: float

    @classmethod
    def up_to(cls, tol: float, grid: Grid, d: int) -> _Equal:
        return cls(4 * tol / grid.alpha * math.sqrt(d), 2 * tol * (1 + 2 * grid.tau / grid.r))


def _piece_differences(
    x_0: FloatArray, gradients: FloatArray, biases: FloatArray, equal: _Equal, constants: theory.Constants
) -> NeuronList:
    """Steps 11 to 14: all differences that keep the bounds (14)."""
    i, j = np.nonzero(~np.eye(len(biases), dtype=bool))
    w = gradients[i] - gradients[j]
    b = w @ x_0 - (biases[i] - biases[j])
    asked = theory.theorem(constants)
    norm_limit = float(asked.weight_bound + equal.gradient)
    threshold_limit = float(asked.threshold_bound + equal.gradient * float(np.linalg.norm(x_0)) + equal.bias)
    norms = np.linalg.norm(w, axis=1)
    kept = (norms > equal.gradient) & (norms <= norm_limit) & (np.abs(b) <= threshold_limit)
    return NeuronList(w[kept], b[kept])


def learn_from_queries(
    ask: Ask, constants: theory.Constants, grid: Grid, samples: int, tol: float, rng: np.random.Generator
) -> ReLUNetwork:
    """Algorithm 4, LEARNFROMQUERIES: a network close to F, with an affine skip term.

    Cost: d + 4 rows an interval and one a sample.
    """
    unknowns = 2 * constants.k * (2 * constants.k + 1) + constants.d + 1
    if samples < unknowns:
        raise InvalidInput.about(
            "samples", got=samples, expected=f"at least {unknowns}, one for each unknown there may be"
        )
    neurons = get_neurons(ask, constants, grid, tol, rng)
    radius = theory.radius(constants)
    x = rng.standard_normal((samples, constants.d))
    while (long := np.linalg.norm(x, axis=1) > radius).any():
        x[long] = rng.standard_normal((int(long.sum()), constants.d))
    z = np.hstack([neurons(x), x, np.ones((samples, 1))])  # Definition 4.12
    largest = float(theory.norm_bound(constants, len(neurons)))
    v = bounded_least_squares(z, ask(x)[:, 0], largest)
    outputs, w, b = np.split(v, [len(neurons), len(v) - 1])
    return ReLUNetwork([neurons.w, outputs[None]], [-neurons.b, b], w[None])


def spent(constants: theory.Constants, grid: Grid, samples: int, features: int) -> dict[str, float]:
    """What `learn_from_queries` really uses, by the names of `theory.TheoremParameters`, for `theory.beside`."""
    search = len(grid) * theory.rows_per_interval(constants.d)
    return {
        "interval": grid.r, "reach": grid.tau, "step": grid.alpha, "intervals": len(grid), "search_queries": search,
        "features": features, "weight_bound": constants.k * constants.R, "threshold_bound": constants.k * constants.B,
        "radius": theory.radius(constants), "norm_bound": float(theory.norm_bound(constants, features)),
        "samples": samples, "queries": search + samples,
    }  # fmt: skip


def bounded_least_squares(z: FloatArray, y: FloatArray, largest: float) -> FloatArray:
    """(19): the v with ‖v‖ ≤ W for which z v is closest to y; the shortest where there are several."""
    u, s, vt = scipy.linalg.svd(z, full_matrices=False)
    seen = s > s[0] * max(z.shape) * unit_roundoff(z.dtype) * 2
    u, s, vt = u[:, seen], s[seen], vt[seen]
    along = u.T @ y

    def coefficients(penalty: float) -> FloatArray:
        return np.asarray(s * along / (s**2 + penalty))

    def excess(penalty: float) -> float:
        return float(np.linalg.norm(coefficients(penalty))) / largest - 1

    if excess(0.0) <= 0:
        return np.asarray(vt.T @ coefficients(0.0))
    enough = s[0] * float(np.linalg.norm(along)) / largest  # ‖s c / (s² + λ)‖ ≤ s₀ ‖c‖ / λ
    penalty = scipy.optimize.brentq(excess, 0.0, enough, xtol=NORM_SPARE * s[-1] ** 2, rtol=NORM_SPARE)
    return np.asarray(vt.T @ coefficients(penalty))
