"""An assortment of random networks: a seed draws the shape, the weights, the biases, a twist and the digits.

Gaussian networks are in general position and easy. These have rows that repeat, mirror or nearly repeat each other,
layers of low rank, units that are never, always or hardly ever active, layers of one unit, and scales from 1e-3 to 1e3.
`true_error` is the error of a recovered network where such structure shows, beside the error allowed there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.testing.faults import in_float32, single_precision

Generator = np.random.Generator
Layers = tuple[list[FloatArray], list[FloatArray]]  # weights and biases, changed in place


def _low_rank(rng: Generator, out: int, into: int) -> FloatArray:
    rank = max(1, min(out, into) // 3)
    return rng.standard_normal((out, rank)) @ rng.standard_normal((rank, into)) / np.sqrt(rank)


def _orthogonal(rng: Generator, out: int, into: int) -> FloatArray:
    size = max(out, into)
    return np.linalg.qr(rng.standard_normal((size, size)))[0][:out, :into] * np.sqrt(size)


def _shared(rng: Generator, out: int, into: int) -> FloatArray:
    """A short filter moved along the inputs, as a convolution has it."""
    taps, found = rng.standard_normal(min(into, 3)), np.zeros((out, into))
    for row in range(out):
        found[row, (row + np.arange(len(taps))) % into] = taps * rng.choice([0.5, 1.0])
    return found * np.sqrt(into / len(taps))


WEIGHTS: dict[str, Callable[[Generator, int, int], FloatArray]] = {
    "gaussian": lambda rng, out, into: rng.standard_normal((out, into)),
    "heavy tails": lambda rng, out, into: rng.standard_t(2, size=(out, into)),
    "sparse": lambda rng, out, into: rng.standard_normal((out, into)) * (rng.random((out, into)) < 0.3) / np.sqrt(0.3),
    "uneven rows": lambda rng, out, into: (
        rng.standard_normal((out, into)) * np.exp(1.5 * rng.standard_normal((out, 1)))
    ),
    "uneven columns": lambda rng, out, into: rng.standard_normal((out, into)) * np.exp(rng.standard_normal(into)),
    "orthogonal": _orthogonal,
    "positive": lambda rng, out, into: np.abs(rng.standard_normal((out, into))),
    "low rank": _low_rank,
    "uniform": lambda rng, out, into: rng.uniform(-1, 1, (out, into)),
    "signs": lambda rng, out, into: rng.choice([-1.0, 1.0], (out, into)),
    "whole numbers": lambda rng, out, into: rng.integers(-2, 3, (out, into)).astype(float),
    "shared": _shared,
}  # each is divided by the root of the number of inputs

BIASES: dict[str, Callable[[Generator, int], FloatArray]] = {
    "small": lambda rng, width: 0.1 * rng.standard_normal(width),
    "half": lambda rng, width: 0.5 * rng.standard_normal(width),
    "zero": lambda _, width: np.zeros(width),
    "equal": lambda rng, width: np.full(width, rng.normal()),
    "spread": lambda rng, width: rng.standard_normal(width) * 10 ** rng.uniform(-2, 1.2, width),
}


def _of_pair(change: Callable[[Generator, FloatArray, FloatArray], None], layer: int) -> Callable[..., None]:
    """A change of the first two rows of a layer, if it is hidden and has two."""

    def twist(rng: Generator, layers: Layers) -> None:
        weights, biases = layers
        if layer < len(weights) - 1 and len(weights[layer]) > 1:
            change(rng, weights[layer], biases[layer])

    return twist


def _parallel(rng: Generator, w: FloatArray, b: FloatArray) -> None:
    near = 10 ** rng.uniform(-6, -1)
    w[1], b[1] = (
        w[0] + near * rng.standard_normal(w.shape[1]) / np.sqrt(w.shape[1]),
        b[0] + near * rng.standard_normal(),
    )


def _mirrored(_: Generator, w: FloatArray, b: FloatArray) -> None:
    w[1], b[1] = -w[0], -b[0]


def _duplicate(_: Generator, w: FloatArray, b: FloatArray) -> None:
    w[1], b[1] = w[0], b[0]


def _shifted(rng: Generator, w: FloatArray, b: FloatArray) -> None:
    w[1], b[1] = w[0], b[0] + rng.uniform(0.02, 1)


def _ridge(rng: Generator, layers: Layers) -> None:
    """Three units that make a ridge about 0.01 wide and as high as the output is."""
    (weights, biases), wide = layers, 0.01
    if len(weights[0]) < 3 or len(weights) > 2:
        return
    w, b = weights[0], biases[0]
    w[1] = w[2] = w[0]
    b[1], b[2] = b[0] - wide * np.linalg.norm(w[0]), b[0] - 2 * wide * np.linalg.norm(w[0])
    weights[1][:, :3] = np.outer(weights[1][:, 3:].std(axis=1) if len(w) > 4 else np.ones(len(weights[1])), [1, -2, 1])
    weights[1][:, :3] /= wide


def _weak(rng: Generator, layers: Layers) -> None:
    layers[0][1][:, 0] *= 10 ** rng.uniform(-8, -2)


def _unused_inputs(rng: Generator, layers: Layers) -> None:
    w = layers[0][0]
    if w.shape[1] > 3:
        w[:, rng.random(w.shape[1]) < 0.4] = 0


def _scaled(rng: Generator, layers: Layers) -> None:
    layers[0][0] *= 10 ** rng.uniform(-3, 3)


def _always_on(rng: Generator, layers: Layers) -> None:
    (weights, biases), layer = layers, int(rng.integers(len(layers[0]) - 1))
    some = max(1, len(biases[layer]) // 3)
    biases[layer][:some] = 3 * np.abs(weights[layer][:some]).sum(axis=1)


def _rarely_on(rng: Generator, layers: Layers) -> None:
    """Units that few inputs of the scale of use switch on."""
    (weights, biases), layer = layers, int(rng.integers(len(layers[0]) - 1))
    some = max(1, len(biases[layer]) // 3)
    biases[layer][:some] = -rng.uniform(2.5, 4) * np.linalg.norm(weights[layer][:some], axis=1)


def _dead(rng: Generator, layers: Layers) -> None:
    (weights, biases), layer = layers, int(rng.integers(len(layers[0]) - 1))
    biases[layer][0] = -1e3 * np.abs(weights[layer][0]).sum()


def _unread(rng: Generator, layers: Layers) -> None:
    """A unit that the next layer does not read."""
    layers[0][1 + int(rng.integers(len(layers[0]) - 1))][:, 0] = 0


def _trained(rng: Generator, layers: Layers) -> None:
    """A few hundred steps of Adam towards a smooth function."""
    weights, biases = layers
    inner = rng.standard_normal((6, weights[0].shape[1])) / np.sqrt(weights[0].shape[1])
    outer = rng.standard_normal((len(biases[-1]), 6))
    values = [*weights, *biases]
    first, second = ([np.zeros_like(value) for value in values] for _ in range(2))
    for step in range(1, 301):
        x = rng.standard_normal((128, inner.shape[1]))
        below = [x]
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            below.append(np.maximum(below[-1] @ w.T + b, 0))
        error = 2 * (below[-1] @ weights[-1].T + biases[-1] - (np.tanh(x @ inner.T) @ outer.T)) / len(x)
        of_weights, of_biases = [], []
        for w, inputs in zip(reversed(weights), reversed(below), strict=True):
            of_weights.append(error.T @ inputs)
            of_biases.append(error.sum(axis=0))
            error = (error @ w) * (inputs > 0)
        gradients = [*reversed(of_weights), *reversed(of_biases)]
        for value, gradient, m, v in zip(values, gradients, first, second, strict=True):
            m += 0.1 * (gradient - m)
            v += 0.001 * (gradient**2 - v)
            value -= 0.02 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)


TWISTS: dict[str, Callable[[Generator, Layers], None]] = {
    "none": lambda rng, layers: None,
    "parallel": _of_pair(_parallel, 0),
    "mirrored": _of_pair(_mirrored, 0),
    "duplicate": _of_pair(_duplicate, 0),
    "shifted": _of_pair(_shifted, 0),
    "parallel above": _of_pair(_parallel, 1),
    "mirrored above": _of_pair(_mirrored, 1),
    "ridge": _ridge,
    "weak": _weak,
    "unused inputs": _unused_inputs,
    "scaled": _scaled,
    "always on": _always_on,
    "rarely on": _rarely_on,
    "dead": _dead,
    "unread": _unread,
    "trained": _trained,
}
BOTTLENECK = "bottleneck"  # a hidden layer of one or two units: a twist of the widths
DIGITS = ("float64", "float64", "float64", "float32", "4 decimals", "6 decimals")  # of one hidden layer
POINTS = 2000
ROUNDING = 1e-12  # of the largest answer: an output that changes by less is constant


@dataclass(frozen=True)
class Specimen:
    """A network of the assortment, what it is called, and how its answers are written."""

    seed: int
    network: ReLUNetwork
    weights: str
    biases: str
    twist: str
    digits: str

    @property
    def hidden_layers(self) -> int:
        """Number of hidden layers."""
        return self.network.depth - 1

    @property
    def inputs(self) -> FloatArray:
        """Rows of the scale of use."""
        return np.random.default_rng([self.seed, 1]).standard_normal((POINTS, self.network.dim))

    @property
    def constant(self) -> bool:
        """True if no output changes at the scale of use."""
        answers = self.network(self.inputs).reshape(POINTS, -1)
        return bool((answers.std(axis=0) <= ROUNDING * np.abs(answers).max()).all())

    def truth(self) -> ReLUNetwork:
        """The network that is asked, in float64: of unit deviation where answers are rounded."""
        if self.digits == "float64":
            return self.network
        if self.digits == "float32":
            return single_precision(self.network)
        unit = float(self.network(self.inputs).std()) or 1.0
        *below, top = self.network.weights
        *below_biases, top_bias = self.network.biases
        return ReLUNetwork([*below, top / unit], [*below_biases, top_bias / unit])

    def target(self) -> Callable[[FloatArray], FloatArray]:
        """The function to ask: a bare closure."""
        true = self.truth()
        if self.digits == "float32":
            return in_float32(self.network)
        decimals = {"4 decimals": 4, "6 decimals": 6}.get(self.digits)
        if decimals is None:
            return lambda x: true(x)
        return lambda x: np.round(true(x), decimals)


def specimen(seed: int, *, hidden_layers: int | None = None, small: bool = False) -> Specimen:
    """The network of a seed. hidden_layers: 1 to 3 instead of a random number; small: a few units a layer at most."""
    rng = np.random.default_rng(seed)
    layers = int(rng.choice([1, 1, 2, 3]))
    layers = layers if hidden_layers is None else hidden_layers
    kinds = [str(rng.choice(list(names))) for names in (WEIGHTS, BIASES, ["none", *TWISTS, BOTTLENECK], DIGITS)]
    weights_kind, bias_kind, twist, digits = kinds
    ranges = {1: ((2, 64), (1, 80)), 2: ((3, 40), (2, 24), (1, 24)), 3: ((5, 30), (2, 12), (2, 12), (2, 12))}[layers]
    most = 6 if small else 80
    widths = [int(rng.integers(low, min(high, most) + 1)) for low, high in ranges]
    if twist == BOTTLENECK:
        widths[1 + int(rng.integers(layers))] = int(rng.integers(1, 3))
    widths.append(int(rng.choice([1, 1, 1, 2, 3, 5])))
    weights = [WEIGHTS[weights_kind](rng, out, into) / np.sqrt(into) for into, out in pairwise(widths)]
    biases = [BIASES[bias_kind](rng, width) for width in widths[1:]]
    if twist in TWISTS and not (twist == "trained" and layers > 2):
        TWISTS[twist](rng, (weights, biases))
    return Specimen(
        seed, ReLUNetwork(weights, biases), weights_kind, bias_kind, twist, digits if layers == 1 else "float64"
    )


SCALES = (0.1, 1.0, 3.0)
BESIDE = 0.01  # a crease, in each coordinate
FARTHEST = 10.0  # of √d: creases beyond do not count


@dataclass(frozen=True)
class TrueError:
    """The largest error of a copy at one kind of points, in deviations of the output, and the most allowed there."""

    error: float
    most: float

    @property
    def wrong(self) -> bool:
        """True if the copy is off by more."""
        return not self.error <= self.most


LEAST_ALLOWED = {"float64": 1e-6, "float32": 1e-5}  # of the deviation at these points
TIMES_OWN = {"float32": 30.0, "4 decimals": 10.0, "6 decimals": 10.0}  # of what the target is off by at these points


def true_error(copy: Callable[[FloatArray], FloatArray], drawn: Specimen, seed: int = 7) -> TrueError:
    """The error of a copy at scales 0.1, 1 and 3 and beside the creases of the first layer, where it is worst.

    A target of few digits is itself off: by some times as much, measured at the same points, a copy may be off too.
    """
    true, rng = drawn.truth(), np.random.default_rng(seed)
    target, use = drawn.target(), rng.standard_normal((POINTS, true.dim))
    answers, own_at_use = true(use), _largest_difference(target, true, use)
    size = float(np.abs(answers).max())
    spread = float(answers.std()) if answers.std() > ROUNDING * size else size  # rounding of a constant is no unit
    groups = [scale * rng.standard_normal((2 * POINTS, true.dim)) for scale in SCALES]
    normals, offsets = (np.repeat(each, 3, axis=0) for each in true.hyperplanes())
    feet = rng.standard_normal(normals.shape)
    feet -= ((feet * normals).sum(axis=1) + offsets)[:, None] * normals
    near = np.linalg.norm(feet, axis=1) < FARTHEST * np.sqrt(true.dim)  # False for a unit without a crease
    groups.append(feet[near] + BESIDE * rng.standard_normal(feet[near].shape))
    found = []
    for rows in groups:
        if len(rows):
            unit = max(float(true(rows).std()), 0.01 * spread) or 1.0
            own = max(_largest_difference(target, true, rows), own_at_use)  # of few rows all may be rounded by little
            most = max(TIMES_OWN.get(drawn.digits, 0.0) * own / unit, LEAST_ALLOWED.get(drawn.digits, 0.0))
            found.append(TrueError(_largest_difference(copy, true, rows) / unit, most))
    return max(found, key=lambda each: np.inf if each.wrong else each.error / each.most)


def _largest_difference(
    one: Callable[[FloatArray], FloatArray], other: Callable[[FloatArray], FloatArray], rows: FloatArray
) -> float:
    answers = other(rows)
    return float(np.abs(one(rows).reshape(answers.shape) - answers).max())
