"""The last digits: all parameters fitted to some of the answers, then to those as well that this did not serve."""

from __future__ import annotations

import numpy as np

from reluctant.extraction.any_depth.rare_side import FITTED_DISTANCE
from reluctant.extraction.memory import Memory
from reluctant.extraction.polish import polish
from reluctant.geometry import DistanceNoise
from reluctant.geometry.samples import TOLERANCE
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["polish_to_all"]

ROUNDS = 4
FEW_PARAMETERS = 2000  # beyond, a thorough fit takes minutes
ADDED = 0.5  # rows for every parameter, in a round


def polish_to_all(
    network: ReLUNetwork, rows: FloatArray, answers: FloatArray, memory: Memory, noise: DistanceNoise
) -> ReLUNetwork:
    """Fit to these rows, then to the worst of all others too, as long as that helps.

    Two neurons that are hardly ever on together leave a weight to few rows; those are where the fit is worst.
    """
    every_row, every_answer = memory.near(FITTED_DISTANCE * np.sqrt(network.dim))
    sd = noise.at(np.linalg.norm(every_row, axis=1))

    def deviations(candidate: ReLUNetwork) -> FloatArray:
        return np.asarray(np.abs(candidate(every_row) - every_answer).max(axis=1) / sd)

    best, off = network, deviations(network)
    for _ in range(ROUNDS):
        polished = polish(best, rows, answers, noise, thorough=network.parameters <= FEW_PARAMETERS)
        now = deviations(polished)
        worst = np.argsort(-now)[: int(ADDED * network.parameters)]  # also of a fit that ran away: these rows hold it
        better = now.max() < off.max()
        best, off = (polished, now) if better else (best, off)
        worst = worst[now[worst] > TOLERANCE]
        if not len(worst):
            break
        rows, answers = np.concatenate([rows, every_row[worst]]), np.concatenate([answers, every_answer[worst]])
    return best
