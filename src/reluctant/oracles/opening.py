"""`open_oracle`: find the adapter for a target and put the wrappers around it in their one right order.

    method → Counting → Selected → Linked → Transcript → Batched → Retrying → Metered → Timed → adapter → target

A served model has Watched and Parallel in the place of Batched, one on an engine has Parallel there, so that each
request is retried, counted and recorded by itself. Selection and link stand outside the transcript, so that what is on
disk is what was paid for: the target's own answers, all of them. Metered stands inside the retries, so that every
attempt counts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np

from reluctant.domains import Domain
from reluctant.engines import Engine, check_engine
from reluctant.errors import InvalidInput, UnknownTarget
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Kind, Oracle
from reluctant.oracles.batches import Batched
from reluctant.oracles.budget import Metered
from reluctant.oracles.callable import CallableOracle
from reluctant.oracles.counting import Counting
from reluctant.oracles.files import CODE_SUFFIXES, import_target, load_code_file
from reluctant.oracles.http import ServedKeywords, ServedOptions, is_url
from reluctant.oracles.ledger import Ledger
from reluctant.oracles.link import ANSWER_LINKS, AnswerLink, Linked
from reluctant.oracles.network import NetworkOracle
from reluctant.oracles.parallel import Parallel
from reluctant.oracles.retry import Retrying
from reluctant.oracles.selection import Selected
from reluctant.oracles.timeout import Timed
from reluctant.oracles.transcript import Transcript, open_log
from reluctant.oracles.watch import Watched

__all__ = ["as_opened", "open_oracle"]

Precision = Literal["as-served", "float64"]
MODULE_TARGET = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")
GREETING_SEED = 0  # the opening question is the same for every target of a dimension
SERVED_RETRIES = 8  # of a served model, if not said: about a minute and a half of patience
GREETING_ROWS = 3  # one answer may be the same for two targets by chance: a label, a zero


@dataclass(frozen=True)
class _Options:
    """What an adapter may want to know."""

    shape: tuple[int, ...] | None
    precision: Precision
    kind: Kind
    trust_code: bool
    timeout: float | None
    batch: int | None
    served: ServedOptions | None
    engine: Engine | None = None


def open_oracle(
    target: Any,
    *,
    dim: int | None = None,
    shape: Sequence[int] | None = None,
    budget: int | None = None,
    transcript: str | Path | None = None,
    keep_rows: bool = False,
    output: int | Sequence[int] | None = None,
    link: AnswerLink = "identity",
    domain: Domain | tuple[Any, Any] | None = None,
    precision: Precision = "as-served",
    kind: Kind | str = Kind.VALUES,
    timeout: float | None = None,
    retries: int | None = None,
    batch: int | None = None,
    trust_code: bool = False,
    engine: Engine | None = None,
    **served: Unpack[ServedKeywords],
) -> Counting:
    """Open a target for questions.

    Arguments:
        target: a callable (n, d) -> (n,) or (n, m); a path to .onnx or .npz; a torch module; a fitted
            scikit-learn MLP; a ReLUNetwork; an Oracle; "module:attribute" of one of these; or the address of a
            served model, "http://host:port/v2/models/NAME" (Open Inference Protocol v2).
        dim: number of inputs; needed for a callable and where a server does not say, checked for the rest.
        shape: shape of one input, for a torch module that does not take flat rows.
        budget: most rows that may reach the target.
        transcript: folder where every answer is written before it is used; open it again to resume.
        keep_rows: write the rows into the transcript too.
        output: index of the output to look at, or several; None for all.
        link: "softmax", "sigmoid", "log-softmax" or "top-k" turns probabilities back into values.
        domain: (low, high) inside which the target may be asked.
        precision: "float64" evaluates a local ONNX, torch or scikit-learn model in float64.
        kind: what a callable answers: "values", "probabilities" or "labels".
        timeout: seconds to wait for each call.
        retries: how often a failed call is repeated; if not said 0, for a served model 8 (a minute and a half).
        batch: most rows in one call or request; a served model learns from refusals if it is not said.
        trust_code: allow files that can run code when they are loaded.
        engine: "dask://host:port", or a Client of dask.distributed: its workers hold the target and share the rows.
        served: for a served model alone: connections, rate, auth_env, auth_header, encoding, datatype, tensor,
            request, reply, watch, ca; see `reluctant.oracles.http.ServedOptions`.

    Cost: one row for a callable, to learn its outputs; with a transcript six when it is made and three when it
    is opened again, to know the target by. None for the rest.
    """
    is_served = isinstance(target, str) and is_url(target)
    retries = (SERVED_RETRIES if is_served else 0) if retries is None else retries
    _check_numbers(budget=budget, timeout=timeout, retries=retries, batch=batch)
    options = _Options(_row_shape(dim, shape), _one_of("precision", precision, ("as-served", "float64")),
                       Kind(_one_of("kind", str(kind), tuple(Kind))), trust_code, timeout,
                       batch, _served_options(served, is_served, batch), engine)  # fmt: skip
    _one_of("link", link, ANSWER_LINKS)
    ledger = Ledger()
    adapter = _adapt(target, options) if engine is None else _adapt_on_engine(target, options)
    try:
        _check_dim(adapter, options)
        bounds = _bounds(domain, adapter)
        sender = _sender(adapter, ledger, budget, retries, options)
        recorder = _with_transcript(sender, ledger, transcript, keep_rows, bounds)
    except BaseException:
        if options.served is not None or engine is not None:
            adapter.close()  # another one may be the caller's own
        raise
    try:
        values = recorder if link == "identity" else Linked(recorder, link)
        return Counting(values if output is None else Selected(values, output), ledger, bounds)
    except BaseException:
        recorder.close()
        raise


def _sender(adapter: Oracle, ledger: Ledger, budget: int | None, retries: int, options: _Options) -> Oracle:
    """What sends rows: timed, counted, repeated; a served model by connections, an engine in tasks."""
    served, engine = options.served, options.engine
    timed_there = served or engine is not None
    sender: Oracle = adapter if timed_there or options.timeout is None else Timed(adapter, options.timeout)
    sender = Metered(sender, ledger, budget)
    sender = Retrying(sender, retries) if retries else sender
    if engine is not None:
        from reluctant.oracles.dask import in_shards

        return in_shards(sender, options.batch)
    if served is None:
        return sender if options.batch is None else Batched(sender, options.batch)
    from reluctant.oracles.http.opening import first_batch

    sender = Parallel(sender, served.connections, first_batch(adapter, served))
    return sender if served.watch is None else Watched(sender, served.watch)


def _with_transcript(
    sender: Oracle, ledger: Ledger, folder: str | Path | None, keep_rows: bool, bounds: Domain
) -> Oracle:
    """Record what is sent, if a folder is given; ask the opening question where it is needed."""
    if folder is None:
        if sender.outputs == UNKNOWN_OUTPUTS:
            sender.answer(_opening_rows(sender, bounds, 1))
        return sender
    log = open_log(Path(folder))  # first of all: a folder that cannot be used costs no question
    try:
        question = _opening_rows(sender, bounds, GREETING_ROWS)
        asked = [sender.answer(question)] if sender.outputs == UNKNOWN_OUTPUTS else []
        greet = None if sender.facts.identity else lambda: asked.pop() if asked else sender.answer(question)
        return Transcript(sender, log, ledger, keep_rows=keep_rows, greet=greet)
    except BaseException:
        log.close()
        raise


def as_opened(oracle: Oracle) -> Counting:
    """The oracle itself if it is already counted, else opened with nothing around it."""
    return oracle if isinstance(oracle, Counting) else open_oracle(oracle)


def _opening_rows(sender: Oracle, bounds: Domain, n: int) -> FloatArray:
    return bounds.sample(np.random.default_rng(GREETING_SEED), n, sender.dim)


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


def _adapt_on_engine(target: Any, options: _Options) -> Oracle:
    """A copy of the target on each worker: opened here and sent, or imported there by its name."""
    from reluctant.oracles.dask import as_sent, open_on_engine

    if options.served is not None:
        raise InvalidInput.about(
            "engine", got="one for a served model", expected="a target that is computed by whoever asks",
            fix="A server is asked from here: connections=8 keeps more requests in flight.",
        )  # fmt: skip
    check_engine(options.engine)  # first: a target that cannot be sent is no matter where there is nowhere to send it
    if isinstance(target, str) and _is_module_target(target):
        there = replace(options, engine=None)
        return open_on_engine(options.engine, partial(_adapt_name, target, there), target, options.timeout)
    adapter = as_sent(_adapt(target, options))
    return open_on_engine(options.engine, partial(_as_it_is, adapter), adapter.facts.name, options.timeout)


def _as_it_is(adapter: Oracle) -> Oracle:
    return adapter


def _is_module_target(name: str) -> bool:
    return not Path(name).exists() and MODULE_TARGET.match(name) is not None


def _adapt_name(name: str, options: _Options) -> Oracle:
    path = Path(name)
    if options.served is not None:
        from reluctant.oracles.http.opening import open_served

        _refuse_recast(options, "a served model")
        return open_served(name, options.served, options.shape, options.kind, options.timeout)
    if _is_module_target(name):
        return _adapt(import_target(name), options)
    if not path.is_file():
        raise UnknownTarget.about(
            "target", got=f"'{name}'", expected="an existing .onnx or .npz file, module:attribute, or http(s)://...",
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


def _adapt_oracle(target: Any, options: _Options) -> Oracle:
    _refuse_recast(options, "an oracle")
    return target


def _refuse_recast(options: _Options, what: str) -> None:
    if options.precision == "float64":
        raise InvalidInput.about(
            "precision", got=f"'float64' for {what}", expected="'as-served'",
            fix="Only a local ONNX, torch or scikit-learn model can be re-cast.",
        )  # fmt: skip


def _adapt_callable(target: Any, options: _Options) -> Oracle:
    if options.shape is None:
        raise InvalidInput.about(
            "dim", got="None", expected="the number of inputs of the callable", fix="Give it: dim=N (--dim N)."
        )
    _refuse_recast(options, "a callable")
    return CallableOracle(target, prod(options.shape), kind=options.kind)


ADAPTERS: list[tuple[Callable[[Any], bool], Callable[[Any, _Options], Oracle]]] = [
    (lambda target: isinstance(target, Oracle), _adapt_oracle),
    (lambda target: isinstance(target, ReLUNetwork), lambda target, _: NetworkOracle(target)),
    (_is_instance_of("torch.nn.modules.module", "Module"), _adapt_torch),
    (_is_instance_of("sklearn.base", "BaseEstimator"), _adapt_sklearn),
    (callable, _adapt_callable),
]


# ---- checks of the keywords


def _served_options(keywords: Mapping[str, Any], is_served: bool, batch: int | None) -> ServedOptions | None:
    options = ServedOptions.of({**keywords, "batch": batch})
    if keywords and not is_served:
        raise InvalidInput.about(
            next(iter(keywords)), got="a value for a local target", expected="it for a served model (http://...) alone"
        )
    return options if is_served else None


def _row_shape(dim: int | None, shape: Sequence[int] | None) -> tuple[int, ...] | None:
    if dim is not None and not _is_size(dim):
        raise InvalidInput.about("dim", got=repr(dim), expected="a positive whole number")
    if shape is None:
        return None if dim is None else (int(dim),)
    if not isinstance(shape, Iterable) or not all(_is_size(size) for size in shape):
        raise InvalidInput.about("shape", got=repr(shape), expected="a tuple of positive whole numbers")
    whole = tuple(int(size) for size in shape)
    if dim is not None and prod(whole) != dim:
        raise InvalidInput.about("shape", got=shape, expected=f"a shape of {dim} numbers, as dim says")
    return whole


def _is_size(size: object) -> bool:
    return isinstance(size, int | np.integer) and not isinstance(size, bool) and int(size) > 0


def _bounds(domain: Domain | tuple[Any, Any] | None, adapter: Oracle) -> Domain:
    """The domain asked for, inside the target's own."""
    wanted, own = Domain.of(domain), adapter.facts.domain
    if not wanted.fits(adapter.dim):
        raise InvalidInput.about("domain", got=repr(domain), expected=f"numbers or arrays of {adapter.dim} bounds")
    return wanted.intersected(own)


def _check_dim(adapter: Oracle, options: _Options) -> None:
    if options.shape is not None and prod(options.shape) != adapter.dim:
        raise InvalidInput.about("dim", got=prod(options.shape), expected=f"{adapter.dim}, as the target has it")


def _one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    if value not in allowed:
        raise InvalidInput.about(name, got=repr(value), expected="one of " + ", ".join(f"'{a}'" for a in allowed))
    return value


def _check_numbers(*, budget: int | None, timeout: float | None, retries: int, batch: int | None) -> None:
    for name, rows in (("budget", budget), ("batch", batch)):
        if rows is not None and not _is_size(rows):
            raise InvalidInput.about(name, got=repr(rows), expected="a whole number of rows, at least 1, or None")
    if timeout is not None and (not isinstance(timeout, int | float) or not timeout > 0):
        raise InvalidInput.about("timeout", got=repr(timeout), expected="seconds above 0, or None")
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InvalidInput.about("retries", got=retries, expected="a whole number, at least 0")
