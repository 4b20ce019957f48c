"""What is said of a network of any depth beside its verification: errors of its neurons, and what could hide."""

from __future__ import annotations

import numpy as np

from reluctant.extraction.any_depth.asker import Asker
from reluctant.extraction.any_depth.check_points import DISTANCES
from reluctant.extraction.any_depth.known import Known
from reluctant.extraction.any_depth.last_digits import FEW_PARAMETERS
from reluctant.extraction.certificate import Certificate
from reluctant.extraction.polish import neuron_errors
from reluctant.geometry.creases import SMALLEST_BEND
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["certify"]


def certify(network: ReLUNetwork, known: Known, rows: FloatArray, asker: Asker) -> Certificate | None:
    """The certificate of a network that was fitted to these rows; None where that would take minutes.

    Neurons that stand for sums, or carry others on, come last in their layer and are counted apart.
    """
    if network.parameters > FEW_PARAMETERS:
        return None
    own = [np.arange(width) < len(layer) for width, layer in zip(network.widths[1:-1], known.layers, strict=True)]
    seen = np.concatenate(own)
    piece = asker.spacing * asker.scale
    resolution = SMALLEST_BEND * float(asker.noise.at(np.array([asker.scale]))[0]) / piece
    errors = neuron_errors(network, rows, asker.noise)
    return Certificate(errors[seen], resolution, DISTANCES[-1] * asker.scale, sums=int((~seen).sum()))
