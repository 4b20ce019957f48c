"""`audit`: the verb, its steps in order, each within its share of the budget, and `Audit`, its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np

from reluctant._notebook import html_table
from reluctant.audit.budget import BUDGET, SECONDS, SHARES, PriceGiven, reserve, seconds_for, share, with_extraction
from reluctant.audit.defense_sweep import try_defenses
from reluctant.audit.facts import State
from reluctant.audit.findings import AuditedTarget, Findings, HeldColumns, Settings, Skip, StepFunction
from reluctant.audit.record import AuditRecord, LeakKind, StepFacts, VerdictFacts
from reluctant.audit.record_entries import make_record
from reluctant.audit.steps.probe_steps import ask_line, ask_plane, flip_inputs, measure_errors, measure_linearity
from reluctant.audit.steps.recovery_steps import (
    check_interface,
    compare_with_truth,
    confirm_part,
    extract_network,
    find_span,
    learn_network,
    span_from_labels,
    train_network,
)
from reluctant.audit.verdict import clipped_inputs, ending_of, error_diagnosis, judge
from reluctant.engines import Engine
from reluctant.errors import InvalidAnswer, InvalidInput, InvalidRows, ReluctantError, TranscriptMismatch
from reluctant.messages import Diagnosis
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, as_generator
from reluctant.oracles import Counting, Facts, Oracle, Rows
from reluctant.oracles.base import check_rows, layers
from reluctant.oracles.http.security import shown_target
from reluctant.oracles.input_units import FEWEST_SAMPLES, InputUnits, Scaled
from reluctant.oracles.keywords import OpeningKeywords, ReachingKeywords, RunPrecision
from reluctant.oracles.ledger import Limit
from reluctant.oracles.links import AnswerLink
from reluctant.oracles.open import Target, opened_target
from reluctant.oracles.transcript import Transcript
from reluctant.oracles.wrappers import Held
from reluctant.results import Ended, Outcome

MODEL_FILES = (".onnx", ".npz")
HONEST_INPUTS = 1000  # drawn from the domain where none are given

STEPS: Mapping[str, StepFunction] = {
    "health": check_interface,
    "span": find_span,
    "extraction": extract_network,
    "part": confirm_part,
    "learning": learn_network,
    "training": train_network,
    "flip": flip_inputs,
    "linearity": measure_linearity,
    "line": ask_line,
    "plane": ask_plane,
    "errors": measure_errors,
    "truth": compare_with_truth,
    "defenses": try_defenses,
}


@dataclass(frozen=True, repr=False)
class Audit:
    """The findings of an audit. `ok`: it ran to its end. recorded: it has a transcript.

    written: the files of its record and page, as "record" and "page", if known. location: the file, module or address
    of the target, if it has one. gates: leaks that must not be found. began: the time of its start, ISO 8601 in UTC.
    """

    facts: Facts | None
    rows: Mapping[str, Rows]
    known: Findings
    steps: tuple[StepFacts, ...]
    ok: bool
    seed: int
    budget: int
    price: PriceGiven | None = None
    classes: tuple[str, ...] = ()
    repeat: str = ""
    name: str = "target"
    rate: float | None = None
    recorded: bool = False
    written: Mapping[str, str | None] = field(default_factory=dict)
    location: str | None = None
    gates: tuple[LeakKind, ...] = ()
    began: str | None = None

    @property
    def verdict(self) -> VerdictFacts:
        """What leaks."""
        return judge(self.known)

    def __repr__(self) -> str:
        verdict = self.verdict
        leaks = f"leaks: {', '.join(verdict.leaks) or 'none found'}"
        unsettled = [f"not settled: {', '.join(verdict.unsettled)}"] if verdict.unsettled else []
        return f"Audit({'; '.join([verdict.level, leaks, *unsettled, f'queries={self.queries}'])})"

    def _repr_html_(self) -> str:
        verdict = self.verdict
        facts = {
            "leaks": list(verdict.leaks) or "none found",
            "not settled": list(verdict.unsettled),
            "queries": f"{self.queries:,} of {self.budget:,}",
            "steps": {step.step: str(step.state) for step in self.steps},
        }
        return html_table(f"Audit: {verdict.level}", facts)

    @property
    def queries(self) -> int:
        """Rows that reached the target."""
        return sum(self.rows.values(), Rows()).queries

    @property
    def outputs(self) -> int:
        """Outputs that the audit measured."""
        return (0 if self.facts is None else self.facts.outputs) - len(self.known.target.without)

    @property
    def record(self) -> AuditRecord:
        """All that was found, as typed facts."""
        return make_record(self)

    @property
    def copy(self) -> ReLUNetwork | None:
        """The best copy, exact or close, in the target's own inputs and with its link; None if there is none."""
        found = self.known.copy
        if found is None:
            return None
        return found.in_inputs_of(self.known.given.units).as_written(self.known.written_link)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain data, as docs/audit-record.md describes it."""
        return self.record.to_dict()

    def to_json(self) -> str:
        """One JSON object."""
        return self.record.to_json()

    def write(self, path: str | Path) -> None:
        """Write the JSON form."""
        self.record.write(path)


def audit(
    oracle: Target,
    *,
    budget: int = BUDGET,
    rng: int = 0,
    inputs: FloatArray | None = None,
    input_shape: tuple[int, int] | None = None,
    integers: Sequence[int] = (),
    classes: Sequence[str] = (),
    price: PriceGiven | None = None,
    rate: float | None = None,
    file: str | Path | None = None,
    precision: RunPrecision = "as-served",
    defense: Sequence[str] = (),
    percent: bool = False,
    link: AnswerLink = "identity",
    output: int | None = None,
    seconds: float = SECONDS,
    steps: Iterable[str] | None = None,
    repeat: str = "",
    watch: Watch | None = None,
    engine: Engine | None = None,
    **opening: Unpack[ReachingKeywords],
) -> Audit:
    """Measure what a model gives away through its answers.

    Arguments:
        oracle: the target: an oracle, or anything that `open_oracle` takes.
        budget: most rows for all steps together.
        rng: seed of all random choices.
        inputs: typical rows (n, d), to start from and to measure what defenses cost honest users. By default they are
            drawn from the domain.
        input_shape: height and width, if inputs are images.
        integers: columns in which the interface takes whole numbers alone. They stay at the middle of the inputs, and
            the audit examines the target as a function of the other columns. It does not use the file then, because
            truth and defenses need all columns.
        classes: names of the outputs.
        price: {"per thousand": 1.5, "currency": "EUR"}: what queries cost.
        rate: rows a second that the interface allows, to compute the time of an attack. Nothing is slowed.
        file: the model's own file, by default the target itself if it is one. It serves the comparison with the truth,
            and the defense sweep if nothing was recovered. No method sees it.
        precision: how to evaluate that file.
        defense: defenses between that file and the answers, as `defend` takes them.
        percent: that file answers probabilities in percent, and the target was opened with percent=True. Otherwise the
            audit recognises percentages and divides them by 100.
        link: how to read the answers ("softmax", "sigmoid", ...). By default the audit recognises a softmax, and a
            sigmoid that curves the answers visibly.
        output: index of the one output to use; all by default.
        seconds: processor time that extraction, learning and the defense sweep share.
        steps: some of `STEPS`; all by default.
        repeat: the command that repeats it, for the record.
        watch: gets progress.
        engine: "dask://host:port", or a Client of dask.distributed: its workers try the defenses.
        opening: other keywords of `open_oracle`, for this call: dim, domain, transcript, serving, ...

    Ctrl-C ends it early with a record of the findings so far.
    """
    wanted = list(STEPS if steps is None else steps)
    unknown = [name for name in wanted if name not in STEPS]
    if unknown:
        raise InvalidInput.about("steps", got=unknown, expected="some of " + ", ".join(STEPS))
    if not (np.isfinite(seconds) and seconds > 0):
        raise InvalidInput.about("seconds", got=seconds, expected="a positive number")
    each = None if price is None else price.get("per thousand")
    if price is not None and not (isinstance(each, int | float) and 0 <= each < np.inf):
        raise InvalidInput.about("price", got=each, expected="{'per thousand': a finite number, at least 0}")
    check_rate(rate)
    keywords, began = cast(OpeningKeywords, dict(opening)), _now()
    held: HeldColumns = ((), ())
    if not isinstance(oracle, Oracle):
        keywords |= {"budget": budget, "precision": precision, "percent": percent, "engine": engine}
        file = own_file(oracle) if file is None else file
    with opened_target(oracle, keywords) as whole:
        if len(integers):
            whole, inputs, held = _held(whole, inputs, integers)
            file = None
        opened, units, inputs = _in_units(whole, inputs)
        if output is None and classes and len(classes) != opened.outputs:
            expected = f"one for each of {opened.outputs} outputs"
            raise InvalidInput.about("classes", got=f"{len(classes)} names", expected=expected)
        AuditedTarget(link).seen(opened, output)  # a link or output that does not fit shows before anything is asked,
        as_generator(rng)  # and so is a seed
        if input_shape is not None and input_shape[0] * input_shape[1] != opened.dim:
            raise InvalidInput.about(
                "input_shape", got=input_shape, expected=f"height and width of {opened.dim} inputs"
            )
        given = Settings(
            _honest_inputs(inputs, opened, rng), inputs is None, input_shape,
            None if file is None else Path(file), precision, link, output, seconds,
            partial(watch or _unwatched, "defenses"), tuple(defense), engine, percent, units, held,
        )  # fmt: skip
        run = StepRun(opened, Findings(given, AuditedTarget(link)), budget, rng, watch or _unwatched)
        ended = run.go(STEPS, wanted)
        return Audit(
            facts=opened.facts, rows=dict(opened.ledger.stages), known=run.known, steps=tuple(run.steps), ok=ended,
            seed=rng, budget=budget, price=price, rate=rate, classes=tuple(classes), repeat=repeat,
            recorded=any(isinstance(layer, Transcript) for layer in layers(opened)), location=_location(oracle),
            began=began,
        )  # fmt: skip


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _in_units(opened: Counting, inputs: FloatArray | None) -> tuple[Counting, InputUnits | None, FloatArray | None]:
    """The target and the honest inputs in units of these, if their columns differ; else both as they are."""
    samples = opened.facts.samples if inputs is None else _as_rows(inputs)
    if samples is None:
        return opened, None, None
    usable = samples.shape[1] == opened.dim and len(samples) >= FEWEST_SAMPLES and np.isfinite(samples).all()
    usable = usable and np.ptp(samples, axis=0).any()
    units = InputUnits.of(replace(opened.facts, samples=samples)) if usable else None
    if units is None or units.are_plain:
        return opened, None, samples
    scaled = Counting(Scaled(opened.inner, units, opened.facts.domain, samples), opened.ledger)
    return scaled, units, units.reduced(samples)


def _held(
    opened: Counting, inputs: FloatArray | None, integers: Sequence[int]
) -> tuple[Counting, FloatArray | None, HeldColumns]:
    """The target and the inputs without these columns, which stay at whole numbers in the middle of the inputs."""
    dim, columns = opened.dim, sorted({int(k) for k in integers})
    if len(columns) != len(integers) or not 0 <= columns[0] <= columns[-1] < dim or len(columns) == dim:
        raise InvalidInput.about(
            "integers", got=list(integers), expected=f"some indices from 0 to {dim - 1}, each once, not all of them"
        )
    samples = opened.facts.samples if inputs is None else _as_rows(inputs)
    if samples is not None and samples.shape[1] != dim:
        raise InvalidRows.about("inputs", got=f"shape {samples.shape}", expected=f"(n, {dim})")
    rows = opened.facts.domain.sample(np.random.default_rng(0), HONEST_INPUTS, dim) if samples is None else samples
    values = np.rint(np.median(rows[:, columns], axis=0))
    others = None if samples is None else np.delete(samples, columns, axis=1)
    held = Held(opened.inner, columns, values, opened.facts.domain)
    return Counting(held, opened.ledger, unread=opened.unread), others, (tuple(columns), tuple(map(float, values)))


def own_file(target: object) -> Path | None:
    """The model's own file, if the target is one."""
    path = Path(target) if isinstance(target, str | Path) else None
    return path if path is not None and path.suffix in MODEL_FILES and path.is_file() else None


