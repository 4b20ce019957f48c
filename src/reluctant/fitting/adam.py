"""Training of a ReLU network by mini-batches and Adam (Kingma and Ba, 2015), in single precision.

The step size follows half a wave of a cosine down to nothing. Where the time is too short for all steps the wave
is shorter, so a fit that has to stop early stops settled. With time to spare all depends on the random numbers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles.ledger import processor_time

Single: TypeAlias = NDArray[np.float32]
# Derivative (n, m) of the loss by the network's values (n, m), for targets of the same rows.
Slope: TypeAlias = Callable[[Any, Any], Any]

ADAM_TINY = 1e-8
STEPS_BETWEEN_LOOKS = 100  # steps: the first ones are slower, and must not decide


@dataclass
class TrainingPace:
    """How far a fit has come, from 0 to 1. Where the processor time is too short for all steps, there are fewer."""

    steps: int
    seconds: float | None = None
    hurried: bool = False

    def __post_init__(self) -> None:
        self.start = processor_time()

    def at(self, step: int) -> float:
        """The part that is over before this step."""
        if self.seconds is not None and step and step % STEPS_BETWEEN_LOOKS == 0:
            self.hurry(step, (processor_time() - self.start) / step)
        return step / self.steps

    def hurry(self, step: int, seconds_each: float) -> None:
        """Take fewer steps if all would last too long."""
        affordable = int((self.seconds or 0.0) / max(seconds_each, ADAM_TINY))
        if affordable < self.steps:
            self.steps, self.hurried = max(affordable, step), True


def fit_network(
    rows: FloatArray, targets: FloatArray, slope: Slope, hidden: Sequence[int], outputs: int, pace: TrainingPace,
    rng: np.random.Generator,
) -> ReLUNetwork:  # fmt: skip
    """Train a network with these hidden widths on rows (n, d), which should have mean 0 and deviation 1."""
    batch_rows = 256
    learning_rate = 1e-2  # of a step, in units of the parameter's typical gradient
    network = _Trainable((rows.shape[1], *hidden, outputs), rng)
    adam, inputs, wanted = _Adam(network.flat), rows.astype(np.float32), targets.astype(np.float32)
    step, order = 0, np.empty(0, dtype=np.intp)
    while (over := pace.at(step)) < 1:
        if len(order) < min(batch_rows, len(rows)):
            order = rng.permutation(len(rows))
        chosen, order = order[:batch_rows], order[batch_rows:]
        network.backward(inputs[chosen], wanted[chosen], slope)
        step += 1
        adam.step(network.slopes, learning_rate * (1 + np.cos(np.pi * over)) / 2, step)
    return network.as_network()


class _Trainable:
    """Weights and biases as views of one vector, and their slopes as views of another."""

    def __init__(self, widths: Sequence[int], rng: np.random.Generator) -> None:
        # Variance of first weights times the inputs of a neuron: values keep their size through a ReLU.
        weight_variance = 2.0
        size = sum(out * (into + 1) for into, out in pairwise(widths))
        self.flat, self.slopes = np.zeros(size, np.float32), np.zeros(size, np.float32)
        self.layers, self.slope_layers = _layer_views(self.flat, widths), _layer_views(self.slopes, widths)
        for weights, _ in self.layers:
            weights[:] = rng.standard_normal(weights.shape) * np.sqrt(weight_variance / weights.shape[1])

    def backward(self, rows: Single, targets: Single, slope: Slope) -> None:
        """Set the slopes to the mean derivative over these rows."""
        values = [rows]
        for k, (weights, bias) in enumerate(self.layers):
            z = values[-1] @ weights.T
            z += bias
            values.append(np.maximum(z, 0, out=z) if k < len(self.layers) - 1 else z)
        down = slope(values.pop(), targets)
        down *= np.float32(1 / len(rows))
        for (weights, _), (by_weights, by_bias), below in zip(
            self.layers[::-1], self.slope_layers[::-1], values[::-1], strict=True
        ):
            np.matmul(down.T, below, out=by_weights)
            np.sum(down, axis=0, out=by_bias)
            if below is not rows:
                down = down @ weights
                down *= below > 0

    def as_network(self) -> ReLUNetwork:
        return ReLUNetwork([weights for weights, _ in self.layers], [bias for _, bias in self.layers])


def _layer_views(flat: Single, widths: Sequence[int]) -> list[tuple[Single, Single]]:
    views, start = [], 0
    for into, out in pairwise(widths):
        end = start + out * into
        views.append((flat[start:end].reshape(out, into), flat[end : end + out]))
        start = end + out
    return views


class _Adam:
    """Steps along the mean gradient, each parameter's in units of its own root mean square (Kingma and Ba, 2015)."""

    def __init__(self, parameters: Single) -> None:
        self.parameters = parameters
        self.mean, self.square, self.room = (np.zeros_like(parameters) for _ in range(3))

    def step(self, slopes: Single, rate: Any, count: int) -> None:
        """Move the parameters; `count` begins with 1."""
        mean_memory, square_memory = 0.9, 0.999  # Adam's own: how much of the mean gradient and of its square is kept
        self.mean += np.float32(1 - mean_memory) * np.subtract(slopes, self.mean, out=self.room)
        np.multiply(slopes, slopes, out=self.room)
        self.square += np.float32(1 - square_memory) * np.subtract(self.room, self.square, out=self.room)
        np.sqrt(self.square, out=self.room)
        self.room += np.float32(ADAM_TINY)
        np.divide(self.mean, self.room, out=self.room)
        unbiased = np.sqrt(1 - square_memory**count) / (1 - mean_memory**count)
        self.parameters -= np.float32(rate * unbiased) * self.room
