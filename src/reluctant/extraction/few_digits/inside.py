"""A target of few digits inside a box, seen in coordinates in which the box goes from -1 to 1."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.domains import Domain
from reluctant.extraction.failures import StageFailed
from reluctant.extraction.few_digits.noise import short_line_noise
from reluctant.extraction.few_digits.view import View
from reluctant.geometry import DistanceNoise, Frame
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.verification.precision import Precision

__all__ = ["InsideView", "look_inside"]

NEAR, FAR = 0.1, 0.9  # of the way to the walls: where noise is measured
CUBE = Domain(-1.0, 1.0)
MOST_UNEVEN = 12.0  # times as much noise at the walls: float32 has five; rounded probabilities hundreds, and no scale
LONGEST = 0.98  # of the way to a wall: room for the rounding of sums


@dataclass(frozen=True)
class InsideView(View):
    """A function g(x) = f(centre + half · x) / units on the cube -1 ≤ x ≤ 1; nothing outside is asked.

    centre, half: (d,). Noise grows with the distance from the middle.
    """

    centre: FloatArray | float = 0.0
    half: FloatArray | float = 1.0

    @property
    def size(self) -> float:
        """Length of a typical input."""
        return float(np.sqrt(self.dim / 3))

    def ask(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows that were really asked, and the answers to them."""
        asked = self.centre + self.half * np.clip(rows, CUBE.low, CUBE.high)
        asked = self.oracle.facts.domain.in_single(asked)
        return (asked - self.centre) / self.half, self.oracle.query(asked) / self.units

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Inputs (n, d) all over the cube."""
        return CUBE.sample(rng, n, self.dim)

    def noise_at_use(self, rows: FloatArray) -> FloatArray:
        """Noise (n,) of answers at such inputs."""
        return self.noise.at(np.linalg.norm(rows, axis=1))

    def pulled_in(self, frame: Frame, y: FloatArray) -> FloatArray:
        """Coordinates of a frame, moved towards its origin where they would leave the cube."""
        room = CUBE.room(frame.origin, y @ frame.basis)
        return y * np.minimum(1.0, LONGEST * room)[:, None]

    def steps_inside(self, points: FloatArray, directions: FloatArray, steps: FloatArray) -> FloatArray:
        """Steps (D, n), shorter where they would leave the cube."""
        moves = steps[:, None] * directions[:, None, :]  # (D, n, d)
        return np.asarray(steps * np.minimum(1.0, LONGEST * CUBE.room(points, moves)))

    @property
    def in_single(self) -> bool:
        """Coordinates of the cube are not, in general."""
        return False

    @property
    def precision(self) -> Precision:
        """The noise of the target, in its own inputs, as a verification is told it."""
        growth = self.noise.growth * self.units / float(np.median(self.half))
        return Precision(self.noise.near * self.units, growth, self.centre)

    @property
    def farthest(self) -> float:
        """Creases outside say nothing."""
        return float(np.inf)

    def reach(self, origin: FloatArray, direction: FloatArray) -> float:
        """How far a line may go to both sides of its origin."""
        return LONGEST * float(CUBE.room(origin, np.stack([direction, -direction])).min())

    def lifted(self, network: ReLUNetwork) -> ReLUNetwork:
        """A network of the cube as one of the target's own inputs."""
        (w, a), (b, c), skip = network.weights, network.biases, network.skip
        units, w = self.units[:, None], w / self.half
        b, c = b - w @ self._centres, self.units * c
        if skip is None:
            return ReLUNetwork([w, units * a], [b, c])
        skip = units * skip / self.half
        return ReLUNetwork([w, units * a], [b, c - skip @ self._centres], skip)

    @property
    def _centres(self) -> FloatArray:
        return np.broadcast_to(np.asarray(self.centre, dtype=np.float64), (self.dim,))


def look_inside(oracle: Counting, rng: np.random.Generator) -> InsideView:
    """The view of a target whose domain is a box, with its noise measured. Cost: 384 rows."""
    low, high = (np.asarray(side, dtype=np.float64) for side in (oracle.facts.domain.low, oracle.facts.domain.high))
    centre, half = (low + high) / 2, (high - low) / 2
    nothing = DistanceNoise(0.0, 0.0)
    plain = InsideView(oracle, 1.0, np.ones(oracle.outputs), nothing, centre=centre, half=half)
    with oracle.stage("noise"):
        near, far = (short_line_noise(plain, scale, rng) for scale in (NEAR, FAR))
    uneven = float((far / near).max())
    if not uneven < MOST_UNEVEN:
        raise StageFailed("noise", "digits are lost towards the walls", number=uneven, limit=MOST_UNEVEN)
    return replace(plain, units=far / far.mean(), noise=_by_distance(near.mean(), far.mean(), FAR * plain.size))


def _by_distance(near: float, far: float, distance: float) -> DistanceNoise:
    """Noise as it is in the middle and at this distance from it."""
    return DistanceNoise(float(near), float(np.sqrt(max(far**2 - near**2, 0.0))) / distance)
