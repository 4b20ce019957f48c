"""`audit`: what it is given, its list of steps, and the record of what they find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Unpack, cast

import numpy as np

from reluctant.audit.audit_value import Audit, StepRecord
from reluctant.audit.defending import try_defenses
from reluctant.audit.endings import error_diagnosis
from reluctant.audit.given import (
    HONEST_INPUTS,
    check_classes,
    check_price,
    check_rate,
    check_seconds,
    honest_inputs,
    image_shape,
    wanted_steps,
)
from reluctant.audit.known import Given, Known, StepFunction
from reluctant.audit.looking import look_at_health, look_for_span
from reluctant.audit.pictures import ask_line, ask_plane, measure_errors
from reluctant.audit.probing import flip_inputs, look_at_linearity
from reluctant.audit.rebuilding import compare_with_truth, confirm_part, extract_network, learn_network
from reluctant.audit.recovered import Price
from reluctant.audit.running import Run, Watch
from reluctant.audit.seeing import seen
from reluctant.audit.shares import BUDGET, SECONDS
from reluctant.audit.states import State
from reluctant.audit.stopped import is_recorded
from reluctant.audit.training import train_network
from reluctant.engines import Engine
from reluctant.errors import ReluctantError
from reluctant.messages import Diagnosis
from reluctant.numerics import FloatArray, as_generator
from reluctant.oracles import Oracle
from reluctant.oracles.http.security import shown_target
from reluctant.oracles.keywords import OpeningKeywords, ReachingKeywords
from reluctant.oracles.links import AnswerLink
from reluctant.oracles.open import RunPrecision, Target, opened_target

__all__ = ["HONEST_INPUTS", "STEPS", "Watch", "audit", "not_opened", "own_file"]

MODEL_FILES = (".onnx", ".npz")

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


def audit(
    oracle: Target,
    *,
    budget: int = BUDGET,
    rng: int = 0,
    inputs: FloatArray | None = None,
    input_shape: tuple[int, int] | None = None,
    classes: Sequence[str] = (),
    price: Price | None = None,
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
    wanted = wanted_steps(list(STEPS if steps is None else steps), STEPS)
    check_seconds(seconds)
    check_price(price)
    check_rate(rate)
    keywords = cast(OpeningKeywords, dict(opening))
    if not isinstance(oracle, Oracle):
        keywords |= {"budget": budget, "precision": precision, "percent": percent, "engine": engine}
        file = own_file(oracle) if file is None else file
    with opened_target(oracle, keywords) as opened:
        if output is None:
            check_classes(classes, opened.outputs)
        seen(opened, link, output)  # a link or output that does not fit is found before anything is asked,
        as_generator(rng)  # and so is a seed
        given = Given(
            honest_inputs(inputs, opened, rng), inputs is None, image_shape(input_shape, opened.dim),
            None if file is None else Path(file), precision, link, output, seconds,
            partial(watch or _unwatched, "defenses"), tuple(defense), engine, percent,
        )  # fmt: skip
        run = Run(opened, Known(given, link), budget, rng, watch or _unwatched)
        ended = run.go(STEPS, wanted)
        return Audit(
            facts=opened.facts, rows=dict(opened.ledger.stages), known=run.known, steps=tuple(run.steps), ok=ended,
            seed=rng, budget=budget, price=price, rate=rate, classes=tuple(classes), repeat=repeat,
            recorded=is_recorded(opened),
        )  # fmt: skip


def own_file(target: object) -> Path | None:
    """The model's own file, if that is what the target is."""
    path = Path(target) if isinstance(target, str | Path) else None
    return path if path is not None and path.suffix in MODEL_FILES and path.is_file() else None


def not_opened(target: str, error: ReluctantError, *, seed: int, budget: int, repeat: str) -> Audit:
    """The record of a target that could not be opened: what could not be learned, and why."""
    why, not_open = f"{error} [{error.slug}]", Diagnosis("target-not-open")
    steps = (
        StepRecord("open", State.FAILED, why, diagnosis=error_diagnosis(error)),
        *(StepRecord(name, State.SKIPPED, "The target is not open.", diagnosis=not_open) for name in STEPS),
    )
    known = Known(Given(np.empty((0, 0))), said={"open": f"None. {error}"})
    return Audit(None, {}, known, steps, ok=False, seed=seed, budget=budget, repeat=repeat, name=shown_target(target))


def _unwatched(what: str, done: int, of: int, doing: str) -> None:
    pass