def _location(target: object) -> str | None:
    """The file, module or address of a target, as it may be shown; None of an object."""
    return shown_target(str(target)) if isinstance(target, str | Path) else None


def not_opened(target: str, error: ReluctantError, *, seed: int, budget: int, repeat: str) -> Audit:
    """The record of a target that could not be opened: what could not be learned, and why."""
    failed, not_open = error_diagnosis(error), Diagnosis("target-not-open")
    steps = (
        StepFacts("open", State.FAILED, failed),
        *(StepFacts(name, State.SKIPPED, not_open) for name in STEPS),
    )
    known = Findings(Settings(np.empty((0, 0))), ended={"open": failed})
    return Audit(
        None, {}, known, steps, ok=False, seed=seed, budget=budget, repeat=repeat, name=shown_target(target),
        location=_location(target), began=_now(),
    )  # fmt: skip


def check_rate(rate: float | None, name: str = "rate") -> None:
    """A rate that a time follows from."""
    if rate is not None and not 0 < rate < np.inf:
        raise InvalidInput.about(name, got=rate, expected="a finite number above 0")


def _honest_inputs(inputs: FloatArray | None, oracle: Counting, rng: int) -> FloatArray:
    """The inputs given, as rows inside the domain; where there are none, rows drawn from it."""
    if inputs is None:
        own = as_generator(rng).spawn(1)[0]  # methods draw from the seed itself: copies are measured on other inputs
        return oracle.facts.domain.sample(own, HONEST_INPUTS, oracle.dim)
    return check_rows(_as_rows(inputs), oracle.dim, oracle.facts.domain, "inputs")[:HONEST_INPUTS]


