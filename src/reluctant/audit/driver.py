"""`audit`: the steps one after the other, each within its share of the budget; one that fails never ends the rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from reluctant.audit.defending import try_defenses
from reluctant.audit.known import Given, Known, Skip, StepFunction
from reluctant.audit.limits import Allowance
from reluctant.audit.looking import look_at_health, look_for_span, seen
from reluctant.audit.pictures import ask_line, ask_plane, measure_errors
from reluctant.audit.probing import flip_inputs, look_at_linearity
from reluctant.audit.rebuilding import compare_with_truth, extract_network, learn_network
from reluctant.audit.record import Audit, StepRecord
from reluctant.audit.recovered import Price
from reluctant.audit.shares import BUDGET, SECONDS, SHARES, reserve, seconds_for, share
from reluctant.engines import Engine
from reluctant.errors import InvalidInput, InvalidRows, ReluctantError
from reluctant.numerics import FloatArray, as_generator
from reluctant.oracles import Counting, Oracle
from reluctant.oracles.http import shown_target
from reluctant.oracles.link import AnswerLink
from reluctant.oracles.opening import Precision, as_opened
from reluctant.results import Ended

__all__ = ["HONEST_INPUTS", "STEPS", "Watch", "audit", "not_opened"]

HONEST_INPUTS = 1000  # drawn from the domain where none are given
STOPPED = "Stopped by the user."
TIME_UP = "The time for it ran out; what it had found by then is kept. Allow more (--seconds)."
LEFT_OUT = "Left out, as asked for."
NO_ROWS = "No rows of the budget are left."

# Told what begins: "audit" or "defenses", how many parts are done, of how many, and the name of the next one.
Watch = Callable[[str, int, int, str], None]

STEPS: Mapping[str, StepFunction] = {
    "health": look_at_health,
    "span": look_for_span,
    "extraction": extract_network,
    "learning": learn_network,
    "flip": flip_inputs,
    "linearity": look_at_linearity,
    "line": ask_line,
    "plane": ask_plane,
    "errors": measure_errors,
    "truth": compare_with_truth,
    "defenses": try_defenses,
}


def audit(
    oracle: Oracle,
    *,
    budget: int = BUDGET,
    rng: int = 0,
    inputs: FloatArray | None = None,
    input_shape: tuple[int, int] | None = None,
    classes: Sequence[str] = (),
    price: Price | None = None,
    file: str | Path | None = None,
    precision: Precision = "as-served",
    defense: Sequence[str] = (),
    link: AnswerLink = "identity",
    output: int | None = None,
    seconds: float = SECONDS,
    steps: Iterable[str] | None = None,
    repeat: str = "",
    watch: Watch | None = None,
    engine: Engine | None = None,
) -> Audit:
    """Find out what can be taken from a model through its answers.

    Arguments:
        oracle: the target.
        budget: most rows that may be asked; the steps share it.
        rng: seed of all random choices.
        inputs: honest inputs (n, d) to measure costs on and to start from; else they are drawn from the domain.
        input_shape: height and width, if inputs are images.
        classes: names of the outputs.
        price: {"per thousand": 1.5, "currency": "EUR"}: what queries cost.
        file: the model's own file, if there is one: for the truth, and for the defense sweep where nothing was
            recovered. No method sees it.
        precision: how that file is evaluated.
        defense: defenses between that file and the answers, as `defend` takes them.
        link: how to read the answers ("softmax", "sigmoid", ...); probabilities are read through their softmax by
            themselves.
        output: index of the one output to look at; all if not given.
        seconds: processor time that extraction, learning and the defense sweep share.
        steps: some of `STEPS`; all if not given.
        repeat: the command that repeats it, for the record.
        watch: told of progress.
        engine: "dask://host:port", or a Client of dask.distributed: defenses are tried on its workers.

    Ctrl-C ends it early with a record of what is known by then.
    """
    opened, wanted = as_opened(oracle), _wanted(steps)
    _check(seconds, classes, opened.outputs if output is None else None)
    seen(opened, link, output)  # a link or output that does not fit is found before anything is asked,
    as_generator(rng)  # and so is a seed
    given = Given(
        _honest(inputs, opened, rng), inputs is None, _image(input_shape, opened.dim),
        None if file is None else Path(file), precision, link, output, seconds,
        partial(watch or _unwatched, "defenses"), tuple(defense), engine,
    )  # fmt: skip
    run = _Run(opened, Known(given, link), budget, rng, watch or _unwatched)
    ended = run.go(wanted)
    return Audit(
        facts=opened.facts, rows=dict(opened.ledger.stages), known=run.known, steps=tuple(run.steps), ok=ended,
        seed=rng, budget=budget, price=price, classes=tuple(classes), repeat=repeat,
    )  # fmt: skip


def not_opened(target: str, error: ReluctantError, *, seed: int, budget: int, repeat: str) -> Audit:
    """The record of a target that could not be opened: what could not be learned, and why."""
    why = f"{error} [{error.slug}]"
    steps = (
        StepRecord("open", "failed", why),
        *(StepRecord(name, "skipped", "The target is not open.") for name in STEPS),
    )
    known = Known(Given(np.empty((0, 0))), said={"open": f"The target could not be opened: {error}"})
    return Audit(None, {}, known, steps, ok=False, seed=seed, budget=budget, repeat=repeat, name=shown_target(target))


def _check(seconds: float, classes: Sequence[str], outputs: int | None) -> None:
    if not (np.isfinite(seconds) and seconds > 0):
        raise InvalidInput.about("seconds", got=seconds, expected="a positive number")
    if classes and outputs is not None and len(classes) != outputs:
        raise InvalidInput.about("classes", got=f"{len(classes)} names", expected=f"one for each of {outputs} outputs")


def _unwatched(what: str, done: int, of: int, doing: str) -> None:
    pass


@dataclass
class _Run:
    """One audit under way."""

    oracle: Counting
    known: Known
    budget: int
    seed: int
    watch: Watch
    steps: list[StepRecord] = field(default_factory=list)
    passed: int = 0

    def go(self, wanted: Collection[str]) -> bool:
        """Run the steps; False if the user stopped it."""
        stopped = False
        for name, function in STEPS.items():
            self.watch("audit", len(self.steps), len(STEPS), name)
            if stopped or name not in wanted:
                record = StepRecord(name, "skipped", STOPPED if stopped else LEFT_OUT)
            else:
                record = self.step(name, function)
            stopped = record.why == STOPPED
            self.steps.append(record)
            self.known = replace(self.known, said={**self.known.said, name: record.why})
        self.watch("audit", len(STEPS), len(STEPS), "")
        return not stopped

    def step(self, name: str, function: StepFunction) -> StepRecord:
        """One step: its finding becomes known, its failure a line in the record."""
        rows, before, start = self.share(name), self.oracle.queries, time.perf_counter()
        allowance = Allowance(rows, seconds_for(name, self.known.given.seconds))
        if rows == 0 and name in SHARES:
            return StepRecord(name, "skipped", NO_ROWS, allowed=0)
        state, why = "done", ""
        try:
            with allowance.running():
                new = function(allowance.of(self.view(name)), self.known, self.seed)
            self.known = replace(self.known, **new)
            why = TIME_UP if allowance.time_up else _ending(new)
        except Skip as reason:
            state, why = "skipped", str(reason)
            self.known = replace(self.known, refused=(*self.known.refused, *([name] if reason.settles else [])))
        except KeyboardInterrupt:
            state, why = "failed", STOPPED
        except Exception as error:  # whatever a target or a method raises, the rest goes on
            state, why = "failed", _said(error)
        self.passed += allowance.passed
        if allowance.time_up:
            self.known = replace(self.known, timed_out=(*self.known.timed_out, name))
        spent, seconds = self.oracle.queries - before, time.perf_counter() - start
        return StepRecord(name, state, why, spent, seconds, rows if name in SHARES else None)

    def view(self, name: str) -> Counting:
        """The target as a step sees it; the first looks at the bare interface."""
        if name == "health":
            return self.oracle
        return seen(self.oracle, self.known.link, self.known.given.output)

    def share(self, name: str) -> int:
        """Rows of a step: by what was asked, not sent, so that a replayed audit shares as the first one did."""
        return share(name, self.budget - self.passed, reserve(self.budget, self.oracle.dim))


def _said(error: Exception) -> str:
    if isinstance(error, ReluctantError):
        return f"{error} [{error.slug}]"
    return f"{type(error).__name__}: {error}"


def _ending(new: Mapping[str, Any]) -> str:
    """How the method of a step ended, in its own words."""
    return " ".join(str(value.outcome) for value in new.values() if isinstance(value, Ended))


def _wanted(steps: Iterable[str] | None) -> Collection[str]:
    names = list(STEPS if steps is None else steps)
    unknown = [name for name in names if name not in STEPS]
    if unknown:
        raise InvalidInput.about("steps", got=unknown, expected="some of " + ", ".join(STEPS))
    return names


def _honest(inputs: FloatArray | None, oracle: Counting, rng: int) -> FloatArray:
    if inputs is None:
        own = as_generator(rng).spawn(1)[0]  # methods draw from the seed itself: copies are measured on other inputs
        return oracle.facts.domain.sample(own, HONEST_INPUTS, oracle.dim)
    try:
        rows = np.asarray(inputs, dtype=np.float64)
        rows = rows.reshape(len(rows), -1)
    except (TypeError, ValueError) as error:
        raise InvalidRows.about("inputs", got=type(inputs).__name__, expected="an array of numbers (n, d)") from error
    if rows.shape[1] != oracle.dim or not len(rows) or not np.isfinite(rows).all():
        raise InvalidRows.about("inputs", got=f"shape {rows.shape}", expected=f"finite (n, {oracle.dim})")
    if not oracle.facts.domain.contains(rows):
        raise InvalidRows.about("inputs", got="some outside", expected=f"all in {oracle.facts.domain.describe()}")
    return rows[:HONEST_INPUTS]


def _image(shape: tuple[int, int] | None, dim: int) -> tuple[int, int] | None:
    if shape is not None and shape[0] * shape[1] != dim:
        raise InvalidInput.about("input_shape", got=shape, expected=f"height and width of {dim} inputs")
    return shape
