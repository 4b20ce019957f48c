"""A network of several hidden layers with a term past the last one, and the Gauss–Newton fit of all its parameters.

    f(y) = A h + S g + e,    h = max(V g + c, 0),    g = … max(W y + b, 0) …

Steps come from conjugate gradients on products with the Jacobian, which is never formed. Their preconditioner is the
Cholesky factor of JᵀJ over some of the answers; of many parameters, that of a Kronecker product for W and of the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from reluctant.fitting.least_squares import Damping, Linearisation, StepRules, least_squares
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

Singles: TypeAlias = NDArray[np.float32]
Layer: TypeAlias = tuple[FloatArray, FloatArray]  # weights and biases

MOST_DENSE = 4200  # parameters up to which JᵀJ is factored as a whole
ROWS_AT_ONCE = 4000  # of the Jacobian


@dataclass(frozen=True)
class Layers:
    """First hidden layer W (h, k), b (h,); last one V, c; outputs A (m, ·), e (m,); S or None; and layers `between`."""

    w: FloatArray
    b: FloatArray
    v: FloatArray
    c: FloatArray
    a: FloatArray
    e: FloatArray
    s: FloatArray | None = None
    between: tuple[Layer, ...] = field(default=(), kw_only=True)

    @classmethod
    def of(cls, hidden: list[Layer], a: FloatArray, e: FloatArray, s: FloatArray | None = None) -> Layers:
        """With these hidden layers, in order."""
        return cls(*hidden[0], *hidden[-1], a, e, s, between=tuple(hidden[1:-1]))

    @classmethod
    def of_network(cls, network: ReLUNetwork) -> Layers:
        """Without a term past the last layer."""
        *hidden, (a, e) = zip(network.weights, network.biases, strict=True)
        return cls.of(hidden, a, e)

    @property
    def hidden(self) -> list[Layer]:
        """All hidden layers, in order."""
        return [(self.w, self.b), *self.between, (self.v, self.c)]

    @property
    def parts(self) -> list[FloatArray]:
        """All parameters, by array."""
        past = [] if self.s is None else [self.s]
        return [*(part for layer in self.hidden for part in layer), self.a, self.e, *past]

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return sum(part.size for part in self.parts)

    @property
    def outputs(self) -> int:
        """Number of outputs m."""
        return len(self.e)

    def __call__(self, y: FloatArray) -> FloatArray:
        """Values (n, m) at y (n, k)."""
        return self.answers(self.states(y))

    def answers(self, states: list[FloatArray]) -> FloatArray:
        """Values (..., m) where the layers have these before their ReLUs."""
        before, last = (np.maximum(z, 0) for z in states[-2:])
        f = last @ self.a.T + self.e
        return np.asarray(f if self.s is None else f + before @ self.s.T)

    def with_parts(self, parts: list[FloatArray]) -> Layers:
        """With these arrays in place of its own."""
        hidden = list(zip(parts[0::2], parts[1::2], strict=False))[: len(self.hidden)]
        a, e, *past = parts[2 * len(hidden) :]
        return Layers.of(hidden, a, e, past[0] if past else None)

    def shaped(self, step: FloatArray) -> Layers:
        """A flat array of parameters in these shapes."""
        parts, start = [], 0
        for part in self.parts:
            parts.append(step[start : start + part.size].reshape(part.shape))
            start += part.size
        return self.with_parts(parts)

    def moved(self, step: FloatArray) -> Layers:
        """After a step of all parameters."""
        return self.with_parts([a + b for a, b in zip(self.parts, self.shaped(step).parts, strict=True)])

    def balanced(self) -> Layers:
        """The same function with weights into each neuron as large as those out of it."""
        weights, biases = [list(parts) for parts in zip(*self.hidden, strict=True)]
        weights.append(self.a)
        s, below = self.s, len(self.between)
        for i in range(len(biases)):
            squares = (weights[i + 1] ** 2).sum(axis=0) + (0 if s is None or i != below else (s**2).sum(axis=0))
            times = _balance(np.linalg.norm(weights[i], axis=1), np.sqrt(squares))
            weights[i], biases[i] = weights[i] * times[:, None], biases[i] * times
            weights[i + 1] = weights[i + 1] / times
            s = s if s is None or i != below else s / times
        return Layers.of(list(zip(weights[:-1], biases, strict=True)), weights[-1], self.e, s)

    def states(self, y: FloatArray) -> list[FloatArray]:
        """Values (n, h) before the ReLUs of each hidden layer."""
        return self.states_above(y @ self.w.T + self.b)

    def states_above(self, z: FloatArray) -> list[FloatArray]:
        """The same where the first layer has these (..., h)."""
        found = [z]
        for w, b in self.hidden[1:]:
            found.append(np.maximum(found[-1], 0) @ w.T + b)
        return found

    def with_first(self, w: FloatArray, b: float, column: FloatArray) -> Layers:
        """With one more neuron w (k,), b of the first layer, and these weights (h,) into the second."""
        _, (v, c), *rest = self.hidden
        first = np.concatenate([self.w, w[None]]), np.append(self.b, b)
        s = self.s if self.s is None or self.between else np.column_stack([self.s, np.zeros(self.outputs)])
        return Layers.of([first, (np.column_stack([v, column]), c), *rest], self.a, self.e, s)

    def sensitivities(self, states: list[FloatArray], layer: int = 0) -> FloatArray:
        """Derivatives (n, m, h) of the outputs by the values of a hidden layer, where all layers have these."""
        out = self.a[None] * (states[-1] > 0)[:, None, :]
        weights = [w for w, _ in self.hidden]
        for i in reversed(range(layer, len(weights) - 1)):
            out = out @ weights[i + 1]
            if i == len(weights) - 2 and self.s is not None:
                out = out + self.s
            out = out * (states[i] > 0)[:, None, :]
        return np.asarray(out)

    def slopes(self, y: FloatArray, layer: int) -> FloatArray:
        """Derivatives (h, k) of the values after the ReLUs of a hidden layer, at one point y (k,)."""
        z = y @ self.w.T + self.b
        found = self.w * (z > 0)[:, None]
        for w, b in self.hidden[1 : layer + 1]:
            z = np.maximum(z, 0) @ w.T + b
            found = (w @ found) * (z > 0)[:, None]
        return np.asarray(found)

    def network(self) -> ReLUNetwork:
        """As a network; the term past the last hidden layer becomes neurons that are always on."""
        below = self.hidden[:-1]
        v, c, a = self.v, self.c, self.a
        if self.s is not None:
            h = v.shape[1]
            v, c, a = np.concatenate([v, np.eye(h)]), np.concatenate([c, np.zeros(h)]), np.column_stack([a, self.s])
        return ReLUNetwork([*(w for w, _ in below), v, a], [*(b for _, b in below), c, self.e])


def _balance(into: FloatArray, out: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.maximum(out, 1e-12 * out.max(initial=1e-300)) / np.maximum(into, 1e-300)))


@dataclass(frozen=True)
class Weighed:
    """Answers to be fitted: coordinates (n, k), answers (n, m), deviations (n, m) of their noise."""

    y: FloatArray
    f: FloatArray
    sd: FloatArray

    def __len__(self) -> int:
        return len(self.y)

    def chosen(self, which: NDArray[np.intp]) -> Weighed:
        """These only."""
        return Weighed(self.y[which], self.f[which], self.sd[which])

    def left_by(self, network: Layers) -> FloatArray:
        """What a network leaves (n, m), in deviations."""
        return (network(self.y) - self.f) / self.sd


def fit_layers(
    network: Layers,
    answers: Weighed,
    rng: np.random.Generator,
    *,
    huber: float,
    steps: int,
    damping: float,
    enough: float = 0.0,
    gain: float = 4e-3,
    span: FloatArray | None = None,
) -> Layers:
    """Damped Gauss–Newton on all parameters; answers beyond `huber` deviations pull no harder than at it.

    enough: root mean square, in deviations, from which on no more steps are needed. gain: of the sum of squares; a step
    that gains less is the last. span: orthonormal rows of a space that many inputs lie in, where there are many others.
    """

    def is_enough(before: float, after: float) -> bool:
        return after < enough**2 or after > (1 - gain) * before

    nothing = np.zeros((0, network.w.shape[1]))
    fit = _Fit(answers, rng, huber, nothing if span is None else span)
    rules = StepRules(steps, Damping(damping, least=1e-9, refused=1e-8, singular=1e-8), enough=is_enough)
    return least_squares(network.balanced(), fit.linearise, rules).state


class _Fit:
    """The answers of a fit, and the preconditioner that steps share until one needs many iterations."""

    def __init__(self, answers: Weighed, rng: np.random.Generator, huber: float, span: FloatArray) -> None:
        self.answers, self.rng, self.huber, self.span = answers, rng, huber, span
        self.preconditioner: _Preconditioner | None = None
        self.last_size = np.inf

    def size(self, residual: FloatArray) -> float:
        sizes = np.abs(residual)
        return float(np.where(sizes < self.huber, sizes**2, self.huber * (2 * sizes - self.huber)).mean())

    def linearise(self, network: Layers) -> Linearisation[Layers, FloatArray]:
        much_better = 0.1  # of the sum of squares before: then states have changed, and the factors with them
        residual = self.answers.left_by(network)
        size = self.size(residual)
        shares = np.sqrt(np.minimum(1.0, self.huber / np.maximum(np.abs(residual), 1e-300)))
        jacobian = _Jacobian(network, self.answers.y, shares / self.answers.sd)
        gradient = jacobian.back(residual * shares)
        if size < much_better * self.last_size:
            self.preconditioner = None
        self.last_size = size

        def solve(damping: float) -> FloatArray:
            if self.preconditioner is None:
                self.preconditioner = _preconditioner(
                    network, self.answers.y, jacobian.weight, damping, self.span, self.rng
                )
            return self._conjugate_gradients(jacobian, -gradient, damping, self.preconditioner)

        def move(step: FloatArray) -> tuple[Layers, float]:
            after = network.moved(step).balanced()
            return after, self.size(self.answers.left_by(after))

        return Linearisation(network, size, solve, move)

    def _conjugate_gradients(
        self, jacobian: _Jacobian, right: FloatArray, damping: float, preconditioner: _Preconditioner
    ) -> FloatArray:
        enough, too_many = 1e-5, 15
        certain = (
            0.01 * jacobian.network.parameters
        )  # squares that are left to gain: noise itself leaves a hundred times
        few = jacobian.network.parameters <= MOST_DENSE or jacobian.network.outputs == 1
        most = 40 if few else 120  # blocks leave more to them
        ridge = damping * preconditioner.scale**2
        x, left = np.zeros_like(right), right.copy()
        solved = preconditioner.solve(left)
        direction, square = solved.copy(), float(left @ solved)
        first = square
        count = 0
        while count < most:
            product = jacobian.back(jacobian.forward(direction)) + ridge * direction
            length = square / float(direction @ product)
            x += length * direction
            left -= length * product
            solved = preconditioner.solve(left)
            square, before, count = float(left @ solved), square, count + 1
            if not square >= max(enough * first, certain):
                break
            direction = solved + square / before * direction
        if count > too_many:
            self.preconditioner = None
        return x


class _Jacobian:
    """Products with the weighted Jacobian; in single precision for many parameters, where steps need no more."""

    def __init__(self, network: Layers, y: FloatArray, weight: FloatArray) -> None:
        self.dtype: type = np.float32 if network.parameters > MOST_DENSE else np.float64
        self.network, self.weight = network, weight
        self.hidden = [(self._typed(w), self._typed(b)) for w, b in network.hidden]
        self.a = self._typed(network.a)
        self.s = None if network.s is None else self._typed(network.s)
        self.typed_weight = self._typed(weight)
        self.values, self.on = [self._typed(y)], []  # inputs, then after the ReLUs of each layer; states
        for w, b in self.hidden:
            z = self.values[-1] @ w.T + b
            self.on.append(z > 0)
            self.values.append(np.maximum(z, 0))

    def _typed(self, values: FloatArray) -> FloatArray:
        return np.asarray(values, dtype=self.dtype)  # of whatever precision: steps need no more

    def forward(self, step: FloatArray) -> FloatArray:
        """Change (n, m) of the weighted answers by a step."""
        change = self.network.shaped(self._typed(step))
        moved: list[FloatArray] = []
        for i, (w, b) in enumerate(change.hidden):
            z = self.values[i] @ w.T + b
            moved.append((z + moved[-1] @ self.hidden[i][0].T if moved else z) * self.on[i])
        f = self.values[-1] @ change.a.T + change.e + moved[-1] @ self.a.T
        if self.s is not None and change.s is not None:
            f += self.values[-2] @ change.s.T + moved[-2] @ self.s.T
        return np.asarray(f * self.typed_weight)

    def back(self, residual: FloatArray) -> FloatArray:
        """The transposed Jacobian times weighted residuals (n, m)."""
        r = self._typed(residual * self.typed_weight)
        by = [(r @ self.a) * self.on[-1]]  # from the last layer to the first
        for i in reversed(range(len(self.hidden) - 1)):
            below = by[-1] @ self.hidden[i + 1][0]
            if len(by) == 1 and self.s is not None:
                below += r @ self.s
            below *= self.on[i]
            by.append(below)
        parts = []
        for each, values in zip(reversed(by), self.values[:-1], strict=True):
            parts += [each.T @ values, each.sum(axis=0)]
        parts += [r.T @ self.values[-1], r.sum(axis=0)] + ([] if self.s is None else [r.T @ self.values[-2]])
        return np.concatenate([part.ravel() for part in parts]).astype(np.float64)


@dataclass(frozen=True)
class _Preconditioner:
    """An approximate solution of JᵀJ x = r, and roots of the diagonal of JᵀJ."""

    solve: Callable[[FloatArray], FloatArray]
    scale: FloatArray


def _preconditioner(
    network: Layers, y: FloatArray, weight: FloatArray, damping: float, span: FloatArray, rng: np.random.Generator
) -> _Preconditioner:
    least_damping, whole = 3e-6, network.parameters <= MOST_DENSE
    dense = network.parameters - (0 if whole else (network.w.shape[1] - len(span)) * len(network.b))
    wanted = _rows_wanted(dense)
    n = min(len(y), wanted)
    some = rng.permutation(len(y))[:n]
    # A few random sums of the outputs for each input: of as many rows, those of all inputs tell the most.
    sums = min(network.outputs, -(-wanted // n)) if whole else 1
    signs = rng.choice([-1.0, 1.0], (n, sums, network.outputs)) / np.sqrt(sums)
    if sums == network.outputs:
        signs = np.broadcast_to(np.eye(sums), signs.shape)
    times, damping = len(y) / n, max(damping, least_damping)
    if not whole:
        parts = _derivatives(network, y[some], weight[some], signs)
        return _by_blocks(network, y[some], parts, times, damping, span)
    normal = np.zeros((network.parameters, network.parameters))
    for chunk in np.array_split(np.arange(n), max(1, n * sums // ROWS_AT_ONCE)):
        rows = some[chunk]
        parts = _derivatives(network, y[rows], weight[rows], signs[chunk])
        normal += times * _gram(np.concatenate(parts.columns(y[rows]), axis=1))
    return _Preconditioner(*_factored(normal, damping))


def _rows_wanted(parameters: int) -> int:
    """Rows of the Jacobian that the factored equations are made of: fewer leave out answers that tell much."""
    most, fewest, products = 16.0, 2.5, 5e10
    return int(np.clip(products / parameters**2, fewest * parameters, most * parameters)) + 400


@dataclass(frozen=True)
class _Derivatives:
    """Derivatives of sums of outputs, in single precision: by each hidden layer's values, and the values themselves."""

    layers: list[Singles]  # (n, sums, h) of each
    outputs: Singles  # (n, sums, m)
    values: list[Singles]  # (n, h) of each
    past: bool

    def columns(self, y: FloatArray) -> list[Singles]:
        """Columns (n·m, …) of the Jacobian, in the order of the parameters."""
        return [_products(self.layers[0], y.astype(np.float32)), *self.upper()]

    def upper(self) -> list[Singles]:
        """All columns but those of W."""
        flat = [part.reshape(-1, part.shape[2]) for part in (*self.layers, self.outputs)]
        columns = [flat[0]]
        for by, values, biases in zip([*self.layers[1:], self.outputs], self.values, flat[1:], strict=True):
            columns += [_products(by, values), biases]
        return [*columns, _products(self.outputs, self.values[-2])] if self.past else columns


