"""`ReLUNetwork`: dense layers with ReLU between them, an optional affine skip term, and its files.

    h_0 = x,   h_k = max(W_k h_{k-1} + b_k, 0),   net(x) = W_L h_{L-1} + b_L + S x

Everything is finite, read-only float64, and the shapes of the layers are checked on the way in. A final softmax or
sigmoid is noted as `link`; calling the network always gives the values before it. `evaluate` does the same where
large arrays live, on a device for example. Networks are saved as `.npz` of our own or as `.onnx`, by suffix.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluctant._files import replacement
from reluctant._notebook import html_table
from reluctant.errors import InvalidInput, InvalidRows, InvalidWeights, UnsupportedModel
from reluctant.numerics import HOST, Arrays, FloatArray, all_finite

Link: TypeAlias = Literal["identity", "softmax", "sigmoid", "log-softmax", "tanh"]
LINKS: tuple[Link, ...] = ("identity", "softmax", "sigmoid", "log-softmax", "tanh")
ELEMENTWISE_LINKS = ("identity", "sigmoid", "tanh")  # links that make an answer of each value by itself

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
        self._weights = tuple(frozen_array(w, 2, f"weights[{k}]") for k, w in enumerate(weights))
        self._biases = tuple(frozen_array(b, 1, f"biases[{k}]") for k, b in enumerate(biases))
        self._skip = None if skip is None else frozen_array(skip, 2, "skip")
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

    def _repr_html_(self) -> str:
        layers = {f"layer {k + 1}": f"{w.shape[1]} → {w.shape[0]}" for k, w in enumerate(self._weights)}
        facts = {"parameters": self.parameters, "skip": None if self._skip is None else "affine", "link": self.link}
        return html_table(f"ReLUNetwork {'-'.join(map(str, self.widths))}", {**layers, **facts})

    # ---- evaluation

    def __call__(self, x: ArrayLike) -> FloatArray:
        """Evaluate at rows (n, d), giving (n, m) float64."""
        rows = self._rows(x)
        answers = np.empty((len(rows), self.outputs))
        for start in range(0, len(rows), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
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

        For softmax and log-softmax the values are log-ratios to the first class, whose own value is 0. A
        network that has noted one of these has all its classes already.
        """
        if link in ELEMENTWISE_LINKS or self.link not in ELEMENTWISE_LINKS:
            return ReLUNetwork(self._weights, self._biases, self._skip, link)
        w, b = (np.concatenate([np.zeros_like(part[:1]), part]) for part in (self._weights[-1], self._biases[-1]))
        skip = None if self._skip is None else np.concatenate([np.zeros_like(self._skip[:1]), self._skip])
        return ReLUNetwork([*self._weights[:-1], w], [*self._biases[:-1], b], skip, link)

    def canonical(self) -> ReLUNetwork:
        """The same function with scales and order of neurons fixed; see `networks.symmetry`."""
        from reluctant.networks.symmetry import canonical

        return canonical(self)

    def to_torch(self, dtype: Literal["float64", "float32"] = "float64") -> Any:
        """The same as `torch.nn.Sequential`, with the link as last module."""
        from reluctant.networks.frameworks import torch_module

        return torch_module(self, dtype)

    def to_sklearn(self) -> Any:
        """The same as a fitted `MLPRegressor`, or as an `MLPClassifier` where the link gives probabilities."""
        from reluctant.networks.frameworks import sklearn_model

        return sklearn_model(self)

    def save(self, path: str | Path, dtype: Literal["float64", "float32"] = "float64") -> None:
        """Write `.npz` or `.onnx`, by suffix; float64 comes back exactly."""
        save_network(self, Path(path), dtype)

    @classmethod
    def load(cls, path: str | Path) -> ReLUNetwork:
        """Read `.npz` written by `save`, or an `.onnx` of dense layers and ReLUs."""
        return load_network(Path(path))


def check_layers(weights: Sequence[FloatArray], biases: Sequence[FloatArray], skip: FloatArray | None) -> None:
    """Raise where layers do not follow on each other, or the affine term does not go from the first to the last."""
    if not weights or len(weights) != len(biases):
        raise InvalidInput.about(
            "weights, biases",
            got=f"{len(weights)} weight and {len(biases)} bias arrays",
            expected="one of each per layer",
        )
    for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
        inputs = weights[k - 1].shape[0] if k else w.shape[1]
        if w.shape != (len(b), inputs):
            raise InvalidInput.about(f"weights[{k}]", got=f"shape {w.shape}", expected=f"({len(b)}, {inputs})")
    around = weights[-1].shape[0], weights[0].shape[1]
    if skip is not None and skip.shape != around:
        raise InvalidInput.about("skip", got=f"shape {skip.shape}", expected=f"({around[0]}, {around[1]})")


