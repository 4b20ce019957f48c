"""Targets that misbehave: noise, rounding, hangs, crashes and other faults around a good function."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

Target = Callable[[FloatArray], Any]


class Dying:
    """Answers until it has seen `rows` rows, then raises for `failures` calls (None: for ever)."""

    def __init__(self, function: Target, rows: int, failures: int | None = None) -> None:
        self.function, self.rows, self.failures = function, rows, failures
        self.seen = 0

    def __call__(self, x: FloatArray) -> Any:
        """Answer or raise ConnectionError."""
        if self.seen + len(x) > self.rows and self.failures != 0:
            self.failures = None if self.failures is None else self.failures - 1
            raise ConnectionError("the target has died")
        self.seen += len(x)
        return self.function(x)


def hanging(function: Target, seconds: float = 60.0) -> Target:
    """Waits before it answers."""

    def target(x: FloatArray) -> Any:
        time.sleep(seconds)
        return function(x)

    return target


def rounded(function: Target, decimals: int) -> Target:
    """Answers rounded to some decimals."""
    return lambda x: np.round(function(x), decimals)


def in_float32(network: ReLUNetwork) -> Target:
    """The network computed in single precision, inputs and all."""
    layers = list(zip(*_single_parts(network), strict=True))

    def target(x: FloatArray) -> Any:
        hidden = np.asarray(x, dtype=np.float32)
        for w, b in layers[:-1]:
            hidden = np.maximum(hidden @ w.T + b, 0)
        w, b = layers[-1]
        return hidden @ w.T + b

    return target


def single_precision(network: ReLUNetwork) -> ReLUNetwork:
    """The network whose weights are those that float32 can hold: what `in_float32` is the rounding of."""
    weights, biases = _single_parts(network)
    return ReLUNetwork(weights, biases, link=network.link)


def _single_parts(network: ReLUNetwork) -> Iterator[list[NDArray[np.float32]]]:
    """Weights, then biases."""
    return ([part.astype(np.float32) for part in parts] for parts in (network.weights, network.biases))


def noisy(function: Target, sd: float, rng: int = 0) -> Target:
    """Answers with fresh Gaussian noise."""
    generator = np.random.default_rng(rng)

    def target(x: FloatArray) -> Any:
        answers = np.asarray(function(x))
        return answers + sd * generator.standard_normal(answers.shape)

    return target


def _changing_shape(function: Target) -> Target:
    calls = 0

    def target(x: FloatArray) -> Any:
        nonlocal calls
        calls += 1
        answers = np.asarray(function(x)).reshape(len(x), -1)
        return answers if calls < 2 else np.repeat(answers, 2, axis=1)

    return target


def _raising(_: Target) -> Target:
    def target(x: FloatArray) -> Any:
        raise RuntimeError("no answer today")

    return target


# Each one answers wrongly at the latest in its second call.
FAULTS: dict[str, Callable[[Target], Target]] = {
    "changes its output shape": _changing_shape,
    "raises": _raising,
    "answers NaN": lambda f: lambda x: np.asarray(f(x)) * np.nan,
    "answers inf": lambda f: lambda x: np.asarray(f(x)) + np.inf,
    "answers strings": lambda f: lambda x: np.array(["cat"] * len(x)),
    "answers None": lambda f: lambda x: None,
    "answers complex numbers": lambda f: lambda x: np.asarray(f(x)) * 1j,
    "answers fewer rows": lambda f: lambda x: np.asarray(f(x))[: len(x) // 2],
    "answers one number": lambda f: lambda x: 1.0,
    "answers ragged lists": lambda f: lambda x: [[1.0] * (i % 2 + 1) for i in range(max(len(x), 2))],
}
