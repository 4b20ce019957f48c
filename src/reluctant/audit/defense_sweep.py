"""The sweep: every default defense on a local copy, with its cost to honest users.

The copy stands for the model: the recovered network answering in the same digits, or the local file. The real target
is asked nothing. A defense is put where an owner would put it: on the values of the model as they are computed. The
digits that the interface gives now are cut last: put on answers that are cut already, probabilities would be stopped
for what their values lack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from reluctant.audit.copy_facts import Bounds
from reluctant.audit.defense_result import NO_DEFENSE, DefenseResult, Rebuilt
from reluctant.audit.defense_trial import BUDGET, METHODS, SECONDS, try_defense
from reluctant.audit.sweep_facts import FailedDefense, StandsFor, SweepFacts, SweepInputs
from reluctant.defenses.defense import MOST_DIGITS, labels_of
from reluctant.domains import Domain
from reluctant.engines import Engine, as_they_end, in_order
from reluctant.interface import Interface
from reluctant.interface.noise import UNIFORM_SD
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Facts, Kind, Oracle
from reluctant.oracles.ledger import Clock
from reluctant.oracles.links import AnswerLink

DefenseNames: TypeAlias = tuple[str, ...]  # the first next to the model
Cell: TypeAlias = DefenseResult | FailedDefense
TryOne: TypeAlias = Callable[..., DefenseResult]
Watch: TypeAlias = Callable[[int, int, str], None]

DECIMALS = (6, 3, 2)
LABELS_ALONE: DefenseNames = ("labels",)
ENOUGH_TO_TELL = 10  # honest inputs: fewer may have the same label by chance
NOISE = 1e-3  # of the answers' deviation
MORE_THAN_A_SHARE = 2.0  # of the time left for each defense: most need less than theirs
FLOAT64_DIGITS = -float(np.log10(unit_roundoff("float64")))
FORMAT_ROUNDINGS = 16.0  # noise that is no more than so many roundings of a format is its own
TELLS_LESS = ("softmax", "top", "labels")  # defenses after which users get other answers, by how much these tell


@dataclass(frozen=True)
class Sweep:
    """Results of the sweep in the order tried, and the cheapest defense that stops a copy.

    on: what stood for the model. base: digits of its answers without any defense. inputs: how many honest ones;
    domain: what they were drawn from, None of those given. failed: defenses that could not be tried.
    """

    on: StandsFor
    rows: tuple[DefenseResult, ...]
    base: float
    inputs: int = 0
    domain: Domain | None = None
    failed: tuple[FailedDefense, ...] = ()

    @property
    def cheapest(self) -> DefenseResult | None:
        """The defense that lets no verified or accurate copy through and costs honest users least; None if none."""
        stopping = [row for row in self.rows if row.defense != NO_DEFENSE and row.stopped]
        return min(stopping, key=_cost, default=None) if self.open else None

    @property
    def open(self) -> bool | None:
        """True if the model can be copied without any defense, None if that is not settled."""
        bare = [row.stopped for row in self.rows if row.defense == NO_DEFENSE]
        return not bare[0] if bare and bare[0] is not None else None

    def digits(self, row: DefenseResult) -> float | None:
        """Decimal digits that honest users still get, of the answers' deviation; None where they get other answers."""
        error = row.honest.rms_error
        if np.isnan(error):
            return None
        return self.base if error == 0 else float(min(self.base, -np.log10(error)))

    def facts(self) -> SweepFacts:
        """As the record has it."""
        inputs = SweepInputs(
            self.inputs, self.domain is not None, None if self.domain is None else Bounds.of(self.domain)
        )
        rows = tuple(row.facts(self.digits(row)) for row in self.rows)
        cheapest = None if self.cheapest is None else self.cheapest.defense
        return SweepFacts(self.on, BUDGET, inputs, rows, self.failed, self.open, cheapest)


def _cost(row: DefenseResult) -> tuple[int, float, float]:
    """Other answers cost more than an error, and most where least is told; then the error, the labels that change."""
    error, other = row.honest.rms_error, bool(np.isnan(row.honest.rms_error))
    less = max((k for k, name in enumerate(TELLS_LESS) if name in row.defense), default=0)
    return (1 + less if other else 0), 0.0 if other else error, 1 - row.honest.agreement


@dataclass(frozen=True)
class StandIn:
    """What stands for the model in a sweep, and the honest inputs that it is asked.

    copy: the model before its digits are cut; `on` says what it is. last: what cuts them, as names of defenses.
    inputs: honest ones (n, d); `sampled` if they are random ones. link: what undoes the copy's
    answers, where they are probabilities. spread: deviation of the answers, noise is a part of it; digits: decimal
    digits of the answers, of their deviation. yardstick: the copy without noise, which networks are held against; if
    not given, the copy.
    """

    copy: Oracle
    on: StandsFor
    inputs: FloatArray
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
) -> list[DefenseNames]:
    """The defenses that fit a model with these answers, of this link, none at all first. A tanh makes no classes.

    Those that would change nothing are left out: more decimals than the answers have now.
    """
    noise = NOISE * spread if np.isfinite(spread) and spread > 0 else NOISE
    found: list[DefenseNames] = [(), *((f"decimals={k}",) for k in _fewer_decimals(last))]
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
    undefended: DefenseResult | None = None,
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
    try_all = _try_in_turn if engine is None else partial(_try_on_engine, engine)
    cells = try_all(model.copy, trials, known, try_one, clock.left or 0.0, watch)
    rows = tuple(cell for cell in cells if isinstance(cell, DefenseResult))
    failed = tuple(cell for cell in cells if isinstance(cell, FailedDefense))
    domain = model.copy.facts.domain if model.sampled else None
    return Sweep(model.on, rows, model.digits, len(model.inputs), domain, failed)


