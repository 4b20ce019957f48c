"""The choice of the adapter for a target, and the adapters for callables, networks and functions of gradients.

A target is a callable, a `ReLUNetwork`, a path, a module, an estimator, a name `module:attribute` or an address.
"""

from __future__ import annotations

import hashlib
import importlib
import pickle
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from reluctant.engines import check_engine
from reluctant.errors import (
    HIGH,
    LOW,
    InvalidInput,
    MissingDependency,
    N,
    Placeholder,
    ReluctantError,
    TargetUnavailable,
    UnknownTarget,
    UnsafeFile,
    require,
    words,
)
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Explained, Facts, Kind, Oracle, PassThrough, as_answers
from reluctant.oracles.explanations import GradientFace, as_gradients
from reluctant.oracles.keywords import OpenOptions
from reluctant.oracles.links import LINK_FUNCTIONS, LINK_SLOPES


class CallableOracle(Oracle):
    """Asks a Python function.

    The number of outputs is what its first answer has; from then on it must keep to it.
    """

    def __init__(
        self, function: Callable[[FloatArray], object], dim: int, *, kind: Kind = Kind.VALUES, name: str = ""
    ) -> None:
        if not callable(function):
            raise InvalidInput.about("target", got=type(function).__name__, expected="a callable")
        self._function = function
        name = name or getattr(function, "__qualname__", None) or type(function).__name__
        self._facts = Facts(dim, UNKNOWN_OUTPUTS, kind=kind, name=name)

    @property
    def facts(self) -> Facts:
        """Dimension as given; outputs once they are known."""
        return self._facts

    def answer(self, rows: FloatArray) -> FloatArray:
        """Call the function with a copy-free, read-only view of the rows."""
        view = rows.view()
        view.flags.writeable = False
        answers = as_answers(call_target(self._function, view), len(rows), self._facts.outputs)
        if self._facts.outputs == UNKNOWN_OUTPUTS:
            self._facts = Facts(self.dim, answers.shape[1], kind=self._facts.kind, name=self._facts.name)
        return np.array(answers)  # a copy: the function may reuse its buffer, or give back the rows

    def __repr__(self) -> str:
        return f"CallableOracle({self._facts.name})"


def call_target(function: Callable[[Any], object], argument: Any) -> object:
    """Call the target; whatever it raises comes back as `TargetUnavailable` with its cause."""
    try:
        return function(argument)
    except ReluctantError:
        raise
    except Exception as error:
        raise TargetUnavailable(f"target: raised {type(error).__name__}: {error}.").advised(
            f"Check that it accepts {_shaped(argument)}", WHEN_IT_RAISES
        ) from error


WHEN_IT_RAISES = words(
    "({dim}). If it answers only in some range, open it with {domain}; if it takes only so many rows at once, with "
    "{batch}; if it fails now and then, with {retries}.",
    domain=(LOW, HIGH), batch=N, retries=3,
)  # fmt: skip


def _shaped(argument: Any) -> str:
    """The rows that it was asked, any number of them."""
    sizes = ", ".join(str(size) for size in getattr(argument, "shape", (0, "d"))[1:])
    return f"(n, {sizes}) float arrays"


class NetworkOracle(Oracle):
    """Answers as the network does, a final softmax or sigmoid included; its weights stay behind the wall."""

    def __init__(self, network: ReLUNetwork) -> None:
        self._network = network
        name = "-".join(map(str, network.widths))
        kind = Kind.PROBABILITIES if network.link in ("softmax", "sigmoid") else Kind.VALUES
        self._facts = Facts(network.dim, network.outputs, kind=kind, name=name, identity=_network_identity(network))

    @property
    def facts(self) -> Facts:
        """Dimensions of the network."""
        return self._facts

    def answer(self, rows: FloatArray) -> FloatArray:
        """Evaluate the network, its link included."""
        return LINK_FUNCTIONS[self._network.link](self._network(rows))

    def gradients(self, rows: FloatArray) -> FloatArray:
        """Gradients (n, m, d), its link included."""
        return LINK_SLOPES[self._network.link](self.answer(rows)[..., None], self._network.gradients(rows))

    def __repr__(self) -> str:
        return f"NetworkOracle({self._facts.name})"


