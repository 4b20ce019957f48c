"""`open_oracle`: the adapter for a target, and the wrappers around it in their order.

    method → Counting → Selected → Linked → PlainProbabilities → Transcript → Batched → Retrying → Metered → Timed
           → adapter → target

A served model has Watched and Parallel in the place of Batched, one on an engine has Parallel there, so that each
request is retried, counted and recorded by itself. Selection, link and percent stand outside the transcript: what
is on disk is what was paid for, the target's own answers, all of them. Metered is inside the retries, so every
attempt counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, Protocol, TypeAlias, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike

from reluctant.domains import Domain
from reluctant.engines import Engine
from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles.adapters.dispatch import adapt, adapt_on_engine
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Kind, Oracle
from reluctant.oracles.explanations import DividedInputs
from reluctant.oracles.input_units import InputUnits, checked_samples, scaled_by
from reluctant.oracles.keywords import (
    Explanation,
    GivenGradients,
    OpeningKeywords,
    OpenOptions,
    Reading,
    Recording,
    RunPrecision,
    ServedKeywords,
    Serving,
    check_numbers,
    checked_gradients,
    is_url,
    merged,
    one_of,
    row_shape,
    served_options,
)
from reluctant.oracles.ledger import Counting, Ledger, Limit, Metered, Timed
from reluctant.oracles.links import ANSWER_LINKS, AnswerLink, Linked, PlainProbabilities, ProbabilityFormat
from reluctant.oracles.parallel import Parallel
from reluctant.oracles.retry import Retrying
from reluctant.oracles.transcript import Transcript, open_log
from reluctant.oracles.wrappers import Batched, Borrowed, Selected, Watched

NO_LINK = "none"  # another name of "identity"
OPENING_SEED = 0  # the opening question is the same for every target of a dimension
SERVED_RETRIES = 8  # of a served model, if not said: about a minute and a half of patience
OPENING_ROWS = 3  # one answer may be the same for two targets by chance: a label, a zero


class Predictor(Protocol):
    """A fitted scikit-learn model."""

    def predict(self, X: Any, /) -> Any:
        """Answer rows."""


# An oracle, or anything that `open_oracle` makes one of; a torch module is callable.
Target: TypeAlias = Oracle | ReLUNetwork | Callable[..., Any] | Predictor | str | Path


def open_oracle(
    target: Target,
    *,
    dim: int | None = None,
    shape: Sequence[int] | None = None,
    budget: int | None = None,
    transcript: str | Path | None = None,
    keep_rows: bool = False,
    output: int | Sequence[int] | None = None,
    link: AnswerLink | None = None,
    percent: bool = False,
    domain: Domain | tuple[Any, Any] | None = None,
    inputs: ArrayLike | None = None,
    precision: RunPrecision = "as-served",
    kind: Kind | str = Kind.VALUES,
    timeout: float | None = None,
    retries: int | None = None,
    batch: int | None = None,
    trust_code: bool = False,
    gradients: GivenGradients = None,
    explanation: Explanation = "gradient",
    engine: Engine | None = None,
    serving: Serving | None = None,
    reading: Reading | None = None,
    recording: Recording | None = None,
    **served: Unpack[ServedKeywords],
) -> Counting:
    """Open a target for queries.

    Arguments:
        target: a callable (n, d) -> (n,) or (n, m); a path to .onnx or .npz; a torch module; a fitted
            scikit-learn model; a ReLUNetwork; an Oracle; "module:attribute" of one of these; or the address of a
            served model, "http://host:port/v2/models/NAME" (Open Inference Protocol v2).
        dim: number of inputs. A callable needs it, and a server that does not describe its model.
        shape: shape of one input, for a torch module that does not take flat rows.
        budget: most rows that may reach the target.
        transcript: folder that gets every answer before it is used. Open it again to resume.
        keep_rows: write the rows into the transcript too.
        output: index of the output to use, or several; None for all.
        link: the function after the last layer: "softmax", "sigmoid", "log-softmax", "top-k" or "tanh"; "identity" or
            "none" for plain values. By default extract, learn, recover_span and flip_sign find it.
        percent: the answers are probabilities in percent; they are divided by 100 first.
        domain: (low, high), the range of the inputs. No query leaves it.
        inputs: typical rows (n, d). Queries stay near them, in the units of their columns.
        precision: "float64" evaluates a local ONNX, torch or scikit-learn model in float64.
        kind: what a callable answers: "values", "probabilities" or "labels".
        timeout: seconds to wait for each call.
        retries: repeats of a failed call: 0 by default, 8 for a served model (a minute and a half).
        batch: most rows in one call or request. For a served model it is found automatically.
        trust_code: allow files that can run code when they are loaded.
        gradients: a function (n, d) -> (n, m, d), or (n, d) for the output that `output` names; True for a torch module
            (autograd) or a ReLUNetwork; for a served model the name of its output tensor, or a path in its JSON
            reply. A row counts once, with its gradients or without.
        explanation: what `gradients` gives: "gradient", or "input-times-gradient", which is divided by the inputs.
        engine: "dask://host:port", or a Client of dask.distributed: its workers hold the target and share the rows.
        served: for a served model alone: connections, rate, auth_env, auth_header, encoding, datatype, tensor,
            request, reply, watch, ca; see `Serving`.
        serving, reading, recording: the same settings as values: `Serving` those of a served model, `Reading` link,
            percent and output, `Recording` transcript and keep_rows. Give each setting once.

    Cost: one row for a callable, to count its outputs. With a transcript six rows the first time and three at each
    reopening, to recognise the target. Otherwise none.
    """
    is_served = isinstance(target, str) and is_url(target)
    retries = (SERVED_RETRIES if is_served else 0) if retries is None else retries
    check_numbers(budget=budget, timeout=timeout, retries=retries, batch=batch)
    options_of_server = served_options(served, serving, is_served, batch)
    read = merged("reading", reading, Reading(link, percent, output))
    kept = merged("recording", recording, Recording(transcript, keep_rows))
    options = OpenOptions(
        shape=row_shape(dim, shape),
        precision=one_of("precision", precision, ("as-served", "float64")),
        kind=Kind(one_of("kind", str(kind), tuple(Kind))),
        trust_code=trust_code,
        timeout=timeout,
        batch=batch if options_of_server is None else options_of_server.batch,
        served=options_of_server,
        engine=engine,
        gradients=checked_gradients(gradients, is_served),
        output=int(read.output) if isinstance(read.output, int | np.integer) else None,
    )
    one_of("explanation", explanation, get_args(Explanation))
    wanted = "identity" if read.link in (None, NO_LINK) else read.link
    one_of("link", wanted, ANSWER_LINKS)
    ledger = Ledger()
    adapter = adapt(target, options) if engine is None else adapt_on_engine(target, options)
    with ExitStack() as if_refused:
        if options.is_elsewhere:  # another one may be the caller's own
            if_refused.callback(adapter.close)
        if options.shape is not None and prod(options.shape) != adapter.dim:
            raise InvalidInput.about("dim", got=prod(options.shape), expected=f"{adapter.dim}, as the target has it")
        adapter = DividedInputs(adapter) if explanation == "input-times-gradient" else adapter
        inside, own = Domain.of(domain), adapter.facts.domain
        if not inside.fits(adapter.dim):
            raise InvalidInput.about("domain", got=repr(domain), expected=f"numbers or arrays of {adapter.dim} bounds")
        bounds = inside.intersected(own)
        samples = None if inputs is None else checked_samples(inputs, adapter.dim, bounds)
        sender = _sender(adapter, ledger, budget, retries, options)
        recorder = _with_transcript(sender, ledger, kept, bounds, samples)
        if_refused.pop_all()
        if_refused.callback(recorder.close)
        answers = PlainProbabilities(recorder, ProbabilityFormat(percent=True)) if read.percent else recorder
        values = answers if wanted == "identity" else Linked(answers, wanted)
        chosen = values if read.output is None else Selected(values, read.output)
        opened = Counting(chosen, ledger, bounds, samples, unread=read.link is None and _is_unread(target))
        if_refused.pop_all()
    return opened


def _is_unread(target: Target) -> bool:
    """False of an oracle that was opened before, with or without a link that its user gave."""
    inner = target.inner if isinstance(target, Borrowed) else target
    return inner.unread if isinstance(inner, Counting) else True


def _sender(adapter: Oracle, ledger: Ledger, budget: int | None, retries: int, options: OpenOptions) -> Oracle:
    """What sends rows: timed, counted, repeated; a served model by connections, an engine in tasks."""
    served = options.served
    sender: Oracle = adapter if options.is_elsewhere or options.timeout is None else Timed(adapter, options.timeout)
    sender = Metered(sender, ledger, budget)
    sender = Retrying(sender, retries) if retries else sender
    if options.engine is not None:
        from reluctant.oracles.adapters.dask import in_shards

        return in_shards(sender, options.batch)
    if served is None:
        return sender if options.batch is None else Batched(sender, options.batch)
    from reluctant.oracles.http.address import first_batch

    sender = Parallel(sender, served.connections, first_batch(adapter, served))
    return sender if served.watch is None else Watched(sender, served.watch)


def _with_transcript(
    sender: Oracle, ledger: Ledger, kept: Recording, bounds: Domain, samples: FloatArray | None
) -> Oracle:
    """Record every row sent, if a folder is given; ask the opening question where it is needed."""
    if kept.transcript is None:
        if sender.outputs == UNKNOWN_OUTPUTS:
            sender.answer(_opening_rows(sender, bounds, 1) if samples is None else samples[:1])
        return sender
    log = open_log(Path(kept.transcript))  # first of all: a folder that cannot be used costs no question
    try:
        question = _opening_rows(sender, bounds, OPENING_ROWS)
        asked = [sender.answer(question)] if sender.outputs == UNKNOWN_OUTPUTS else []
        greet = None if sender.facts.identity else lambda: asked.pop() if asked else sender.answer(question)
        return Transcript(sender, log, ledger, keep_rows=kept.keep_rows, greet=greet)
    except BaseException:
        log.close()
        raise


def as_opened(oracle: Oracle) -> Counting:
    """The oracle itself if it is already counted, else opened with nothing around it."""
    return oracle if isinstance(oracle, Counting) else open_oracle(oracle)


@contextmanager
def opened_target(target: Target, keywords: OpeningKeywords, seconds: float | None = None) -> Iterator[Counting]:
    """An oracle for one call of a verb: opened with these keywords, and closed after it.

    An oracle is used as it is if no keyword is given. With keywords they hold for this call alone. It stays open
    either way: who opened it closes it. seconds: processor time after which the call gets no more answers.
    """
    if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
        raise InvalidInput.about("seconds", got=repr(seconds), expected="a processor time above 0, or None")
    if isinstance(target, Oracle) and not keywords:
        with _within(as_opened(target), seconds) as oracle:
            yield oracle
        return
    with (
        open_oracle(Borrowed(target) if isinstance(target, Oracle) else target, **keywords) as opened,
        _within(opened, seconds) as oracle,
    ):
        yield oracle


def in_units(opened: Counting, inputs: FloatArray | None = None) -> tuple[Counting, InputUnits | None]:
    """The target in units of its inputs, counted in the same ledger; itself and None where nothing is known of them.

    inputs: rows that a verb was given, in the place of those that the target was opened with.
    """
    facts = opened.facts if inputs is None else replace(opened.facts, samples=inputs)
    if facts.samples is None and not facts.domain.is_box:
        return opened, None
    units = InputUnits.of(facts)
    if facts.samples is None and units.are_plain:
        return opened, None
    return scaled_by(opened, units, facts), units


@contextmanager
def _within(oracle: Counting, seconds: float | None) -> Iterator[Counting]:
    """The oracle, which answers for so much processor time."""
    if seconds is None:
        yield oracle
        return
    limit = Limit(seconds=seconds)
    with limit.running():
        yield limit.of(oracle)


def _opening_rows(sender: Oracle, bounds: Domain, n: int) -> FloatArray:
    return bounds.sample(np.random.default_rng(OPENING_SEED), n, sender.dim)