def _prepared(
    model: StandIn, undefended: DefenseResult | None, methods: Sequence[str], clock: Clock, rng: int,
    begin: Callable[[str], None],
) -> tuple[Mapping[DefenseNames, DefenseResult], TryOne]:  # fmt: skip
    """The rows that are known, and how one defense is tried: beside the first student, where some are trained."""
    known: dict[DefenseNames, DefenseResult] = {} if undefended is None else {(): undefended}
    try_one = partial(
        try_defense,
        inputs=model.inputs,
        link=model.link,
        methods=methods,
        yardstick=model.yardstick,
        last=model.last,
        rng=rng,
    )
    if "train" not in methods:
        return known, try_one
    begin(NO_DEFENSE)
    student = _first_student(model.copy, try_one, undefended, clock.share(MORE_THAN_A_SHARE))
    known = {names: replace(row, trained=student) for names, row in known.items()}
    return known, partial(try_one, hidden=_hidden_of(student), first=student)


def _unwatched(done: int, of: int, doing: str) -> None:
    pass


def _first_student(
    copy: Oracle, try_one: TryOne, undefended: DefenseResult | None, seconds: float | None
) -> Rebuilt | None:
    """The one without a defense, trained before all others; inside the span, if that is known to be narrow."""
    span = None if undefended is None else undefended.span
    try:
        return try_one(deepcopy(copy), (), methods=("train",), span=span, seconds=seconds).trained
    except Exception:  # the row of this defense will say why
        return None


def _hidden_of(student: Rebuilt | None) -> Sequence[int] | None:
    """Its hidden widths, None where there is none."""
    training = None if student is None else student.result.evidence.get("training")
    return None if training is None else tuple(training.hidden)


def _try_in_turn(
    copy: Oracle,
    trials: Sequence[DefenseNames],
    known: Mapping[DefenseNames, DefenseResult],
    try_one: TryOne,
    seconds: float,
    watch: Watch,
) -> list[Cell]:
    """One after the other; what one does not need of its time is left to the others."""
    clock, cells = Clock(seconds, len(trials)), list[Cell]()
    for k, names in enumerate(trials):
        share = clock.share(MORE_THAN_A_SHARE) or 0.0
        if names in known:
            cells.append(known[names])
            continue
        watch(k, len(trials), _called(names))
        cells.append(_tried(try_one, deepcopy(copy), (names, share)))
    watch(len(trials), len(trials), "")
    return cells


def _try_on_engine(
    engine: Engine, copy: Oracle, trials: Sequence[DefenseNames], known: Mapping[DefenseNames, DefenseResult],
    try_one: TryOne, seconds: float, watch: Watch,
) -> list[Cell]:  # fmt: skip
    """At the same time; each may take what the first of them could if they were tried in turn."""
    share = min(1.0, MORE_THAN_A_SHARE / len(trials)) * seconds
    open_ = [names for names in trials if names not in known]
    ended = as_they_end(partial(_tried, try_one, copy), [(names, share) for names in open_], engine=engine)
    found = dict(zip(open_, in_order(_watched(ended, len(trials), watch)), strict=True))
    return [known[names] if names in known else found[names] for names in trials]


def _watched(ended: Iterator[tuple[int, Cell]], of: int, watch: Watch) -> Iterator[tuple[int, Cell]]:
    watch(0, of, "")
    for done, cell in enumerate(ended, 1):
        watch(done, of, "")
        yield cell
    watch(of, of, "")


def _tried(try_one: TryOne, copy: Oracle, trial: tuple[DefenseNames, float]) -> Cell:
    names, seconds = trial
    try:
        return try_one(copy, names, seconds=min(SECONDS, seconds))
    except Exception as error:  # one cell must not cost the others
        return FailedDefense(_called(names), type(error).__name__, str(error))


def _called(names: DefenseNames) -> str:
    return ", ".join(names) or NO_DEFENSE


def noise_served(served: Interface | None) -> tuple[str, ...]:
    """The noise of answers, as a defense that adds it."""
    noisy = served is not None and not served.deterministic and served.fresh_noise > 0
    return (f"gaussian={served.fresh_noise:.2g}",) if served is not None and noisy else ()


def digits_served(served: Interface | None) -> tuple[str, ...]:
    """The digits of answers, as a defense that leaves no more of them."""
    if served is not None and served.decimals is not None:
        return (f"decimals={served.decimals}",)
    return format_served(served)


def format_served(served: Interface | None) -> tuple[str, ...]:
    """The number format of answers, as a defense, where it is not that of all computing."""
    narrow = served is not None and served.number_format != "float64"
    return (served.number_format,) if served is not None and narrow else ()


def digits_given(served: Interface | None) -> float:
    """Decimal digits of the answers, of their deviation: what format, rounding and noise leave."""
    if served is None or not served.spread > 0:
        return FLOAT64_DIGITS
    unit = float(unit_roundoff(served.number_format))
    noise = max(served.noise.absolute, 0.0 if served.deterministic else served.fresh_noise) / served.spread
    rounding = 0.0 if served.decimals is None else UNIFORM_SD * 10.0**-served.decimals / served.spread
    noise = noise if noise > FORMAT_ROUNDINGS * unit else 0.0
    return max(0.0, -float(np.log10(max(unit, rounding, noise))))
