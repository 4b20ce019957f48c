"""`audit`: the verb, the list of its steps, and `Audit`, its result."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np

from reluctant._notebook import html_table
from reluctant.audit.budget import BUDGET, SECONDS
from reluctant.audit.expense import PriceGiven
from reluctant.audit.findings import Findings, Settings, StepFunction
from reluctant.audit.record import AuditRecord, State, StepFacts, VerdictFacts
from reluctant.audit.record_entries import make_record
from reluctant.audit.step_run import StepRun, Watch
from reluctant.audit.steps.adversarial_steps import flip_inputs, look_at_linearity
from reluctant.audit.steps.defense_step import try_defenses
from reluctant.audit.steps.health_step import look_at_health
from reluctant.audit.steps.network_steps import (
    compare_with_truth,
    confirm_part,
    extract_network,
    learn_network,
    train_network,
)
from reluctant.audit.steps.picture_steps import ask_line, ask_plane, measure_errors
from reluctant.audit.steps.span_step import look_for_span
from reluctant.audit.target_view import seen
from reluctant.audit.verdict import error_diagnosis, judge
from reluctant.engines import Engine
from reluctant.errors import InvalidInput, InvalidRows, ReluctantError
from reluctant.messages import Diagnosis
from reluctant.numerics import FloatArray, as_generator
from reluctant.oracles import Counting, Facts, Oracle, Rows, Wrapper
from reluctant.oracles.http.security import shown_target
from reluctant.oracles.keywords import OpeningKeywords, ReachingKeywords, RunPrecision
from reluctant.oracles.links import AnswerLink
from reluctant.oracles.open import Target, opened_target
from reluctant.oracles.transcript import Transcript

MODEL_FILES = (".onnx", ".npz")
HONEST_INPUTS = 1000  # drawn from the domain where none are given

STEPS: Mapping[str, StepFunction] = {
    "health": look_at_health,
    "span": look_for_span,
    "extraction": extract_network,
    "part": confirm_part,
    "learning": learn_network,
    "training": train_network,
    "flip": flip_inputs,
    "linearity": look_at_linearity,
    "line": ask_line,
    "plane": ask_plane,
    "errors": measure_errors,
    "truth": compare_with_truth,
    "defenses": try_defenses,
}


@dataclass(frozen=True, repr=False)
class Audit:
    """What an audit found. `ok`: it ran to its end. recorded: there is a transcript of it.

    written: names of the files that it goes to, "record" and "page", where they are known.
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
        """That were looked at."""
        return (0 if self.facts is None else self.facts.outputs) - len(self.known.without)

    @property
    def record(self) -> AuditRecord:
        """All that was found, as typed facts."""
        return make_record(self)

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
    """Find out what can be taken from a model through its answers.

    Arguments:
        oracle: the target: an oracle, or anything that `open_oracle` takes.
        budget: most rows that may be asked; the steps share it.
        rng: seed of all random choices.
        inputs: honest inputs (n, d) to measure costs on and to start from; else they are drawn from the domain.
        input_shape: height and width, if inputs are images.
        classes: names of the outputs.
        price: {"per thousand": 1.5, "currency": "EUR"}: what queries cost.
        rate: rows a second that the interface allows: what an attack takes is told as a time too. Nothing is slowed.
        file: the model's own file, if there is one: for the truth, and for the defense sweep where nothing was
            recovered. No method sees it. If not given, the target itself where it is a file.
        precision: how that file is evaluated.
        defense: defenses between that file and the answers, as `defend` takes them.
        percent: that file answers probabilities in percent, and the target was opened with percent=True. Percentages of
            a target that was not are found, and divided by 100.
        link: how to read the answers ("softmax", "sigmoid", ...); probabilities are read through their softmax by
            themselves, and through a sigmoid where they are seen to be curved by one.
        output: index of the one output to look at; all if not given.
        seconds: processor time that extraction, learning and the defense sweep share.
        steps: some of `STEPS`; all if not given.
        repeat: the command that repeats it, for the record.
        watch: told of progress.
        engine: "dask://host:port", or a Client of dask.distributed: defenses are tried on its workers.
        opening: other keywords of `open_oracle`, for this call: dim, domain, transcript, serving, ...

    Ctrl-C ends it early with a record of what is known by then.
    """
    wanted = _wanted_steps(list(STEPS if steps is None else steps), STEPS)
    _check_seconds(seconds)
    _check_price(price)
    check_rate(rate)
    keywords = cast(OpeningKeywords, dict(opening))
    if not isinstance(oracle, Oracle):
        keywords |= {"budget": budget, "precision": precision, "percent": percent, "engine": engine}
        file = own_file(oracle) if file is None else file
    with opened_target(oracle, keywords) as opened:
        if output is None:
            _check_classes(classes, opened.outputs)
        seen(opened, link, output)  # a link or output that does not fit is found before anything is asked,
        as_generator(rng)  # and so is a seed
        given = Settings(
            _honest_inputs(inputs, opened, rng), inputs is None, _image_shape(input_shape, opened.dim),
            None if file is None else Path(file), precision, link, output, seconds,
            partial(watch or _unwatched, "defenses"), tuple(defense), engine, percent,
        )  # fmt: skip
        run = StepRun(opened, Findings(given, link), budget, rng, watch or _unwatched)
        ended = run.go(STEPS, wanted)
        return Audit(
            facts=opened.facts, rows=dict(opened.ledger.stages), known=run.known, steps=tuple(run.steps), ok=ended,
            seed=rng, budget=budget, price=price, rate=rate, classes=tuple(classes), repeat=repeat,
            recorded=_is_recorded(opened),
        )  # fmt: skip


