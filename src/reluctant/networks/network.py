"""ReLUNetwork: fully connected, any depth, ReLU between layers, an optional affine skip term.

    h_0 = x,   h_k = max(W_k h_{k-1} + b_k, 0),   net(x) = W_L h_{L-1} + b_L + S x

Everything is float64 and read-only. A final softmax or sigmoid is noted as `link`; calling the network
always gives the values before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluctant.errors import InvalidInput, InvalidRows
from reluctant.networks.arrays import check_layers, frozen
from reluctant.numerics import FloatArray

__all__ = ["LINKS", "Link", "LocalMaps", "ReLUNetwork"]

Link: TypeAlias = Literal["identity", "softmax", "sigmoid", "log-softmax", "tanh"]
LINKS: tuple[Link, ...] = ("identity", "softmax", "sigmoid", "log-softmax", "tanh")
OF_EACH_VALUE = ("identity", "sigmoid", "tanh")  # links that make an answer of each value by itself

# Rows evaluated at a time: hidden activations of a block stay in the processor's cache.
BLOCK_ROWS = 1024


@dataclass(frozen=True)
class LocalMaps:
    """The affine maps a network equals around each of n points: x ↦ gradients[i] @ x + offsets[i]."""

    gradients: FloatArray  # (n, m, d)
    offsets: FloatArray  # (n, m)

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Evaluate map i at row i."""
        return np.einsum("nmd,nd->nm", self.gradients, rows) + self.offsets


