"""A crowded line: a network planted around it, with creases where a test wants them, and what is seen of it."""

from __future__ import annotations

import numpy as np

import reluctant as rl
from reluctant.extraction.depth_two.scaffold import Regions, grow_scaffold, neurons_on_a_line
from reluctant.geometry import DistanceNoise, FramedNetwork, Lines
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted

DIM, NEURONS = 12, 1200
LINE = 17  # seed of the line that the network is planted around


class CrowdedLine:
    """Neurons by the distance of their creases from the middle of the line; `scale` is that of the line."""

    def __init__(self) -> None:
        plain = planted((DIM, NEURONS, 1), 5, bias=0.5)
        (self.w, self.a), (self.b, self.c) = (list(map(np.array, part)) for part in (plain.weights, plain.biases))
        line = Lines.random(np.random.default_rng(LINE), 1, DIM)
        self.scale = line.scale
        self.slopes, self.at_origin = self.w @ line.directions[0], self.w @ line.origins[0]
        self.positions = -(self.at_origin + self.b) / self.slopes
        self.nearest = np.argsort(np.abs(self.positions))

    def move(self, neuron: int, position: float) -> None:
        """Put the crease of a neuron there."""
        self.b[neuron] = -self.at_origin[neuron] - self.slopes[neuron] * position

    def weaken(self, neuron: int, weight: float) -> None:
        """Give a neuron an output weight of this size."""
        self.a[:, neuron] *= weight / np.abs(self.a[:, neuron])

    def network(self) -> ReLUNetwork:
        """The network as it is now."""
        return ReLUNetwork([self.w, self.a], [self.b, self.c])


def seen_on_the_line(
    true: ReLUNetwork, sd: float, directions: int
) -> tuple[rl.Oracle, FramedNetwork, Regions, DistanceNoise]:
    """The target with noise of this size, and what its line tells in a frame of so many directions."""
    rng = np.random.default_rng(0)
    oracle = rl.open_oracle(lambda x: true(x) + sd * rng.standard_normal((len(x), 1)), dim=DIM)
    noise, drawn = DistanceNoise(3 * sd, sd), np.random.default_rng(LINE)
    on_line, regions = neurons_on_a_line(oracle, noise, drawn, lines=5)
    return oracle, grow_scaffold(oracle, on_line, regions, directions, noise, drawn), regions, noise


def true_weights(true: ReLUNetwork, known: FramedNetwork) -> np.ndarray:
    """Weights in the frame, with output weights of norm one, on where the line ends."""
    g = (true.weights[0] @ known.frame.basis.T) * np.abs(true.weights[1][0])[:, None]
    return g * np.sign(g[:, :1])
