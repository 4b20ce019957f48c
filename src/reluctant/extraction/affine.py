"""A target without creases: one affine map."""

from __future__ import annotations

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting

__all__ = ["affine_map"]


def affine_map(oracle: Counting) -> ReLUNetwork:
    """The map as a network without hidden layer. Cost: d + 1 rows."""
    with oracle.stage("affine", expected=oracle.dim + 1):
        answers = oracle.query(np.vstack([np.zeros(oracle.dim), np.eye(oracle.dim)]))
    return ReLUNetwork([(answers[1:] - answers[0]).T], [answers[0]])