def _products(by: Singles, values: Singles) -> Singles:
    """Columns (n·m, o·i) of products of derivatives (n, m, o) with values (n, i)."""
    return (by[:, :, :, None] * values[:, None, None, :]).reshape(by.shape[0] * by.shape[1], -1)


def _derivatives(network: Layers, y: FloatArray, weight: FloatArray, signs: FloatArray) -> _Derivatives:
    """Of sums of weighted outputs with these signs (n, sums, m)."""
    states, outputs = network.states(y), weight[:, None] * signs
    by = [(outputs @ network.a) * (states[-1] > 0)[:, None]]
    for (w, _), z in zip(reversed(network.hidden[1:]), reversed(states[:-1]), strict=True):
        below = by[-1] @ w
        if len(by) == 1 and network.s is not None:
            below = below + outputs @ network.s
        by.append(below * (z > 0)[:, None])
    layers = [part.astype(np.float32) for part in reversed(by)]
    values = [np.maximum(z, 0).astype(np.float32) for z in states]
    return _Derivatives(layers, outputs.astype(np.float32), values, network.s is not None)


def _gram(columns: Singles) -> FloatArray:
    half = scipy.linalg.blas.ssyrk(1.0, columns.T)  # the upper triangle
    return np.asarray(np.triu(half) + np.triu(half, 1).T, dtype=np.float64)


