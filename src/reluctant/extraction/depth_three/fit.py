"""Last digits: everything above the first weights, fitted to answers in input space."""

from __future__ import annotations

import numpy as np

from reluctant.extraction.memory import Memory
from reluctant.extraction.polish import MOST_PARAMETERS, polish
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting

__all__ = ["fit_above"]

SMALLEST, LARGEST = 0.5, 4.0  # inputs, in units of the scale of use


def fit_above(
    oracle: Counting,
    memory: Memory,
    network: ReLUNetwork,
    noise: DistanceNoise,
    rng: np.random.Generator,
    share: float,
) -> ReLUNetwork:
    """Fit biases and upper layers to all answers of the top stages and new ones at random inputs.

    The first weights are known better than any fit would tell; its biases come from single creases and are not.
    Cost: `share` rows for every m parameters that are fitted.
    """
    parameters = sum(part.size for part in (*network.weights[1:], *network.biases))
    count = int(share * parameters / oracle.outputs)
    if parameters > MOST_PARAMETERS or not count:
        return network
    scales = np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST), (count, 1)))
    with oracle.stage("fit", expected=count):
        oracle.query(scales * rng.standard_normal((count, oracle.dim)))
    return polish(network, *memory.everything(), noise, first_weights=False)