class ReLUNetwork:
    """A ReLU network with known weights.

    Arguments:
        weights: one (n_out, n_in) array per layer.
        biases: one (n_out,) array per layer.
        skip: (m, d) matrix of an affine term added to the output (its constant is in the last bias).
        link: what the original model applies to these values: "identity", "softmax", "sigmoid", "log-softmax" or
            "tanh".
    """

    __slots__ = ("_biases", "_link", "_skip", "_weights")

    def __init__(
        self,
        weights: Sequence[ArrayLike],
        biases: Sequence[ArrayLike],
        skip: ArrayLike | None = None,
        link: Link = "identity",
    ) -> None:
        self._weights = tuple(frozen(w, 2, f"weights[{k}]") for k, w in enumerate(weights))
        self._biases = tuple(frozen(b, 1, f"biases[{k}]") for k, b in enumerate(biases))
        self._skip = None if skip is None else frozen(skip, 2, "skip")
        self._link: Link = link
        check_layers(self._weights, self._biases, self._skip)
        if link not in LINKS:
            raise InvalidInput.about("link", got=repr(link), expected=f"one of {', '.join(LINKS)}")

    # ---- facts

    @property
    def weights(self) -> list[FloatArray]:
        """One read-only (n_out, n_in) array per layer."""
        return list(self._weights)

    @property
    def biases(self) -> list[FloatArray]:
        """One read-only (n_out,) array per layer."""
        return list(self._biases)

    @property
    def skip(self) -> FloatArray | None:
        """The (m, d) matrix of the affine term, or None."""
        return self._skip

    @property
    def link(self) -> Link:
        """What the original model applies to these values."""
        return self._link

    @property
    def dim(self) -> int:
        """Number of inputs d."""
        return int(self._weights[0].shape[1])

    @property
    def outputs(self) -> int:
        """Number of outputs m."""
        return int(self._weights[-1].shape[0])

    @property
    def widths(self) -> tuple[int, ...]:
        """Inputs, hidden layers and outputs: (784, 128, 1)."""
        return (self.dim, *(int(w.shape[0]) for w in self._weights))

    @property
    def depth(self) -> int:
        """Number of weight layers: two for one hidden layer."""
        return len(self._weights)

    @property
    def parameters(self) -> int:
        """Number of weights and biases, the skip matrix included."""
        arrays = (*self._weights, *self._biases, *(() if self._skip is None else (self._skip,)))
        return sum(array.size for array in arrays)

    def __repr__(self) -> str:
        extras = ("" if self._skip is None else " + skip") + ("" if self.link == "identity" else f", {self.link}")
        return f"ReLUNetwork({'-'.join(map(str, self.widths))}{extras}, {self.parameters} parameters)"

    # ---- evaluation

    def __call__(self, x: ArrayLike) -> FloatArray:
        """Evaluate at rows (n, d), giving (n, m) float64."""
        rows = self._rows(x)
        answers = np.empty((len(rows), self.outputs))
        for block in _blocks(len(rows)):
            answers[block] = self._forward(rows[block])
        return answers

    def _forward(self, rows: FloatArray) -> FloatArray:
        hidden = rows
        for w, b in zip(self._weights[:-1], self._biases[:-1], strict=True):
            hidden = hidden @ w.T
            hidden += b
            np.maximum(hidden, 0, out=hidden)
        out: FloatArray = hidden @ self._weights[-1].T
        out += self._biases[-1]
        if self._skip is not None:
            out += rows @ self._skip.T
        return out

    def preactivations(self, x: ArrayLike) -> list[FloatArray]:
        """Values before each ReLU: one (n, width) array per hidden layer."""
        hidden, values = self._rows(x), []
        for w, b in zip(self._weights[:-1], self._biases[:-1], strict=True):
            values.append(hidden @ w.T + b)
            hidden = np.maximum(values[-1], 0)
        return values

    def patterns(self, x: ArrayLike) -> list[NDArray[np.bool_]]:
        """Which neurons are active: one (n, width) boolean array per hidden layer."""
        return [values > 0 for values in self.preactivations(x)]

    def local_maps(self, x: ArrayLike) -> LocalMaps:
        """The affine map the network equals in the linear region of each row."""
        rows = self._rows(x)
        patterns = self.patterns(rows)
        offsets = np.broadcast_to(self._biases[0], (len(rows), len(self._biases[0])))
        for w, b, active in zip(self._weights[1:], self._biases[1:], patterns, strict=True):
            offsets = np.where(active, offsets, 0.0) @ w.T + b
        return LocalMaps(self._gradients(patterns, len(rows)), offsets)

    def gradients(self, x: ArrayLike) -> FloatArray:
        """Gradient (n, m, d) of every output at each row, by one pass back from the outputs."""
        rows = self._rows(x)
        return self._gradients(self.patterns(rows), len(rows))

    def _gradients(self, patterns: list[NDArray[np.bool_]], n: int) -> FloatArray:
        slope = np.broadcast_to(self._weights[-1], (n, *self._weights[-1].shape))
        for w, active in zip(self._weights[-2::-1], patterns[::-1], strict=True):
            slope = np.where(active[:, None, :], slope, 0.0) @ w
        return np.asarray(slope) if self._skip is None else slope + self._skip

    def hyperplanes(self) -> tuple[FloatArray, FloatArray]:
        """First-layer creases {x : normals[j] @ x + offsets[j] = 0} with unit normals.

        A neuron with zero weights has no crease; its row is NaN.
        """
        norms = np.linalg.norm(self._weights[0], axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return self._weights[0] / norms[:, None], self._biases[0] / norms

    def _rows(self, x: ArrayLike) -> FloatArray:
        try:
            rows = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidRows.about("x", got=type(x).__name__, expected="an array of numbers") from error
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise InvalidRows.about(
                "x", got=f"shape {rows.shape}", expected=f"(n, {self.dim})", fix="One point is x[None, :]."
            )
        return rows

    # ---- other forms

    def log_ratios(self) -> ReLUNetwork:
        """The network of log(p_k / p_0), k ≥ 1: what a softmax lets through of these logits."""
        w, b = self._weights[-1], self._biases[-1]
        skip = None if self._skip is None else self._skip[1:] - self._skip[0]
        return ReLUNetwork([*self._weights[:-1], w[1:] - w[0]], [*self._biases[:-1], b[1:] - b[0]], skip)

    def before_link(self, link: Link) -> ReLUNetwork:
        """The network of a classifier whose answers after this link lead to these values: `log_ratios` undone.

        For softmax and log-softmax the values are log-ratios to the first class, whose own value is taken as 0.
        """
        if link in OF_EACH_VALUE:
            return ReLUNetwork(self._weights, self._biases, self._skip, link)
        w, b = (np.concatenate([np.zeros_like(part[:1]), part]) for part in (self._weights[-1], self._biases[-1]))
        skip = None if self._skip is None else np.concatenate([np.zeros_like(self._skip[:1]), self._skip])
        return ReLUNetwork([*self._weights[:-1], w], [*self._biases[:-1], b], skip, link)

    def canonical(self) -> ReLUNetwork:
        """The same function with scales and order of neurons fixed; see `networks.symmetry`."""
        from reluctant.networks.symmetry import canonical

        return canonical(self)

    def save(self, path: str | Path, dtype: Literal["float64", "float32"] = "float64") -> None:
        """Write `.npz` or `.onnx`, by suffix; float64 comes back exactly."""
        from reluctant.networks.files import save_network

        save_network(self, Path(path), dtype)

    @classmethod
    def load(cls, path: str | Path) -> ReLUNetwork:
        """Read `.npz` written by `save`, or an `.onnx` of dense layers and ReLUs."""
        from reluctant.networks.files import load_network

        return load_network(Path(path))


def _blocks(rows: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK_ROWS) for start in range(0, rows, BLOCK_ROWS))