def _factored(normal: FloatArray, damping: float) -> tuple[Callable[[FloatArray], FloatArray], FloatArray]:
    """A solution for a symmetric matrix, with its diagonal's roots; it takes vectors (k,) and columns (k, n)."""
    tries = 6
    diagonal = normal.diagonal()
    scale = np.sqrt(np.maximum(diagonal, 1e-12 * diagonal.max(initial=1e-300)))
    normal = normal / scale[:, None] / scale
    for more in 10.0 ** np.arange(tries):
        try:
            damped = normal + damping * more * np.eye(len(normal))
            factor = scipy.linalg.cho_factor(damped.astype(np.float32), overwrite_a=True, check_finite=False)
            break
        except np.linalg.LinAlgError:
            continue
    else:
        raise np.linalg.LinAlgError("no factors of the normal equations")

    def solve(right: FloatArray) -> FloatArray:
        by = scale if right.ndim == 1 else scale[:, None]
        found = scipy.linalg.cho_solve(factor, (right / by).astype(np.float32), check_finite=False)
        return np.asarray(found.astype(np.float64) / by)

    return solve, scale


def _by_blocks(
    network: Layers, y: FloatArray, parts: _Derivatives, times: float, damping: float, span: FloatArray
) -> _Preconditioner:
    """A dense block for the weights along the span and those of upper layers; outside it the same for every direction.

    Inputs outside the span are random, or steps that are the same in every direction, so that Σ g gᵀ |y|², over the
    directions there, is the block of each.
    """
    h, k = network.w.shape
    inside = y @ span.T
    outside = np.maximum((y * y).sum(axis=1) - (inside * inside).sum(axis=1), 0) / (k - len(span))
    by_length = (parts.layers[0] * np.sqrt(outside)[:, None, None]).reshape(-1, h).astype(np.float64)
    solve_w, scale_w = _factored(times * by_length.T @ by_length, damping)
    columns = [_products(parts.layers[0], inside.astype(np.float32)), *parts.upper()]
    solve_dense, scale_dense = _factored(times * _gram(np.concatenate(columns, axis=1)), damping)
    cut = h * len(span)

    def solve(right: FloatArray) -> FloatArray:
        w = right[: h * k].reshape(h, k)
        along = w @ span.T
        dense = solve_dense(np.concatenate([along.ravel(), right[h * k :]]))
        w = solve_w(w - along @ span) + dense[:cut].reshape(along.shape) @ span
        return np.concatenate([w.ravel(), dense[cut:]])

    scale = np.concatenate([np.repeat(scale_w, k), scale_dense[cut:]])
    return _Preconditioner(solve, scale)


def without_past_term(network: Layers) -> tuple[Layers, float]:
    """Neurons of the last layer turned so that the term past them vanishes, and the rest of it, of the largest.

    A max(z, 0) = A max(-z, 0) + A z, so that the term is a sum over neurons that are the wrong way round.
    """
    assert network.s is not None
    terms = np.stack([np.outer(network.a[:, k], network.v[k]).ravel() for k in range(len(network.c))], axis=1)
    choice = np.linalg.lstsq(terms, -network.s.ravel(), rcond=None)[0]
    turned = choice > 0.5
    left = network.s + (terms @ turned.astype(np.float64)).reshape(network.s.shape)
    sides = np.where(turned, -1.0, 1.0)
    e = network.e + network.a[:, turned] @ network.c[turned]
    found = replace(network, v=network.v * sides[:, None], c=network.c * sides, e=e, s=left)
    return found, float(np.linalg.norm(left) / np.linalg.norm(terms, axis=0).max())