def _network_identity(network: ReLUNetwork) -> str:
    digest = hashlib.sha256(f"{network.widths} {network.skip is not None} {network.link}".encode())
    for array in (*network.weights, *network.biases, *network.skips.values()):
        digest.update(array.tobytes())
    if not network.is_chain:
        digest.update(f"{list(network.skips)}".encode())
    return f"network sha256:{digest.hexdigest()}"


GradientFunction = Callable[[FloatArray], object]  # rows (n, d) -> (n, m, d), or (n, d) of one output


class WithGradients(PassThrough):
    """Passes questions on; asked for gradients, it calls the function at the same rows.

    Arguments:
        inner: the target.
        function: its gradients.
        output: which output they are of, where they are those of one among several.
    """

    def __init__(self, inner: Oracle, function: GradientFunction, output: int | None = None) -> None:
        super().__init__(inner)
        self._function, self._output = function, output

    @property
    def explained(self) -> Oracle:
        """Values and gradients."""
        return GradientFace(self)

    def with_gradients(self, rows: FloatArray) -> Explained:
        """Ask the target and the function."""
        values = self.inner.answer(rows)
        view = rows.view()
        view.flags.writeable = False
        raw = call_target(self._function, view)
        return Explained(values, as_gradients(raw, values.shape, rows.shape[1], self._output))


MODULE_TARGET = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")


def adapt(target: Any, options: OpenOptions) -> Oracle:
    """The adapter of a target that is asked from here, with its gradients if they are given."""
    adapter = _adapt_values(target, options)
    if callable(options.gradients):
        adapter = WithGradients(adapter, options.gradients, options.output)
    if options.gradients is not None and adapter.explained is None:
        raise InvalidInput.about(
            "gradients", got=f"True for {adapter.facts.name}", expected="True for a torch module or a network alone",
            fix=words("Give a function: {gradients}, with g(rows) of shape (n, m, d).", gradients=Placeholder("g")),
        )  # fmt: skip
    return adapter


def _adapt_values(target: Any, options: OpenOptions) -> Oracle:
    """The adapter of a target; `UnknownTarget` if there is none."""
    if isinstance(target, str | Path):
        return _adapt_name(str(target), options)
    if isinstance(target, Oracle):
        _refuse_recast(options, "an oracle")
        return target
    if isinstance(target, ReLUNetwork):
        plain = NetworkOracle(target)
        return WithGradients(plain, plain.gradients) if options.gradients is True else plain
    if _is_instance_of(target, "torch.nn.modules.module.Module"):
        from reluctant.oracles.adapters.torch import TorchOracle

        return TorchOracle(target, options.shape, options.precision, gradients=options.gradients is True)
    if _is_instance_of(target, "sklearn.base.BaseEstimator"):
        from reluctant.oracles.adapters.sklearn import SklearnOracle

        return SklearnOracle(target, options.precision)
    if callable(target):
        if options.shape is None:
            expected = "the number of inputs of the callable"
            raise InvalidInput.about("dim", got="None", expected=expected, fix=words("Give it: {dim}.", dim=N))
        _refuse_recast(options, "a callable")
        return CallableOracle(target, prod(options.shape), kind=options.kind)
    raise UnknownTarget.about(
        "target", got=type(target).__name__,
        expected="a callable, a path to .onnx or .npz, a torch module, a fitted scikit-learn model or a ReLUNetwork",
    )  # fmt: skip


def adapt_on_engine(target: Any, options: OpenOptions) -> Oracle:
    """A copy of the target on each worker: opened here and sent, or imported there by its name."""
    from reluctant.oracles.adapters.dask import as_sent, open_on_engine

    if options.served is not None:
        raise InvalidInput.about(
            "engine", got="one for a served model", expected="a target that is computed by whoever asks",
            fix=words("A server is asked from here: {connections} keeps more requests in flight.", connections=8),
        )  # fmt: skip
    check_engine(options.engine)  # first: a target that cannot be sent is no matter where there is nowhere to send it
    if isinstance(target, str) and _is_module_target(target):
        there = replace(options, engine=None)
        make, name = partial(adapt, target, there), target
    else:
        adapter = as_sent(adapt(target, options))
        make, name = partial(_unchanged, adapter), adapter.facts.name
    gradients = options.gradients is not None
    return open_on_engine(options.engine, make, name, options.timeout, gradients=gradients)