def own_file(target: object) -> Path | None:
    """The model's own file, if that is what the target is."""
    path = Path(target) if isinstance(target, str | Path) else None
    return path if path is not None and path.suffix in MODEL_FILES and path.is_file() else None


def not_opened(target: str, error: ReluctantError, *, seed: int, budget: int, repeat: str) -> Audit:
    """The record of a target that could not be opened: what could not be learned, and why."""
    failed, not_open = error_diagnosis(error), Diagnosis("target-not-open")
    steps = (
        StepFacts("open", State.FAILED, failed),
        *(StepFacts(name, State.SKIPPED, not_open) for name in STEPS),
    )
    known = Findings(Settings(np.empty((0, 0))), ended={"open": failed})
    return Audit(None, {}, known, steps, ok=False, seed=seed, budget=budget, repeat=repeat, name=shown_target(target))


def _is_recorded(oracle: Oracle) -> bool:
    """True if answers are kept in a transcript."""
    while isinstance(oracle, Wrapper):
        if isinstance(oracle, Transcript):
            return True
        oracle = oracle.inner
    return False


def _check_seconds(seconds: float) -> None:
    """A time that can run out."""
    if not (np.isfinite(seconds) and seconds > 0):
        raise InvalidInput.about("seconds", got=seconds, expected="a positive number")


def _check_price(price: PriceGiven | None) -> None:
    """A price for a thousand queries, before anything is spent."""
    each = None if price is None else price.get("per thousand")
    if price is not None and not (isinstance(each, int | float) and 0 <= each < np.inf):
        raise InvalidInput.about("price", got=each, expected="{'per thousand': a finite number, at least 0}")


def check_rate(rate: float | None, name: str = "rate") -> None:
    """A rate that a time follows from."""
    if rate is not None and not 0 < rate < np.inf:
        raise InvalidInput.about(name, got=rate, expected="a finite number above 0")


def _check_classes(classes: Sequence[str], outputs: int) -> None:
    """A name for each output, or none at all."""
    if classes and len(classes) != outputs:
        raise InvalidInput.about("classes", got=f"{len(classes)} names", expected=f"one for each of {outputs} outputs")


def _honest_inputs(inputs: FloatArray | None, oracle: Counting, rng: int) -> FloatArray:
    """The inputs given, as rows inside the domain; where there are none, rows drawn from it."""
    if inputs is None:
        own = as_generator(rng).spawn(1)[0]  # methods draw from the seed itself: copies are measured on other inputs
        return oracle.facts.domain.sample(own, HONEST_INPUTS, oracle.dim)
    rows = _as_rows(inputs)
    if rows.shape[1] != oracle.dim or not len(rows):
        raise InvalidRows.about("inputs", got=f"shape {rows.shape}", expected=f"(n, {oracle.dim})")
    if not np.isfinite(rows).all():
        wrong = int((~np.isfinite(rows).all(axis=1)).sum())
        raise InvalidRows.about("inputs", got=f"NaN or inf in {wrong} of {len(rows)} rows", expected="finite numbers")
    if not oracle.facts.domain.contains(rows):
        raise InvalidRows.about("inputs", got="some outside", expected=f"all in {oracle.facts.domain.describe()}")
    return rows[:HONEST_INPUTS]


def _as_rows(inputs: FloatArray) -> FloatArray:
    try:
        rows = np.asarray(inputs, dtype=np.float64)
        return rows.reshape(len(rows), -1)
    except (TypeError, ValueError) as error:
        raise InvalidRows.about("inputs", got=type(inputs).__name__, expected="an array of numbers (n, d)") from error


def _image_shape(shape: tuple[int, int] | None, dim: int) -> tuple[int, int] | None:
    """Height and width, if they are those of the inputs."""
    if shape is not None and shape[0] * shape[1] != dim:
        raise InvalidInput.about("input_shape", got=shape, expected=f"height and width of {dim} inputs")
    return shape


def _wanted_steps(steps: Collection[str], known: Collection[str]) -> Collection[str]:
    """The steps asked for, if there are such."""
    unknown = [name for name in steps if name not in known]
    if unknown:
        raise InvalidInput.about("steps", got=unknown, expected="some of " + ", ".join(known))
    return steps


def _unwatched(what: str, done: int, of: int, doing: str) -> None:
    pass
