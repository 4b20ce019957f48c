"""What no question has met: how many random points it takes to see something narrow, and what could still be there.

A bump between two parallel hyperplanes at distance w, one unit from the origin, holds the part φ(1)·w of the
Gaussian. It is seen if one random point falls into it, so the cost of not missing it grows like 1/w, and no method
can do with less (the paper's lower bound for Example 1.2 is of that kind).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

__all__ = ["Risk", "points_to_see", "remaining_risk"]

CONFIDENCE = 0.999
AT = 1.0  # distance from the origin, in deviations of an input
FAR = 3.0  # distance at which the width is stated too
TRIANGLE = 3.0  # the mean square of a triangle of height 1 is one over this


def density(distance: float) -> float:
    """Of the Gaussian along a normal, at this distance from the origin."""
    return float(np.exp(-(distance**2) / 2) / np.sqrt(2 * np.pi))


DENSITY = density(AT)


@dataclass(frozen=True)
class Risk:
    """What could have been missed: bumps narrower than `width`, or farther out than distance 1.

    added: what a single bump of this width would add to the error, if it were as steep as the steepest neuron found;
    nobody measured how steep it is. None without neurons.
    """

    width: float
    confidence: float
    points: int
    added: float | None

    def __str__(self) -> str:
        far = self.width * DENSITY / density(FAR)
        steep = "" if self.added is None else (
            f" One of that width would add {self.added:.0e} to the error if it were as steep as the steepest neuron "
            "found, which nobody measured; a steeper one adds more."
        )  # fmt: skip
        return (
            f"A bump narrower than {self.width:.1g} could have been missed: {self.points} random points would have "
            f"met a wider one, up to distance {AT:g} from the origin, with {self.confidence:.1%} confidence; at "
            f"distance {FAR:g} one wider than {far:.1g}.{steep}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def points_to_see(width: float) -> int:
    """Random points that meet a bump of this width with the stated confidence: about 29 / width."""
    return int(np.ceil(np.log(1 / (1 - CONFIDENCE)) / (DENSITY * width)))


def remaining_risk(points: int, steepness: float | None = None) -> Risk:
    """What could hide from so many points that all agree with the network.

    steepness: of its steepest neuron, over the standard deviation of the output; None if there is none.
    """
    width = float(np.log(1 / (1 - CONFIDENCE)) / (DENSITY * points))
    if steepness is None:
        return Risk(width, CONFIDENCE, points, None)
    height = steepness * width / 2
    return Risk(width, CONFIDENCE, points, DENSITY * width * height**2 / TRIANGLE)
