"""`open_oracle`: find the adapter for a target and put the wrappers around it in their one right order.

    method → Counting → Selected → Linked → Transcript → Retrying → Metered → Timed → adapter → target

Selection and link stand outside the transcript, so that what is on disk is what was paid for: the
target's own answers, all of them. Metered stands inside the retries, so that every attempt counts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import InvalidInput, UnknownTarget
from reluctant.networks import ReLUNetwork
from reluctant.networks.network import LINKS, Link
from reluctant.numerics import FloatArray
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Kind, Oracle
from reluctant.oracles.budget import Metered
from reluctant.oracles.callable import CallableOracle
from reluctant.oracles.counting import Counting
from reluctant.oracles.files import CODE_SUFFIXES, import_target, load_code_file
from reluctant.oracles.ledger import Ledger
from reluctant.oracles.link import Linked
from reluctant.oracles.network import NetworkOracle
from reluctant.oracles.retry import Retrying
from reluctant.oracles.selection import Selected
from reluctant.oracles.timeout import Timed
from reluctant.oracles.transcript import Transcript

__all__ = ["as_opened", "open_oracle"]

Precision = Literal["as-served", "float64"]
MODULE_TARGET = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")
GREETING_SEED = 0  # the opening question is the same for every target of a dimension


@dataclass(frozen=True)
class _Options:
    """What an adapter may want to know."""

    shape: tuple[int, ...] | None
    precision: Precision
    kind: Kind
    trust_code: bool


def open_oracle(
    target: Any,
    *,
    dim: int | None = None,
    shape: Sequence[int] | None = None,
    budget: int | None = None,
    transcript: str | Path | None = None,
    keep_rows: bool = False,
    output: int | Sequence[int] | None = None,
    link: Link = "identity",
    domain: Domain | tuple[Any, Any] | None = None,
    precision: Precision = "as-served",
    kind: Kind | str = Kind.VALUES,
    timeout: float | None = None,
    retries: int = 0,
    trust_code: bool = False,
) -> Counting:
    """Open a target for questions.

    Arguments:
        target: a callable (n, d) -> (n,) or (n, m); a path to .onnx or .npz; a torch module; a fitted
            scikit-learn MLP; a ReLUNetwork; an Oracle; or "module:attribute" of one of these.
        dim: number of inputs; needed for a callable, checked for the rest.
        shape: shape of one input, for a torch module that does not take flat rows.
        budget: most rows that may reach the target.
        transcript: folder where every answer is written before it is used; open it again to resume.
        keep_rows: write the rows into the transcript too.
        output: index of the output to look at, or several; None for all.
        link: "softmax" or "sigmoid" turns probabilities back into values.
        domain: (low, high) inside which the target may be asked.
        precision: "float64" evaluates a local ONNX, torch or scikit-learn model in float64.
        kind: what a callable answers: "values", "probabilities" or "labels".
        timeout: seconds to wait for each call.
        retries: how often a failed call is repeated.
        trust_code: allow files that can run code when they are loaded.

    Cost: one row for a callable, to learn its outputs and to know it again; none for the rest.
    """
    _check_numbers(budget=budget, timeout=timeout, retries=retries)
    options = _Options(_row_shape(dim, shape), _one_of("precision", precision, ("as-served", "float64")),
                       Kind(_one_of("kind", str(kind), tuple(Kind))), trust_code)  # fmt: skip
    _one_of("link", link, LINKS)
    bounds = None if domain is None else Domain.of(domain)
    ledger = Ledger()
    stack = _adapt(target, options)
    _check_dim(stack, options)
    stack = stack if timeout is None else Timed(stack, timeout)
    stack = Metered(stack, ledger, budget)
    stack = Retrying(stack, retries) if retries else stack
    greeting = None
    if stack.outputs == UNKNOWN_OUTPUTS or (transcript is not None and not stack.facts.identity):
        greeting = stack.answer(_opening_row(stack, bounds))
    if transcript is not None:
        stack = Transcript(stack, transcript, ledger, keep_rows=keep_rows, greeting=greeting)
    try:
        stack = stack if link == "identity" else Linked(stack, link)
        stack = stack if output is None else Selected(stack, output)
    except InvalidInput:
        stack.close()
        raise
    return Counting(stack, ledger, bounds)


def as_opened(oracle: Oracle) -> Counting:
    """The oracle itself if it is already counted, else opened with nothing around it."""
    return oracle if isinstance(oracle, Counting) else open_oracle(oracle)


def _opening_row(stack: Oracle, bounds: Domain | None) -> FloatArray:
    rng = np.random.default_rng(GREETING_SEED)
    return (bounds or stack.facts.domain).sample(rng, 1, stack.dim)


# ---- which adapter


def _adapt(target: Any, options: _Options) -> Oracle:
    if isinstance(target, str | Path):
        return _adapt_name(str(target), options)
    for is_mine, adapter in ADAPTERS:
        if is_mine(target):
            return adapter(target, options)
    raise UnknownTarget.about(
        "target", got=type(target).__name__,
        expected="a callable, a path to .onnx or .npz, a torch module, a scikit-learn MLP or a ReLUNetwork",
    )  # fmt: skip


def _adapt_name(name: str, options: _Options) -> Oracle:
    path = Path(name)
    if re.match(r"^https?://", name):
        raise UnknownTarget.about(
            "target", got=f"'{name}'", expected="a local target", fix="Served models cannot be asked yet."
        )
    if not path.exists() and MODULE_TARGET.match(name):
        return _adapt(import_target(name), options)
    if not path.is_file():
        raise UnknownTarget.about(
            "target", got=f"'{name}'", expected="an existing .onnx or .npz file, or module:attribute",
            fix="Check the path.",
        )  # fmt: skip
    if path.suffix in CODE_SUFFIXES:
        return _adapt(load_code_file(path, options.trust_code), options)
    if path.suffix == ".npz":
        return _adapt(ReLUNetwork.load(path), options)
    if path.suffix == ".onnx":
        from reluctant.oracles.onnx import OnnxOracle

        return OnnxOracle(path, options.precision)
    raise UnknownTarget.about("target", got=f"'{name}'", expected="a file ending in .onnx or .npz")


def _is_instance_of(library: str, kind: str) -> Callable[[Any], bool]:
    """True for instances of a library's base class, without importing the library."""

    def is_mine(target: Any) -> bool:
        if library.partition(".")[0] not in sys.modules:
            return False
        names = {f"{base.__module__}.{base.__qualname__}" for base in type(target).__mro__}
        return f"{library}.{kind}" in names

    return is_mine