def _as_rows(inputs: FloatArray) -> FloatArray:
    try:
        rows = np.asarray(inputs, dtype=np.float64)
        return rows.reshape(len(rows), -1)
    except (TypeError, ValueError) as error:
        raise InvalidRows.about("inputs", got=type(inputs).__name__, expected="an array of numbers (n, d)") from error


def _unwatched(what: str, done: int, of: int, doing: str) -> None:
    pass


# ---- the steps in order

AS_ANSWERED = ("training",)  # steps that take probabilities as they are; the span does where labels give it

# Called with what begins: "audit" or "defenses", how many parts are done, of how many, and the name of the next one.
Watch = Callable[[str, int, int, str], None]


@dataclass
class StepRun:
    """One audit under way: the steps done, the findings, rows that passed."""

    oracle: Counting
    known: Findings
    budget: int
    seed: int
    watch: Watch
    steps: list[StepFacts] = field(default_factory=list)
    passed: int = 0
    answered: bool = False  # one question at least
    unusable_in: str = ""  # the step that found that answers are of a kind that no step can use

    def go(self, functions: Mapping[str, StepFunction], wanted: Collection[str]) -> bool:
        """Run the steps that are wanted; False if it was stopped from outside."""
        stopped = False
        for name, function in functions.items():
            if not stopped:
                self.watch("audit", len(self.steps), len(functions), name)
            if name not in wanted:
                record = StepFacts(name, State.SKIPPED, Diagnosis("left-out"))
            else:
                record = StepFacts(name, State.NOT_BEGUN) if stopped else self.step(name, function)
            stopped = stopped or record.state is State.STOPPED
            self.steps.append(record)
            ended = {} if record.diagnosis is None else {name: record.diagnosis}
            states = {**self.known.states, name: record.state}
            self.known = replace(self.known, states=states, ended={**self.known.ended, **ended})
        if not stopped:
            self.watch("audit", len(functions), len(functions), "")
        return not stopped

    def step(self, name: str, function: StepFunction) -> StepFacts:
        """One step within its share, and what it spent of it."""
        rows, before, start = self.share(name), self.oracle.queries, time.perf_counter()
        if rows == 0 and name in SHARES:
            self.known = replace(self.known, without_rows=(*self.known.without_rows, name))
            return StepFacts(name, State.SKIPPED, Diagnosis("no-rows-left"), allowed=0)
        if self.unusable_in and name in SHARES:
            return StepFacts(name, State.SKIPPED, Diagnosis("unusable-answers", {"step": self.unusable_in}), allowed=0)
        allowance = Limit(rows, seconds_for(name, self.known.given.seconds), name)
        state, diagnosis = self.outcome(name, function, allowance)
        self.passed += allowance.passed
        self.answered = self.answered or allowance.answered > 0
        if allowance.time_up:
            self.known = replace(self.known, timed_out=(*self.known.timed_out, name))
        spent, seconds = self.oracle.queries - before, time.perf_counter() - start
        return StepFacts(name, state, diagnosis, spent, seconds, rows if name in SHARES else None)

    def outcome(self, name: str, function: StepFunction, allowance: Limit) -> tuple[State, Diagnosis | None]:
        """Run a step: its finding becomes known, its failure a state and a reason."""
        try:
            with allowance.running():
                new = function(allowance.of(self.view(name)), self.known, self.seed)
        except Skip as reason:
            self.known = replace(self.known, refused=(*self.known.refused, *([name] if reason.settles else [])))
            return State.SKIPPED, reason.diagnosis
        except KeyboardInterrupt:
            return State.STOPPED, None
        except TranscriptMismatch:
            raise  # a mistake at the keyboard: every step would stumble over it
        except Exception as error:  # whatever a target or a method raises, the rest goes on
            # Answers of the wrong type or shape, and never another one: no step can use them.
            never = allowance.in_vain and not self.answered
            self.unusable_in = name if never and type(error) is InvalidAnswer else ""
            return State.FAILED, error_diagnosis(error)
        if allowance.in_vain and (failed := _failed(new)):
            return State.FAILED, failed
        self.known = replace(self.known, **new)
        self.amend(new)
        if allowance.time_up:
            return State.DONE, Diagnosis("time-over")
        return State.DONE, self.diagnosis(name, new)

    def amend(self, new: Mapping[str, Any]) -> None:
        """Correct how an earlier step ended, where this one knows more of its finding."""
        amended = {step.step: self.diagnosis(step.step, new) for step in self.steps if step.step in new}
        self.steps = [
            replace(step, diagnosis=amended[step.step]) if step.step in amended else step for step in self.steps
        ]
        ended = {name: each for name, each in {**self.known.ended, **amended}.items() if each is not None}
        self.known = replace(self.known, ended=ended)

    def diagnosis(self, name: str, new: Mapping[str, Any]) -> Diagnosis | None:
        """How the method of a step ended; None where there is nothing to say."""
        if new.get("clipped") is not None:
            return clipped_inputs(new["clipped"])
        ended = new.get(name)
        return ending_of(ended, self.known) if isinstance(ended, Ended) else None

    def view(self, name: str) -> Counting:
        """The target as a step sees it; the first looks at the bare interface."""
        if name == "health":
            return self.oracle
        target, output = self.known.target, self.known.given.output
        labels = name == "span" and span_from_labels(self.known, self.oracle.outputs - len(target.without))
        as_answered = output is None and (name in AS_ANSWERED or labels)
        return (replace(target, link="identity") if as_answered else target).seen(self.oracle, output)

    def share(self, name: str) -> int:
        """Rows of a step: by what was asked, not sent, so that a replayed audit shares as the first one did."""
        left = self.budget - self.passed
        kept = reserve(self.budget, self.oracle.dim, explained=self.oracle.explained is not None)
        rows = share(name, left, kept)
        return with_extraction(name, rows, left, self.known.rows_needed)


def _failed(new: Mapping[str, Any]) -> Diagnosis | None:
    """The target's message where it failed a method from its first query on; None where it did not."""
    found = [each for value in new.values() for each in (value if isinstance(value, tuple) else (value,))]
    ended = [each for each in found if isinstance(each, Ended) and each.outcome is Outcome.TARGET_FAILED]
    if not ended:
        return None
    message = ended[0].error or ended[0].outcome.happened
    return Diagnosis("step-failed", {"error": Outcome.TARGET_FAILED.slug, "message": message})
