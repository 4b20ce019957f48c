"""Algorithms of the span paper, by their names there (Jayaram, Woodruff and Zhang, ICLR 2020).

The paper is "Span Recovery for Deep Neural Networks with Applications to Input Obfuscation".

Here to be read beside the paper and compared with: `recover_span` needs neither k nor a step, and far fewer
queries. Where the paper takes steps of 2^-N for a polynomial N, these take what float64 can carry.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.span.subspace import Subspace

RANK_RULE = 1e-5  # singular values above this part of the largest count (Section 5 of the paper)
EPSILON = 1e-4  # of Lemma 3.2: a ball in which a ReLU network is linear, most of the time
EPSILON_0 = 1e-4  # of Lemma 4.2: how far above the threshold the point of a gradient lies, of its norm
TINY = 1e-2  # the paper's 2^-N: how far the directions of Algorithm 2 are from each other
BISECTIONS = 60
GRIDS, GRID = 9, 129  # scalings, each grid 128 times as fine as the one before
DRAWN, MOST_DRAWS = 64, 100

Network = Callable[[FloatArray], FloatArray]


def samples(k: int, gamma: float) -> int:
    """The number r = O(k log(k) / γ) of gradients in Algorithm 1."""
    if k < 1 or not gamma > 0:
        raise InvalidInput.about("k, gamma", got=f"{k}, {gamma}", expected="a rank of at least 1 and a number above 0")
    return int(np.ceil(k * max(1.0, np.log(k)) / gamma))


def compute_gradient(m: Network, g: FloatArray, epsilon: float = EPSILON) -> FloatArray:
    """∇M(g) by perturbation along the coordinates (Lemma 3.2). Cost: n + 1 queries."""
    values = m(np.concatenate([g[None], g + epsilon * np.eye(len(g))]))[:, 0]
    return np.asarray((values[1:] - values[0]) / epsilon)


def algorithm_1(m: Network, n: int, k: int, gamma: float = 1.0, *, rng: Rng = 0, epsilon: float = EPSILON) -> Subspace:
    """Span recovery with non-adaptive gradients: at least k/2 directions with high probability (Theorem 3.4)."""
    generator = as_generator(rng)
    z = [compute_gradient(m, generator.standard_normal(n), epsilon) for _ in range(samples(k, gamma))]
    return Subspace.spanned_by(np.array(z), tol=RANK_RULE)


def algorithm_2(m: Network, n: int, k: int, *, rng: Rng = 0) -> Subspace:
    """Span recovery with adaptive gradients, from M(x) ∈ {0, 1} alone (Theorem 4.3).

    Partial where the paper's third assumption fails: no input with M(x) = 1 is left orthogonal to the span so far.
    """
    generator = as_generator(rng)
    v = Subspace(np.empty((0, n)))
    for _ in range(MOST_DRAWS):  # one gradient each, those that line 7 draws again included
        if v.rank == k:
            break
        m_v = _projected(m, v)
        x = _just_above(m_v, n, generator)
        if x is None:
            break
        u = TINY * generator.standard_normal((n, n)) - x / np.linalg.norm(x)
        c = _crossings(m_v, x, u)
        if not np.isfinite(c).all():  # line 7: draw another point
            continue
        y = v.reject(np.linalg.lstsq(u, 1 / c, rcond=None)[0][None])
        v = Subspace.spanned_by(np.concatenate([v.basis, y / np.linalg.norm(y)]))
    return v


def _projected(m: Network, v: Subspace) -> Network:
    """M_V(x) = M((I - P_V) x)."""
    return lambda x: m(v.reject(x))


def _just_above(m_v: Network, n: int, rng: np.random.Generator) -> FloatArray | None:
    """Lines 3 and 4: a point whose value lies just above the threshold, on the ray of a Gaussian; None if none is."""
    for _ in range(MOST_DRAWS):
        drawn = rng.standard_normal((DRAWN, n))
        above = np.flatnonzero(m_v(drawn)[:, 0] == 1)
        if len(above):
            return _lowered(m_v, drawn[above[0]])
    return None


def _lowered(m_v: Network, g: FloatArray) -> FloatArray:
    """α g just above the threshold, for a scaling α between 0 and 1: a grid of scalings at a time."""
    low, high = 0.0, 1.0
    for _ in range(GRIDS):
        alphas = np.linspace(low, high, GRID)
        above = m_v(alphas[:, None] * g)[:, 0] == 1
        last = int(np.flatnonzero(~above[:-1]).max(initial=0))  # above from the next one on
        low, high = float(alphas[last]), float(alphas[last + 1])
    return np.asarray(high * (1 + EPSILON_0) * g)


def _crossings(m_v: Network, x: FloatArray, u: FloatArray) -> FloatArray:
    """Line 6: c with the threshold between x and x + c u, for every row of u at once; NaN where it is far."""
    farthest = 10 * EPSILON_0 * np.linalg.norm(x)
    low, high = np.zeros(len(u)), np.full(len(u), farthest)
    lost = m_v(x + high[:, None] * u)[:, 0] == 1
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        above = m_v(x + middle[:, None] * u)[:, 0] == 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(lost, np.nan, (low + high) / 2)
