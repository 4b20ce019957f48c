"""The coordinates of the search: all inputs, the directions that matter, or a subspace that shows a known first layer.

Where the hyperplanes of the first layer are known in a random subspace, as many coordinates as it has neurons show
every combination of its values. The layers above are found there, in units in which inputs are as large as elsewhere.
The weights in all of input space follow at the end from gradients, which are known combinations of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.output_layer import refine_first_weights, spanning_points
from reluctant.extraction.method import OrientedHyperplanes, StageFailed
from reluctant.geometry import DistanceNoise, Frame, Question, gradients
from reluctant.geometry.lines import whole_space
from reluctant.geometry.row_space import row_space
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting


@dataclass(frozen=True)
class SearchSpace:
    """Inputs frame.points(unit y) at coordinates y; `first`: hyperplanes (n, k), (n,) of the first layer, if known."""

    frame: Frame
    unit: float = 1.0
    first: tuple[FloatArray, FloatArray] | None = None

    @classmethod
    def of(cls, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, many_inputs: int) -> SearchSpace:
        """The directions that matter, where inputs are many; else all."""
        if oracle.dim < many_inputs:
            return cls(whole_space(oracle.dim))
        with oracle.stage("row space"):
            return cls(row_space(Question.of(oracle), oracle.dim, noise, rng).frame)

    @classmethod
    def around(cls, first: OrientedHyperplanes, dim: int) -> SearchSpace:
        """The directions in which the values of a known first layer change."""
        basis = np.linalg.svd(first.normals, full_matrices=False)[2]
        origin = first.frame.origin
        frame = Frame(origin, basis @ first.frame.basis)
        unit = float(np.sqrt(dim / len(basis)))
        rows = unit * first.normals @ basis.T
        size = np.linalg.norm(rows, axis=1)
        return cls(frame, unit, (rows / size[:, None], first.offsets / size))

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.frame.basis)

    @property
    def scale(self) -> float:
        """Typical size of coordinates."""
        return float(np.sqrt(self.dim))

    def points(self, y: FloatArray) -> FloatArray:
        """Inputs (n, d) at coordinates (n, k)."""
        return self.frame.points(self.unit * y)

    def coordinates(self, rows: FloatArray) -> FloatArray:
        """Coordinates (n, k) of inputs (n, d), or of those nearest to them in this space."""
        return np.asarray((rows - self.frame.origin) @ self.frame.basis.T / self.unit)

    def noise(self, noise: DistanceNoise) -> DistanceNoise:
        """Noise of an answer by the size of its coordinates."""
        origin = float(noise.at(np.array([np.linalg.norm(self.frame.origin)]))[0])
        return DistanceNoise(origin, noise.growth * self.unit) if self.first is not None else noise

    def lifted(self, network: ReLUNetwork) -> ReLUNetwork:
        """A network of the coordinates as a function of the input; what it ignores is not known."""
        return self.frame.lifted(network.with_inputs(lambda w: (w / self.unit, np.zeros(len(w)))))

    def whole(
        self, oracle: Counting, network: ReLUNetwork, noise: DistanceNoise, rng: np.random.Generator
    ) -> ReLUNetwork:
        """A network of the coordinates as one of all inputs, first weights measured where the search knew less."""
        if self.dim == oracle.dim or network.skips:
            return self.lifted(network)
        if self.first is None:
            return refine_first_weights(oracle, self.lifted(network), noise, rng)
        return self.with_first_weights(oracle, network, noise, rng)

    def with_first_weights(
        self, oracle: Counting, network: ReLUNetwork, noise: DistanceNoise, rng: np.random.Generator
    ) -> ReLUNetwork:
        """First weights in all of input space. Cost: about 1.25 (d + 2) rows a neuron, less with several outputs."""
        step, agreement = 0.4, 1e-5  # of the room up to a crease of the network; relative error of the rows
        chosen, combinations, room = spanning_points(network, rng)
        points = self.points(chosen)
        with oracle.stage("first weights", expected=len(points) * (oracle.dim + 2)):
            found = gradients(Question.of(oracle), points, None, step * self.unit * room, noise, rng)
        trust = found.step[found.good, None, None]  # a slope over a long step has more digits
        left = (trust * combinations[found.good]).reshape(-1, network.widths[1])
        right = (trust * found.slope[found.good]).reshape(len(left), oracle.dim)
        rows = np.linalg.lstsq(left, right, rcond=None)[0]
        off = float(np.linalg.norm(left @ rows - right) / max(np.linalg.norm(right), np.finfo(float).tiny))
        if np.linalg.matrix_rank(left) < left.shape[1] or not off < agreement:
            raise StageFailed("first weights", "gradients do not show all neurons", number=off, limit=agreement)
        biases = network.biases[0] - rows @ self.frame.origin
        return ReLUNetwork([rows, *network.weights[1:]], [biases, *network.biases[1:]])
