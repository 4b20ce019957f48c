"""δ-regularity (Appendix A of the extraction paper) as a diagnosis of a found arrangement of hyperplanes.

A network is δ-regular if each of the numbers below is at least δ; the paper's algorithms work in time and
queries that grow with log(1/δ). The weakest one says which condition a network comes close to violating.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Regularity", "regularity"]


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
    """Diagnose the first-layer hyperplanes of a network. No queries; d·h² numbers are looked at."""
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
