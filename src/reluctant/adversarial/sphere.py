"""Deep random networks are nearly constant: angles between images shrink layer by layer (Section 3).

Lemma 3.2: a wide random layer takes an angle θ to the one whose cosine is sin θ / π + (1 - θ/π) cos θ. Theorem 3.1:
at depth d³ and more the values on the whole sphere differ by √(log d / d) of themselves at most, for widths that
no machine holds, (ℓ d)^20; real widths set a floor of about 3/√width instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist

from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator

__all__ = [
    "OutputSpread",
    "angle_recursion",
    "layer_angles",
    "mean_angle",
    "next_angle",
    "output_spread",
    "sphere_points",
]


SMALL_ANGLE = 1e-4  # below it the cosine of an angle has fewer digits than the first terms of its series


def next_angle(angle: FloatArray | float) -> FloatArray:
    """Lemma 3.2: the angle between the images of two inputs this angle apart, in an infinitely wide random layer."""
    theta = np.asarray(angle, dtype=np.float64)
    cosine = np.sin(theta) / np.pi + (1 - theta / np.pi) * np.cos(theta)
    # 1 - cos θ' ≈ θ²/2 - θ³/(3π) for small angles, where the cosine itself has no digits left
    small = np.sqrt(np.maximum(theta**2 - 2 * theta**3 / (3 * np.pi), 0.0))
    return np.where(theta < SMALL_ANGLE, small, np.arccos(np.clip(cosine, -1, 1)))


def angle_recursion(angle: float, layers: int) -> FloatArray:
    """The angle (layers + 1,) before and after each of so many wide layers."""
    if layers < 0 or not 0 <= angle <= np.pi:
        raise InvalidInput.about("angle, layers", got=(angle, layers), expected="an angle from 0 to π, layers from 0")
    angles = [np.asarray(angle, float)]
    for _ in range(layers):
        angles.append(next_angle(angles[-1]))
    return np.array(angles)


def sphere_points(n: int, dim: int, rng: Rng = 0) -> FloatArray:
    """Points (n, dim), uniform on the unit sphere."""
    points = as_generator(rng).standard_normal((n, dim))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def layer_angles(network: ReLUNetwork, points: FloatArray) -> FloatArray:
    """Mean angle (hidden layers + 1,) between pairs of points and of their images, layer by layer."""
    images = [points, *(np.maximum(values, 0) for values in network.preactivations(points))]
    return np.array([mean_angle(image) for image in images])


def mean_angle(points: FloatArray) -> float:
    """Mean angle between pairs of points; those at the origin are left out."""
    norms = np.linalg.norm(points, axis=1)
    units = points[norms > 0] / norms[norms > 0, None]
    # from the chord, which keeps its digits for small angles where the cosine does not
    chords = pdist(units) if len(units) > 1 else np.zeros(1)
    return float((2 * np.arcsin(np.minimum(chords / 2, 1.0))).mean())


@dataclass(frozen=True)
class OutputSpread:
    """Theorem 3.1's ratio on a sample of the sphere.

    ratio: largest |f(x) - f(y)| / |f(x)| over pairs. one_sign: whether all values have the same sign.
    bound: √(log d / d), what the theorem says up to a constant for widths (ℓ d)^20.
    """

    ratio: float
    one_sign: bool
    bound: float


def output_spread(network: ReLUNetwork, points: FloatArray) -> OutputSpread:
    """How far a network with one output is from constant on these points."""
    if network.outputs != 1:
        raise InvalidInput.about("network", got=f"{network.outputs} outputs", expected="one")
    values = network(points)[:, 0]
    farthest = np.maximum(values - values.min(), values.max() - values)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(np.where(farthest > 0, farthest / np.abs(values), 0.0).max())
    one_sign = bool((values > 0).all() or (values < 0).all())
    d = network.dim
    return OutputSpread(ratio, one_sign, float(np.sqrt(np.log(d) / d)) if d > 1 else float("nan"))
