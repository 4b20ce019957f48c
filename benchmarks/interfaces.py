"""Interfaces that a network may stand behind: what becomes of its values before they are answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.oracles.links import LINK_FUNCTIONS

__all__ = ["INTERFACES", "Interface"]

NOISE = 1e-3

Answers = Callable[[FloatArray], FloatArray]
Written = Callable[[FloatArray, np.random.Generator], FloatArray]


@dataclass(frozen=True)
class Interface:
    """What becomes of values (n, m): `shown`, then written in few digits.

    one: it takes one output alone. digits: the rounding or noise, of the answers' deviation at most. other: its answers
    have a side of their own, which is not that of the values.
    """

    shown: Answers
    written: Written = lambda answers, _: answers
    digits: float = 0.0
    one: bool = False
    other: bool = False

    def side(self, values: FloatArray) -> FloatArray:
        """The class of each row, or the sign."""
        decides = self.decides(values)
        return np.asarray(decides.argmax(axis=1) if decides.shape[1] > 1 else decides[:, 0] > 0)

    def decides(self, values: FloatArray) -> FloatArray:
        """What the side is read from."""
        return self.shown(values) if self.other else values

    def asked(self, values: Answers, seed: int) -> Answers:
        """The target as it answers."""
        rng = np.random.default_rng(seed)
        return lambda rows: self.written(self.shown(values(np.asarray(rows, dtype=np.float64))), rng)


def decimals(k: int) -> Written:
    return lambda answers, _: np.round(answers, k)


def in_float32(answers: FloatArray, _: np.random.Generator) -> FloatArray:
    return answers.astype(np.float32)


def noisy(answers: FloatArray, rng: np.random.Generator) -> FloatArray:
    return answers + NOISE * rng.standard_normal(answers.shape)


def largest(k: int) -> Answers:
    def shown(values: FloatArray) -> FloatArray:
        p = softmax(values)
        return np.where(p >= np.sort(p, axis=1)[:, [-k]], p, 0.0)

    return shown


def one_hot(values: FloatArray) -> FloatArray:
    return np.eye(values.shape[1])[values.argmax(axis=1)]


def with_its_class(values: FloatArray) -> FloatArray:
    return np.column_stack([values.argmax(axis=1), softmax(values).max(axis=1)])


softmax, sigmoid, as_it_is = LINK_FUNCTIONS["softmax"], LINK_FUNCTIONS["sigmoid"], LINK_FUNCTIONS["identity"]
INTERFACES: dict[str, Interface] = {
    "values": Interface(as_it_is),
    "values, float32": Interface(as_it_is, in_float32, 1e-6),
    "values, 4 decimals": Interface(as_it_is, decimals(4), 1e-3),
    "values, 2 decimals": Interface(as_it_is, decimals(2), 1e-1),
    "values, noise": Interface(as_it_is, noisy, 1e-2),
    "one value, float32": Interface(as_it_is, in_float32, 1e-6, one=True),
    "one value, 2 decimals": Interface(as_it_is, decimals(2), 1e-1, one=True),
    "one value, whole numbers": Interface(lambda values: 10 * values, decimals(0), 1e-1, one=True),
    "softmax": Interface(softmax),
    "softmax, float32": Interface(softmax, in_float32, 1e-5),
    "softmax, 3 decimals": Interface(softmax, decimals(3), 1e-1),
    "softmax, noise": Interface(softmax, noisy, 1e-1),
    "log-softmax": Interface(LINK_FUNCTIONS["log-softmax"]),
    "sigmoid": Interface(sigmoid, one=True),
    "sigmoid, float32": Interface(sigmoid, in_float32, 1e-5, one=True),
    "sigmoid, 2 decimals": Interface(sigmoid, decimals(2), 1e-1, one=True),
    "sigmoids": Interface(sigmoid),
    "percent": Interface(lambda values: 100 * softmax(values)),
    "percent, 1 decimal": Interface(lambda values: 100 * softmax(values), decimals(1), 1e-1),
    "one percent": Interface(lambda values: 100 * sigmoid(values), one=True),
    "top-1": Interface(largest(1)),
    "top-1, float32": Interface(largest(1), in_float32, 1e-5),
    "top-1, 3 decimals": Interface(largest(1), decimals(3), 1e-1),
    "top-2": Interface(largest(2)),
    "class and its probability": Interface(with_its_class),
    "label": Interface(lambda values: values.argmax(axis=1, keepdims=True).astype(float)),
    "one-hot label": Interface(one_hot),
    "sign": Interface(lambda values: (values > 0).astype(float), one=True),
    "tanh": Interface(np.tanh),
    "largest value": Interface(lambda values: values.max(axis=1, keepdims=True), other=True),
}