def frozen_array(values: ArrayLike, ndim: int, name: str) -> FloatArray:
    """A read-only copy; raises unless it holds finite numbers with so many axes."""
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InvalidWeights.about(name, got=type(values).__name__, expected="an array of numbers") from error
    if array.ndim != ndim or not all_finite(array):
        finite = "" if all_finite(array) else " with NaN or inf"
        raise InvalidWeights.about(name, got=f"shape {array.shape}{finite}", expected=f"{ndim} finite axes")
    array.flags.writeable = False
    return array


ARRAYS_PER_ROW = 4  # of the numbers worked on together: rows, and values of a layer


def evaluate(network: ReLUNetwork, rows: FloatArray, arrays: Arrays = HOST) -> FloatArray:
    """What the network gives at rows (n, d), worked out there."""
    if arrays is HOST:
        return network(rows)
    weights = [arrays.put(w).T for w in network.weights]
    biases = [arrays.put(b) for b in network.biases]
    skip = None if network.skip is None else arrays.put(network.skip).T
    size = max(1, arrays.cells // (ARRAYS_PER_ROW * max(network.widths)))
    parts = []
    for start in range(0, len(rows), size):
        hidden = given = arrays.put(rows[start : start + size])
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            hidden = arrays.xp.clip(hidden @ w + b, 0, None)
        out = hidden @ weights[-1] + biases[-1]
        parts.append(arrays.get(out if skip is None else out + given @ skip))
    return np.concatenate(parts)


NPZ_FORMAT = 1
FILE_SUFFIXES = {".npz", ".onnx"}


def save_network(network: ReLUNetwork, path: Path, dtype: Literal["float64", "float32"]) -> None:
    """Write the network as `.npz` or `.onnx`."""
    if path.suffix in FILE_SUFFIXES and not path.parent.is_dir():
        raise InvalidWeights.about("path", got=f"'{path}'", expected="a file in an existing folder")
    if path.suffix == ".npz":
        _save_npz(network, path, dtype)
    elif path.suffix == ".onnx":
        from reluctant.networks.onnx import write_onnx

        write_onnx(network, path, dtype)
    else:
        raise _wrong_suffix(path)


def load_network(path: Path) -> ReLUNetwork:
    """Read a network from `.npz` or `.onnx`."""
    if path.suffix not in FILE_SUFFIXES:
        raise _wrong_suffix(path)
    if not path.is_file():
        raise InvalidWeights.about("path", got=f"'{path}'", expected="an existing file")
    if path.suffix == ".npz":
        return _load_npz(path)
    from reluctant.networks.onnx import read_onnx

    return read_onnx(path)


def _wrong_suffix(path: Path) -> InvalidInput:
    return InvalidWeights.about("path", got=f"'{path.name}'", expected="a name ending in .npz or .onnx")


def _save_npz(network: ReLUNetwork, path: Path, dtype: str) -> None:
    arrays = {f"weight_{k}": w.astype(dtype) for k, w in enumerate(network.weights)}
    arrays |= {f"bias_{k}": b.astype(dtype) for k, b in enumerate(network.biases)}
    if network.skip is not None:
        arrays["skip"] = network.skip.astype(dtype)
    header = {"format": np.array(NPZ_FORMAT), "link": np.array(network.link)}
    with replacement(path) as fresh, fresh.open("wb") as file:
        np.savez(file, **header, **arrays)  # type: ignore[arg-type]


def _load_npz(path: Path) -> ReLUNetwork:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            arrays = dict(data)
        found = int(arrays["format"])
        layers = sum(name.startswith("weight_") for name in arrays)
        weights = [arrays[f"weight_{k}"] for k in range(layers)]
        biases = [arrays[f"bias_{k}"] for k in range(layers)]
        link = str(arrays["link"])
    except (KeyError, ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise UnsupportedModel.about("path", got=f"'{path}'", expected="an .npz written by ReLUNetwork.save") from error
    if found != NPZ_FORMAT:
        raise UnsupportedModel.about(
            "path",
            got=f"'{path}' of format {found}",
            expected=f"format {NPZ_FORMAT}",
            fix="Update reluctant.",
        )
    return ReLUNetwork(weights, biases, arrays.get("skip"), link)  # type: ignore[arg-type]