def _unchanged(adapter: Oracle) -> Oracle:
    return adapter


def _is_module_target(name: str) -> bool:
    return not Path(name).exists() and MODULE_TARGET.match(name) is not None


def _adapt_name(name: str, options: OpenOptions) -> Oracle:
    """A served model, `module:attribute`, or a file."""
    if options.served is not None:
        from reluctant.oracles.http.address import open_served
        from reluctant.oracles.http.served_oracle import ServedGradients

        _refuse_recast(options, "a served model")
        gradients = ServedGradients.of(options.gradients, options.output)
        return open_served(name, options.served, options.shape, options.kind, options.timeout, gradients)
    if _is_module_target(name):
        return _adapt_values(import_target(name), options)
    path = Path(name)
    if not path.is_file():
        raise UnknownTarget.about(
            "target", got=f"'{name}'", expected="an existing .onnx or .npz file, module:attribute, or an address",
            fix="Check the path.",
        )  # fmt: skip
    if path.suffix in CODE_SUFFIXES:
        return _adapt_values(load_code_file(path, options.trust_code), options)
    if path.suffix == ".npz":
        return _adapt_values(ReLUNetwork.load(path), options)
    if path.suffix == ".onnx":
        from reluctant.oracles.adapters.onnxruntime import OnnxOracle

        return OnnxOracle(path, options.precision)
    raise UnknownTarget.about("target", got=f"'{name}'", expected="a file ending in .onnx or .npz")


def _is_instance_of(target: Any, kind: str) -> bool:
    """True for instances of a library's base class, without importing the library."""
    loaded = kind.partition(".")[0] in sys.modules
    return loaded and kind in {f"{base.__module__}.{base.__qualname__}" for base in type(target).__mro__}


def _refuse_recast(options: OpenOptions, what: str) -> None:
    if options.precision == "float64":
        raise InvalidInput.about(
            "precision", got=f"'float64' for {what}", expected="'as-served'",
            fix="Only a local ONNX, torch or scikit-learn model can be re-cast.",
        )  # fmt: skip


# Loading these runs whatever their author put in.
CODE_SUFFIXES = {".pkl", ".pickle", ".joblib", ".pt", ".pth"}


def load_code_file(path: Path, trust_code: bool) -> Any:
    """Load a pickled model or torch module, only if the user said so."""
    if not trust_code:
        raise UnsafeFile.about(
            "target", got=f"'{path}'", expected="a file that cannot run code (.onnx, .npz)",
            fix=words("If you made it yourself, pass {trust_code}; better, export it to ONNX.", trust_code=True),
        )  # fmt: skip
    try:
        if path.suffix in {".pt", ".pth"}:
            torch = require("torch", extra="torch", purpose="Loading a torch file")
            return torch.load(path, weights_only=False, map_location="cpu")
        if path.suffix == ".joblib":
            return require("joblib", extra="sklearn", purpose="Loading a .joblib file").load(path)
        with path.open("rb") as file:
            return pickle.load(file)
    except MissingDependency:
        raise
    except Exception as error:  # unpickling runs foreign code, which may raise anything
        raise UnknownTarget.about("target", got=f"'{path}' ({error})", expected="a readable model file") from error


def import_target(name: str) -> Any:
    """Import `module:attribute`, looking in the working folder first."""
    module_name, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        target = importlib.import_module(module_name)
        for part in attribute.split("."):
            target = getattr(target, part)
    except Exception as error:  # importing runs the module, which may raise anything
        raise UnknownTarget.about(
            "target",
            got=f"'{name}' ({type(error).__name__}: {error})",
            expected="module:attribute of something importable",
            fix="Check both names; a module is looked for in this folder first, then where Python looks (PYTHONPATH).",
        ) from error
    if isinstance(target, str | Path):
        raise InvalidInput.about("target", got=f"'{name}', which is a string", expected="a callable or a model")
    return target
