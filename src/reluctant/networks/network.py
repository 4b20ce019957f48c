"""`ReLUNetwork`: dense layers with ReLU between them, skips over layers, and its files.

    h_0 = x,   h_k = max(W_k h_{k-1} + b_k + Σ_s S_sk h_s, 0),   net(x) = W_L h_{L-1} + b_L + Σ_s S_sL h_s

Most networks have no skips S, or the affine term S_0L alone. Everything is finite, read-only float64, and the shapes of
the layers are checked on the way in. A final softmax or sigmoid is noted as `link`; calling the network always gives
the values before it. `evaluate` does the same where large arrays live, on a device for example. Networks are saved as
`.npz` of our own or as `.onnx`, by suffix.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
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
Skips: TypeAlias = dict[tuple[int, int], FloatArray]
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
        skips: weights over layers, by (source, target): from hidden layer `source`, 0 for the inputs, into weight layer
            `target`, the first being 1. `skip` is the one from the inputs into the last.
    """

    __slots__ = ("_biases", "_link", "_skips", "_weights")

    def __init__(
        self,
        weights: Sequence[ArrayLike],
        biases: Sequence[ArrayLike],
        skip: ArrayLike | None = None,
        link: Link = "identity",
        skips: Mapping[tuple[int, int], ArrayLike] | None = None,
    ) -> None:
        self._weights = tuple(frozen_array(w, 2, f"weights[{k}]") for k, w in enumerate(weights))
        self._biases = tuple(frozen_array(b, 1, f"biases[{k}]") for k, b in enumerate(biases))
        self._skips = _frozen_skips(len(self._weights), skip, skips or {})
        self._link: Link = link
        check_layers(self._weights, self._biases, self._skips)
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
        return self._skips.get((0, self.depth))

    @property
    def skips(self) -> Skips:
        """Weights over layers by (source, target), the affine term among them."""
        return dict(self._skips)

    @property
    def is_chain(self) -> bool:
        """True if no layer but the last sees more than the one before it, and that one the inputs besides at most."""
        return not set(self._skips) - {(0, self.depth)}

    def incoming(self, target: int) -> dict[int, FloatArray]:
        """Weights into weight layer `target` by source: the layer before it first."""
        found = {target - 1: self._weights[target - 1]}
        for (source, into), w in self._skips.items():
            if into == target:
                found[source] = found[source] + w if source in found else w
        return found

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
        """Number of weights and biases, those of skips included."""
        return sum(array.size for array in (*self._weights, *self._biases, *self._skips.values()))

    def __repr__(self) -> str:
        skips = "" if not self._skips else " + skip" if self.is_chain else " + skips"
        extras = skips + ("" if self.link == "identity" else f", {self.link}")
        return f"ReLUNetwork({'-'.join(map(str, self.widths))}{extras}, {self.parameters} parameters)"

    def _repr_html_(self) -> str:
        layers = {f"layer {k + 1}": f"{w.shape[1]} → {w.shape[0]}" for k, w in enumerate(self._weights)}
        skip = None if not self._skips else "affine" if self.is_chain else f"{len(self._skips)} over layers"
        facts = {"parameters": self.parameters, "skip": skip, "link": self.link}
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
        hidden, kept = rows, {0: rows}
        for k in range(1, self.depth + 1):
            hidden = self._values(k, hidden, kept)
            if k < self.depth:
                np.maximum(hidden, 0, out=hidden)
                if not self.is_chain:
                    kept[k] = hidden
        return hidden

    def _values(self, k: int, before: FloatArray, kept: Mapping[int, FloatArray]) -> FloatArray:
        """Values of weight layer k, from the layer before it and those that are kept."""
        values: FloatArray = before @ self._weights[k - 1].T
        values += self._biases[k - 1]
        for (source, target), w in self._skips.items():
            if target == k:
                values += kept[source] @ w.T
        return values

    def preactivations(self, x: ArrayLike) -> list[FloatArray]:
        """Values before each ReLU: one (n, width) array per hidden layer."""
        kept, values = {0: self._rows(x)}, []
        for k in range(1, self.depth):
            values.append(self._values(k, kept[k - 1], kept))
            kept[k] = np.maximum(values[-1], 0)
        return values

    def patterns(self, x: ArrayLike) -> list[NDArray[np.bool_]]:
        """Which neurons are active: one (n, width) boolean array per hidden layer."""
        return [values > 0 for values in self.preactivations(x)]

    def local_maps(self, x: ArrayLike) -> LocalMaps:
        """The affine map the network equals in the linear region of each row."""
        rows = self._rows(x)
        patterns = self.patterns(rows)
        kept = {0: np.zeros((len(rows), self.dim))}
        for k in range(1, self.depth):
            kept[k] = np.where(patterns[k - 1], self._values(k, kept[k - 1], kept), 0.0)
        offsets = self._values(self.depth, kept[self.depth - 1], kept)
        return LocalMaps(self._gradients(patterns, len(rows)), offsets)

    def gradients(self, x: ArrayLike) -> FloatArray:
        """Gradient (n, m, d) of every output at each row, by one pass back from the outputs."""
        rows = self._rows(x)
        return self._gradients(self.patterns(rows), len(rows))

    def _gradients(self, patterns: list[NDArray[np.bool_]], n: int) -> FloatArray:
        outputs = {source: np.broadcast_to(w, (n, *w.shape)) for source, w in self.incoming(self.depth).items()}
        return self.input_slopes(patterns, outputs)

    def input_slopes(self, patterns: Sequence[NDArray[np.bool_]], sums: Mapping[int, FloatArray]) -> FloatArray:
        """Gradients (n, ..., d) by the inputs of sums of hidden layers and inputs.

        patterns: which neurons are active, of the highest layer of a sum and those below it at least. sums:
        coefficients (n, ..., width) of the neurons of a layer, by its number; 0 are the inputs.
        """
        slopes, top = dict(sums), max(sums)
        for k in range(top, 0, -1):
            by_neuron = slopes.pop(k)
            active = patterns[k - 1].reshape(len(by_neuron), *(1,) * (by_neuron.ndim - 2), by_neuron.shape[-1])
            by_value = np.where(active, by_neuron, 0.0)
            for source, w in self.incoming(k).items():
                slopes[source] = by_value @ w + slopes[source] if source in slopes else by_value @ w
        return np.asarray(slopes[0])

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

    def with_parts(
        self,
        weights: Sequence[ArrayLike] | None = None,
        biases: Sequence[ArrayLike] | None = None,
        skips: Mapping[tuple[int, int], ArrayLike] | None = None,
        link: Link | None = None,
    ) -> ReLUNetwork:
        """The network with some parts replaced."""
        return ReLUNetwork(
            self._weights if weights is None else weights,
            self._biases if biases is None else biases,
            None,
            self._link if link is None else link,
            self._skips if skips is None else skips,
        )

    def with_inputs(self, change: Callable[[FloatArray], tuple[FloatArray, FloatArray]]) -> ReLUNetwork:
        """The network of other inputs: `change` gives new weights of them, and what a bias gains."""
        weights, biases, skips = self.weights, self.biases, self.skips
        weights[0], more = change(weights[0])
        biases[0] = biases[0] + more
        for (source, target), w in self._skips.items():
            if source == 0:
                skips[source, target], more = change(w)
                biases[target - 1] = biases[target - 1] + more
        return self.with_parts(weights, biases, skips)

    def with_outputs(self, change: Callable[[FloatArray], FloatArray], link: Link = "identity") -> ReLUNetwork:
        """The network of other outputs: `change` turns rows (m, ...) of weights and biases into new ones."""
        last = self.depth
        skips = {key: change(w) if key[1] == last else w for key, w in self._skips.items()}
        weights, biases = (
            [*self._weights[:-1], change(self._weights[-1])],
            [*self._biases[:-1], change(self._biases[-1])],
        )
        return ReLUNetwork(weights, biases, None, link, skips)

    def log_ratios(self) -> ReLUNetwork:
        """The network of log(p_k / p_0), k ≥ 1: the part of these logits that a softmax shows."""
        return self.with_outputs(lambda rows: rows[1:] - rows[0])

    def before_link(self, link: Link) -> ReLUNetwork:
        """The network of a classifier whose answers after this link lead to these values: `log_ratios` undone.

        For softmax and log-softmax the values are log-ratios to the first class, whose own value is 0. A
        network that has noted one of these has all its classes already.
        """
        if link in ELEMENTWISE_LINKS or self.link not in ELEMENTWISE_LINKS:
            return self.with_parts(link=link)
        return self.with_outputs(lambda rows: np.concatenate([np.zeros_like(rows[:1]), rows]), link)

    def canonical(self) -> ReLUNetwork:
        """The same function with scales and order of neurons fixed; see `networks.symmetry`."""
        from reluctant.networks.symmetry import canonical

        return canonical(self)

    def to_torch(self, dtype: Literal["float64", "float32"] = "float64") -> Any:
        """The network as `torch.nn.Sequential`, with the link as last module."""
        from reluctant.networks.frameworks import torch_module

        return torch_module(self, dtype)

    def to_sklearn(self) -> Any:
        """The network as a fitted `MLPRegressor`, or as an `MLPClassifier` if the link gives probabilities."""
        from reluctant.networks.frameworks import sklearn_model

        return sklearn_model(self)

    def save(self, path: str | Path, dtype: Literal["float64", "float32"] = "float64") -> None:
        """Write `.npz` or `.onnx`, by suffix; float64 comes back exactly."""
        save_network(self, Path(path), dtype)

    @classmethod
    def load(cls, path: str | Path) -> ReLUNetwork:
        """Read `.npz` written by `save`, or an `.onnx` of dense layers and ReLUs."""
        return load_network(Path(path))


