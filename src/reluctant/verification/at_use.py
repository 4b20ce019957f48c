"""At the scale of use, beyond the box in which probabilities can be read well: does a network hold there too?

Far out probabilities saturate, and a network is looked for and verified inside a box. Where typical inputs lie outside,
neurons whose creases do so too are missed, and nothing inside tells.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reluctant.domains import Domain
from reluctant.health.saturation import FARTHEST
from reluctant.networks import ReLUNetwork
from reluctant.networks.evaluation import evaluate
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles.counting import Counting
from reluctant.verification.tolerances import MOST_TOLERANCE

__all__ = ["AtUse", "look_at_use"]

POINTS = 192
FEWEST = 2  # values that have a deviation
SATURATED = 700.0  # no exponential of more is needed: it is a number in float64, and nothing is read there


@dataclass(frozen=True)
class AtUse:
    """Typical inputs whose values can be read, those of them that a network gives otherwise, and the largest error."""

    points: int
    differing: int
    largest: float

    @property
    def ok(self) -> bool:
        """True if none is known to differ."""
        return self.differing == 0

    def __str__(self) -> str:
        if self.ok:
            return f"At {self.points} typical inputs that can be read it agrees with the target."
        return (
            f"At {self.differing} of {self.points} typical inputs that can be read it does NOT agree with the target, "
            f"by up to {self.largest:.1e} of the output's deviation: neurons whose creases lie farther out are missing."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def look_at_use(
    oracle: Counting, network: ReLUNetwork, box: Domain, tol: float, rng: np.random.Generator
) -> AtUse | None:
    """Compare at random inputs of size 1, in all of space; None where they lie in the box. Cost: 192 rows.

    tol: what is accepted inside the box, where probabilities have all their digits. Next to 0 and 1 a value is known to
    so much less; where that is hardly anything, it counts as not read.
    """
    if np.max(box.high) >= FARTHEST:
        return None
    rows = Domain().sample(rng, POINTS, oracle.dim)
    with oracle.stage("verify", expected=POINTS):
        values = oracle.answer(rows)
    accepted = tol * np.exp(np.minimum(np.abs(values).max(axis=1), SATURATED))
    readable = accepted <= MOST_TOLERANCE  # NaN is not
    return _compare(values[readable], evaluate(network, rows[readable]), accepted[readable])


def _compare(values: FloatArray, predicted: FloatArray, accepted: FloatArray) -> AtUse:
    if len(values) < FEWEST:
        return AtUse(len(values), 0, 0.0)
    spread = np.maximum(values.std(axis=0), unit_roundoff(np.float64) * np.abs(values).max())
    errors = (np.abs(values - predicted) / spread).max(axis=1)
    return AtUse(len(values), int((errors > accepted).sum()), float(errors.max()))