def _adapt_torch(target: Any, options: _Options) -> Oracle:
    from reluctant.oracles.torch import TorchOracle

    return TorchOracle(target, options.shape, options.precision)


def _adapt_sklearn(target: Any, options: _Options) -> Oracle:
    from reluctant.oracles.sklearn import SklearnOracle

    return SklearnOracle(target, options.precision)


def _adapt_callable(target: Any, options: _Options) -> Oracle:
    if options.shape is None:
        raise InvalidInput.about(
            "dim", got="None", expected="the number of inputs of the callable", fix="Pass dim=784."
        )
    if options.precision == "float64":
        raise InvalidInput.about(
            "precision", got="'float64' for a callable", expected="'as-served'",
            fix="Only a local ONNX, torch or scikit-learn model can be re-cast.",
        )  # fmt: skip
    return CallableOracle(target, prod(options.shape), kind=options.kind)


ADAPTERS: list[tuple[Callable[[Any], bool], Callable[[Any, _Options], Oracle]]] = [
    (lambda target: isinstance(target, Oracle), lambda target, _: target),
    (lambda target: isinstance(target, ReLUNetwork), lambda target, _: NetworkOracle(target)),
    (_is_instance_of("torch.nn.modules.module", "Module"), _adapt_torch),
    (_is_instance_of("sklearn.base", "BaseEstimator"), _adapt_sklearn),
    (callable, _adapt_callable),
]


# ---- checks of the keywords


def _row_shape(dim: int | None, shape: Sequence[int] | None) -> tuple[int, ...] | None:
    sizes = (dim,) if shape is None else tuple(shape)
    if shape is None and dim is None:
        return None
    if not all(isinstance(size, int | np.integer) and not isinstance(size, bool) and size > 0 for size in sizes):
        raise InvalidInput.about("dim", got=dim if shape is None else shape, expected="positive whole numbers")
    whole = tuple(int(size) for size in sizes if size is not None)
    if dim is not None and prod(whole) != dim:
        raise InvalidInput.about("shape", got=shape, expected=f"a shape of {dim} numbers, as dim says")
    return whole


def _check_dim(adapter: Oracle, options: _Options) -> None:
    if options.shape is not None and prod(options.shape) != adapter.dim:
        raise InvalidInput.about("dim", got=prod(options.shape), expected=f"{adapter.dim}, as the target has it")


def _one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    if value not in allowed:
        raise InvalidInput.about(name, got=repr(value), expected="one of " + ", ".join(f"'{a}'" for a in allowed))
    return value


def _check_numbers(*, budget: int | None, timeout: float | None, retries: int) -> None:
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1):
        raise InvalidInput.about("budget", got=budget, expected="a whole number of rows, at least 1, or None")
    if timeout is not None and not timeout > 0:
        raise InvalidInput.about("timeout", got=timeout, expected="seconds above 0, or None")
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InvalidInput.about("retries", got=retries, expected="a whole number, at least 0")
