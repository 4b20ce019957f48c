"""The subspace of few digits from lines that cross it, where one line shows too many neurons to grow from.

Two close neurons look like one on a crowded line, and growth gets stuck on them. Several lines of one small frame are
close at other places: hyperplanes that they share are the neurons, but for those that few lines show. A fit to points
all over the frame adds these.
"""

from __future__ import annotations

import numpy as np

from reluctant.extraction.few_digits.answer_store import Asked
from reluctant.extraction.few_digits.growth import KnownSubspace, questioned, random_points
from reluctant.extraction.few_digits.noisy_line import OnLine
from reluctant.extraction.few_digits.shared_hyperplanes import Hyperplane, SmallFrame
from reluctant.extraction.few_digits.subspace_fit import (
    Points,
    fit_hyperplanes,
    misfit,
    with_missing_neurons,
)
from reluctant.extraction.method import StageFailed
from reluctant.geometry import Frame
from reluctant.numerics import FloatArray

FIRST_SHARE, LEAST_SHARE = 0.6, 0.85  # hyperplanes for each kink of a line, by few lines and all: two layers have fewer
MOST_MISSING = 12  # neurons that the fit adds


def cross_subspace(line: OnLine, rng: np.random.Generator) -> KnownSubspace:
    """The network in a small frame, of about as many neurons as a line shows. Cost: about 220 rows a neuron."""
    fitted_a_neuron = 40  # answers of the lines that are fitted
    view = line.view
    asked = Asked(view, rng)
    # Through the origin: off the frame the mean of random inputs is zero, which the last fit relies on.
    small = SmallFrame(asked, line.network.widths[1], off_centre=0.0)
    planes, wanted = small.find(FIRST_SHARE), LEAST_SHARE * small.kinks_a_line
    if not planes or len(planes) < wanted:
        raise StageFailed("hyperplanes", "kinks that lines do not share", number=len(planes), limit=max(1, wanted))
    with view.oracle.stage("subspace"):
        points = _crossed_points(asked, small.frame, fitted_a_neuron * len(planes), rng)
        points += random_points(view, small.frame, len(planes), rng)
        network = fit_hyperplanes(*_normals_and_offsets(planes), points)
        if _unexplained(misfit(network, points)):
            network = with_missing_neurons(network, points, MOST_MISSING, rng)
        return questioned(view, small.frame, network, points, rng)


def _crossed_points(asked: Asked, frame: Frame, count: int, rng: np.random.Generator) -> Points:
    """Some answers on the lines and beside them."""
    y, answers, _ = asked.in_frame(frame)
    chosen = rng.permutation(len(y))[:count]
    y, answers = y[chosen], (answers * asked.unit)[chosen]
    return Points(y, answers, 1 / asked.view.noise.at(np.linalg.norm(y, axis=1)))


def _normals_and_offsets(planes: list[Hyperplane]) -> tuple[FloatArray, FloatArray]:
    return np.array([plane.normal for plane in planes]), np.array([plane.offset for plane in planes])


def _unexplained(left: FloatArray) -> bool:
    doubtful_chi, largest = 1.3, 12.0
    return bool(np.sqrt(np.mean(left**2)) > doubtful_chi or left.max() > largest)
