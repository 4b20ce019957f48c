"""Try every default defense on a local copy, and see what it leaves and what it costs honest users.

The copy stands for the model: the recovered network answering in the same digits, or the local file. The real target
is asked nothing. A defense is put where an owner would put it: on the values of the model as they are computed. The
digits that the interface gives now are cut last: put on answers that are cut already, probabilities would be stopped
for what their values lack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from reluctant.audit.leak import NO_DEFENSE, Leak
from reluctant.audit.leaking import METHODS, leak
from reluctant.audit.served import FLOAT64_DIGITS
from reluctant.audit.sweep import Sweep
from reluctant.audit.trained import first_student, hidden_of
from reluctant.audit.trying import MORE_THAN_A_SHARE, Trial, TryOne, Watch, try_in_turn, try_on_engine
from reluctant.defenses.defense import MOST_DIGITS, labels_of
from reluctant.engines import Engine
from reluctant.numerics import FloatArray
from reluctant.oracles import Facts, Kind, Oracle
from reluctant.oracles.limits import Clock
from reluctant.oracles.links import AnswerLink

__all__ = ["StandIn", "default_defenses", "sweep"]

DECIMALS = (6, 3, 2)
LABELS_ALONE: Trial = ("labels",)
ENOUGH_TO_TELL = 10  # honest inputs: fewer may have the same label by chance
NOISE = 1e-3  # of the answers' deviation


@dataclass(frozen=True)
class StandIn:
    """What stands for the model in a sweep, and the honest inputs that it is asked.

    copy: the model before its digits are cut; `on` says what it is. last: what cuts them, as names of defenses.
    inputs: honest ones (n, d), `described` in words; `sampled` if they are random ones. link: what undoes the copy's
    answers, where they are probabilities. spread: deviation of the answers, noise is a part of it; digits: decimal
    digits of the answers, of their deviation. yardstick: the copy without noise, which networks are held against; if
    not given, the copy.
    """

    copy: Oracle
    on: str
    inputs: FloatArray
    described: str = ""
    sampled: bool = False
    link: AnswerLink = "identity"
    spread: float = 1.0
    digits: float = FLOAT64_DIGITS
    yardstick: Oracle | None = None
    last: tuple[str, ...] = ()

    @property
    def has_labels(self) -> bool:
        """True if honest inputs do not all have the same label: else the label alone would tell them nothing."""
        whole = self.yardstick or self.copy
        try:
            labels = labels_of(whole.answer(self.inputs), whole.facts.kind)
        except Exception:  # each defense tells why it could not be tried
            return True
        return len(labels) < ENOUGH_TO_TELL or bool(np.ptp(labels) > 0)


def default_defenses(
    facts: Facts, spread: float, last: Sequence[str] = (), link: AnswerLink = "identity"
) -> list[Trial]:
    """The defenses that fit a model with these answers, of this link, none at all first. A tanh makes no classes.

    Those that would change nothing are left out: more decimals than the answers have now.
    """
    noise = NOISE * spread if np.isfinite(spread) and spread > 0 else NOISE
    found: list[Trial] = [(), *((f"decimals={k}",) for k in _fewer_decimals(last))]
    found += [] if "float16" in last else [("float16",)]
    found.append((f"gaussian={noise:.1g}",))
    if facts.outputs > 1 and link != "tanh":
        first = ("softmax",) if facts.kind is Kind.VALUES else ()
        found += [first] if first else []
        found.append((*first, "top=1"))
    if facts.kind is not Kind.LABELS:
        found.append(LABELS_ALONE)
    return found


def _fewer_decimals(last: Sequence[str]) -> list[int]:
    """Than answers have now; one fewer, where they have as few as any that are tried."""
    given = [int(name.removeprefix("decimals=")) for name in last if name.startswith("decimals=")]
    fewer = [k for k in DECIMALS if k < min(given, default=MOST_DIGITS)]
    return fewer or [k - 1 for k in given if k > 0]


def sweep(
    model: StandIn,
    *,
    undefended: Leak | None = None,
    methods: Sequence[str] = METHODS,
    seconds: float,
    rng: int = 0,
    watch: Watch | None = None,
    engine: Engine | None = None,
) -> Sweep:
    """Try every default defense on what stands for a model, within this time.

    Arguments:
        model: the copy, and honest inputs.
        undefended: the row without any defense, where it is known already.
        methods: what to try.
        seconds: processor time for all of it; what one defense does not need is left to the others.
        watch: told how many of how many are done, and which comes next.
        engine: "dask://host:port", or a Client: defenses are tried at the same time, on its workers.
    """
    trials = [
        names for names in default_defenses(model.copy.facts, model.spread, model.last, model.link)
        if names != LABELS_ALONE or model.has_labels
    ]  # fmt: skip
    watch, clock = watch or _unwatched, Clock(seconds, len(trials) + 1)
    known, try_one = _prepared(model, undefended, methods, clock, rng, partial(watch, 0, len(trials)))
    try_all = try_in_turn if engine is None else partial(try_on_engine, engine)
    cells = try_all(model.copy, trials, known, try_one, clock.left or 0.0, watch)
    rows = tuple(cell for cell in cells if isinstance(cell, Leak))
    failed = tuple(cell for cell in cells if not isinstance(cell, Leak))
    domain = model.copy.facts.domain if model.sampled else None
    return Sweep(model.on, rows, model.digits, model.described, failed, model.sampled, len(model.inputs), domain)


def _prepared(
    model: StandIn, undefended: Leak | None, methods: Sequence[str], clock: Clock, rng: int,
    begin: Callable[[str], None],
) -> tuple[Mapping[Trial, Leak], TryOne]:  # fmt: skip
    """The rows that are known, and how one defense is tried: beside the first student, where some are trained."""
    known: dict[Trial, Leak] = {} if undefended is None else {(): undefended}
    try_one = partial(
        leak, inputs=model.inputs, link=model.link, methods=methods, yardstick=model.yardstick, last=model.last, rng=rng
    )
    if "train" not in methods:
        return known, try_one
    begin(NO_DEFENSE)
    student = first_student(model.copy, try_one, undefended, clock.share(MORE_THAN_A_SHARE))
    known = {names: replace(row, trained=student) for names, row in known.items()}
    return known, partial(try_one, hidden=hidden_of(student), first=student)


def _unwatched(done: int, of: int, doing: str) -> None:
    pass