def _frozen_skips(depth: int, skip: ArrayLike | None, skips: Mapping[tuple[int, int], ArrayLike]) -> Skips:
    """All skips as read-only arrays, those into lower layers first."""
    if skip is not None:
        skips = {**skips, (0, depth): skip}
    order = sorted(skips, key=lambda key: key[::-1])
    return {key: frozen_array(skips[key], 2, "skip" if key == (0, depth) else f"skips[{key}]") for key in order}


def check_layers(weights: Sequence[FloatArray], biases: Sequence[FloatArray], skips: Skips) -> None:
    """Raise where layers do not follow on each other, or a skip does not go over a layer from a lower to a higher."""
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
    widths, depth = (weights[0].shape[1], *(w.shape[0] for w in weights)), len(weights)
    for (source, target), w in skips.items():
        affine = (source, target) == (0, depth)
        if not affine and not 0 <= source < target - 1 < depth:
            raise InvalidInput.about(
                "skips", got=f"{(source, target)}", expected="(source, target) with a layer between"
            )
        if w.shape != (widths[target], widths[source]):
            name, expected = "skip" if affine else f"skips[{source}, {target}]", f"({widths[target]}, {widths[source]})"
            raise InvalidInput.about(name, got=f"shape {w.shape}", expected=expected)


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
    incoming = [{s: arrays.put(w).T for s, w in network.incoming(k).items()} for k in range(1, network.depth + 1)]
    biases = [arrays.put(b) for b in network.biases]
    size = max(1, arrays.cells // (ARRAYS_PER_ROW * max(network.widths)))
    parts = []
    for start in range(0, len(rows), size):
        kept = {0: arrays.put(rows[start : start + size])}
        for k, (layer, b) in enumerate(zip(incoming, biases, strict=True), 1):
            before, *over = [kept[source] @ w for source, w in layer.items()]
            values = sum(over, before + b)
            kept[k] = values if k == network.depth else arrays.xp.clip(values, 0, None)
            if network.is_chain and k > 1:
                del kept[k - 1]
        parts.append(arrays.get(kept[network.depth]))
    return np.concatenate(parts)


NPZ_FORMATS = 1, 2  # the second has skips between any two layers
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
    for (source, target), w in network.skips.items():
        name = "skip" if (source, target) == (0, network.depth) else f"skip_{source}_{target}"
        arrays[name] = w.astype(dtype)
    header = {"format": np.array(NPZ_FORMATS[not network.is_chain]), "link": np.array(network.link)}
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
        over = {tuple(map(int, name.split("_")[1:])): w for name, w in arrays.items() if name.startswith("skip_")}
        link = str(arrays["link"])
    except (KeyError, ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise UnsupportedModel.about("path", got=f"'{path}'", expected="an .npz written by ReLUNetwork.save") from error
    if found not in NPZ_FORMATS:
        raise UnsupportedModel.about(
            "path",
            got=f"'{path}' of format {found}",
            expected=f"format {NPZ_FORMATS[-1]} or lower",
            fix="Update reluctant.",
        )
    return ReLUNetwork(weights, biases, arrays.get("skip"), link, over)  # type: ignore[arg-type]
