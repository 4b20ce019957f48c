"""Where to look inside a domain: points for exploring it, and how far a ray may go."""

from __future__ import annotations

import numpy as np

from reluctant.domains import Domain
from reluctant.numerics import FloatArray

__all__ = ["axis_points", "domain_scale", "end_of_ray", "exploration_points", "far_corners"]

TAILS = (1.0, 2.0, 4.0)  # powers of a Gaussian: from even coordinates to a few large ones
LOUDNESS = (0.2, 5.0)  # sizes of points where a coordinate is unbounded
FARTHEST = 50.0  # typical inputs, where nothing stops a ray
AXIS_DISTANCES = (1.0, 300.0)


def domain_scale(domain: Domain, dim: int) -> float:
    """Typical length in the domain."""
    low, high = np.broadcast_to(domain.low, dim), np.broadcast_to(domain.high, dim)
    bounded = np.isfinite(low) & np.isfinite(high)
    width = np.where(bounded, np.where(bounded, high, 1) - np.where(bounded, low, 0), 2.0)
    return float(np.linalg.norm(width) / 2)


def exploration_points(domain: Domain, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    """Random points from the middle of the domain to its corners, even and uneven ones."""
    low, high = np.broadcast_to(domain.low, dim), np.broadcast_to(domain.high, dim)
    bounded = np.isfinite(low) & np.isfinite(high)
    share = _shares(rng, n, dim)
    quietest, loudest = np.log(LOUDNESS)
    loud = np.exp(rng.uniform(quietest, loudest, (n, 1)))
    tails = np.abs(rng.standard_normal((n, dim))) ** rng.choice(TAILS, (n, 1))
    away = loud * tails / tails.mean(axis=1, keepdims=True)
    signs = rng.choice([-1.0, 1.0], (n, dim))
    with np.errstate(invalid="ignore"):  # infinite bounds are not chosen
        choices = [low + share * (high - low), low + away, high - away]
    points = np.select([bounded, np.isfinite(low), np.isfinite(high)], choices, signs * away)
    return np.clip(points, low, high)


def _shares(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    """Of the way from one wall to the other: inside, or in a corner with more or fewer coordinates high."""
    inside = rng.uniform(size=(n, dim))
    corner = (rng.uniform(size=(n, dim)) < rng.uniform(size=(n, 1))).astype(float)
    return np.where(rng.uniform(size=(n, 1)) < 1 / 2, inside, corner)


def axis_points(domain: Domain, dim: int) -> FloatArray:
    """Points on the edges that leave the corner of an orthant: every hyperplane in it crosses one.

    None in a box, which has too many edges.
    """
    if domain.is_box:
        return np.empty((0, dim))
    low, high = np.broadcast_to(domain.low, dim), np.broadcast_to(domain.high, dim)
    corner = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
    inward = np.where(np.isfinite(low) | ~np.isfinite(high), 1.0, -1.0)
    axes = [corner + distance * np.diag(inward) for distance in AXIS_DISTANCES]
    return np.clip(np.concatenate([corner[None], *axes]), low, high)


def far_corners(domain: Domain, directions: FloatArray) -> FloatArray:
    """The corners of a box farthest along these directions and against them."""
    dim = directions.shape[1]
    if not domain.is_box:
        return np.empty((0, dim))
    low, high = np.broadcast_to(domain.low, dim), np.broadcast_to(domain.high, dim)
    return np.concatenate([np.where(directions > 0, high, low), np.where(directions > 0, low, high)])


def end_of_ray(domain: Domain, start: FloatArray, through: FloatArray, scale: float) -> FloatArray:
    """Where the ray through a point leaves the domain, or a good way out where it does not."""
    low, high = np.broadcast_to(domain.low, start.shape), np.broadcast_to(domain.high, start.shape)
    step = through - start
    length = float(np.linalg.norm(step))
    moving = step != 0
    room = np.where(step > 0, high - start, low - start)[moving] / step[moving]
    reach = min(float(room.min()), max(1.0, FARTHEST * scale / length))
    return np.asarray(np.clip(start + reach * step, low, high))
