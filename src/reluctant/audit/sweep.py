"""The defense sweep: what each defense would leave of a local copy, and what it costs honest users.

The copy stands for the model: the recovered network answering in the same digits, or the local file. The real target
is asked nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from reluctant.audit.leak import NO_DEFENSE, Leak
from reluctant.audit.leaking import BUDGET, METHODS, leak
from reluctant.audit.limits import Clock
from reluctant.audit.trained import MODEL, first_student, hidden_of, trained_sentence
from reluctant.audit.trying import MORE_THAN_A_SHARE, Trial, try_in_turn, try_on_engine
from reluctant.defenses import defend
from reluctant.defenses.words import defense_words
from reluctant.engines import Engine
from reluctant.health import Health
from reluctant.health.answers import UNIFORM_SD
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Facts, Kind, Oracle
from reluctant.oracles.link import AnswerLink
from reluctant.percentages import percentage

__all__ = ["TRAINED", "Sweep", "as_served", "default_defenses", "digits_given", "sweep"]

DECIMALS = (6, 3, 2)
TRAINED = "the trained network"
ON_A_STUDENT = (
    "What each defense leaves of the span, and of a network trained on the answers, was tried on the trained network; "
    "what stops exact recovery cannot be seen there."
)
NOISE = 1e-3  # of the answers' deviation
FLOAT64_DIGITS = -float(np.log10(unit_roundoff("float64")))
FORMAT_ROUNDINGS = 16.0  # noise that is no more than so many roundings of a format is its own


@dataclass(frozen=True)
class Sweep:
    """Rows of the sweep in the order tried, and the cheapest defense that stops a copy.

    on: what stood for the model. base: digits of its answers without any defense. failed: defenses that could not be
    tried, with the reason. sampled: the inputs are random ones.
    """

    on: str
    rows: tuple[Leak, ...]
    base: float
    inputs: str
    failed: tuple[tuple[str, str], ...] = ()
    sampled: bool = False

    @property
    def cheapest(self) -> Leak | None:
        """The defense that lets no verified or accurate copy through and costs honest users least; None if none."""
        stopping = [row for row in self.rows if row.defense != NO_DEFENSE and row.stopped]
        return min(stopping, key=_cost, default=None) if self.open else None

    @property
    def open(self) -> bool | None:
        """True if the model can be copied without any defense, None if that is not settled."""
        bare = [row.stopped for row in self.rows if row.defense == NO_DEFENSE]
        return not bare[0] if bare and bare[0] is not None else None

    @property
    def sentence(self) -> str:
        """What follows from it, in words."""
        if not self.rows:
            return "No defense could be tried."
        if self.open is not True:
            return self._nothing_to_stop()
        undecided = _by_ending(row for row in self.rows if row.stopped is None)
        open_ = f" Not decided: {undecided}." if undecided else ""
        if self.cheapest is None:
            said = "None of the defenses that were tried is known to stop exact recovery."
            return f"{said}{open_} {self._trained(None)}"
        return (
            f"The cheapest defense that stopped exact recovery is {defense_words(self.cheapest.defense)} "
            f"({self.cheapest.ending_in_full}); {_for_users(self.cheapest)}.{_span_left(self.cheapest)} "
            f"{self._trained(self.cheapest)}{self._stopped_too()}{open_}"
        )

    @property
    def model(self) -> str:
        """What errors are told of: a trained network has errors of its own, which these do not have in them."""
        return TRAINED if self.on == TRAINED else MODEL

    def _trained(self, cheapest: Leak | None) -> str:
        return trained_sentence(self.rows, cheapest, sampled=self.sampled, model=self.model)

    def _stopped_too(self) -> str:
        rows = (row for row in self.rows if row.stopped and row.defense != NO_DEFENSE and row is not self.cheapest)
        return f" Stopped too: {others}." if (others := _by_ending(rows)) else ""

    def _nothing_to_stop(self) -> str:
        """Without a copy no defense can be seen to stop one."""
        if self.on == TRAINED:
            return f"{ON_A_STUDENT} {self._trained(None)}"
        said = "Nothing was rebuilt even without a defense"
        if self.open is None:
            said = "Whether the network can be rebuilt without a defense is not settled"
        defended = [row for row in self.rows if row.defense != NO_DEFENSE]
        if any(row.tried for row in defended):
            return f"{said}, so none can be said to stop that. {self._trained(None)}"
        also = ", and of a network trained on the answers" if any(row.trained for row in defended) else ""
        return f"{said}; only what each leaves of the span{also} was tried. {self._trained(None)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "on": self.on,
            "budget": BUDGET,
            "inputs": self.inputs,
            "rows": [row.to_dict() | {"digits": self.digits(row)} for row in self.rows],
            "failed": [{"defense": name, "why": why} for name, why in self.failed],
            "cheapest": None if self.cheapest is None else self.cheapest.defense,
            "sentence": self.sentence,
        }

    def digits(self, row: Leak) -> float | None:
        """Decimal digits that honest users still get, of the answers' deviation; None where they get other answers."""
        error = row.honest.rms_error
        if np.isnan(error):
            return None
        return self.base if error == 0 else float(min(self.base, -np.log10(error)))


def as_served(copy: Oracle, served: Health | None) -> Oracle:
    """A copy that answers in the digits of the model it stands for."""
    if served is None:
        return copy
    names = []
    if not served.deterministic and served.fresh_noise > 0:
        names.append(f"gaussian={served.fresh_noise:.2g}")
    if served.decimals is not None:
        names.append(f"decimals={served.decimals}")
    elif served.number_format != "float64":
        names.append(served.number_format)
    return defend(copy, *names)


def digits_given(served: Health | None) -> float:
    """Decimal digits of the answers, of their deviation: what format, rounding and noise leave."""
    if served is None or not served.spread > 0:
        return FLOAT64_DIGITS
    unit = float(unit_roundoff(served.number_format))
    noise = max(served.noise.absolute, 0.0 if served.deterministic else served.fresh_noise) / served.spread
    rounding = 0.0 if served.decimals is None else UNIFORM_SD * 10.0**-served.decimals / served.spread
    noise = noise if noise > FORMAT_ROUNDINGS * unit else 0.0
    return max(0.0, -float(np.log10(max(unit, rounding, noise))))


def default_defenses(facts: Facts, spread: float) -> list[tuple[str, ...]]:
    """The defenses that fit a model with these answers, none at all first."""
    noise = NOISE * spread if np.isfinite(spread) and spread > 0 else NOISE
    found: list[tuple[str, ...]] = [(), *((f"decimals={k}",) for k in DECIMALS)]
    found += [("float16",), (f"gaussian={noise:.1g}",)]
    if facts.outputs > 1:
        first = ("softmax",) if facts.kind is Kind.VALUES else ()
        found += [first] if first else []
        found.append((*first, "top=1"))
    if facts.outputs > 1 or facts.kind is Kind.VALUES:
        found.append(("labels",))
    return found


def sweep(
    copy: Oracle,
    *,
    on: str,
    inputs: FloatArray,
    described: str,
    sampled: bool = False,
    link: AnswerLink = "identity",
    spread: float = 1.0,
    digits: float = FLOAT64_DIGITS,
    undefended: Leak | None = None,
    yardstick: Oracle | None = None,
    methods: Sequence[str] = METHODS,
    seconds: float,
    rng: int = 0,
    watch: Callable[[int, int, str], None] | None = None,
    engine: Engine | None = None,
) -> Sweep:
    """Try every default defense on a copy, within this time.

    Arguments:
        copy: what stands for the model; `on` says what it is.
        inputs: honest inputs (n, d), `described` in words; `sampled` if they are random ones.
        link: what undoes the copy's answers, where they are probabilities.
        spread: deviation of the answers; noise is a part of it.
        digits: decimal digits of the answers, of their deviation.
        undefended: the row without any defense, where it is known already.
        yardstick: the copy with all its digits, which networks are held against; if not given, the copy.
        methods: what to try.
        seconds: processor time for all of it; what one defense does not need is left to the others.
        watch: told how many of how many are done, and which comes next.
        engine: "dask://host:port", or a Client: defenses are tried at the same time, on its workers.
    """
    trials = default_defenses(copy.facts, spread)
    known: dict[Trial, Leak] = {} if undefended is None else {(): undefended}
    try_one = partial(leak, inputs=inputs, link=link, methods=methods, yardstick=yardstick, rng=rng)
    watch = watch or _unwatched
    clock = Clock(seconds, len(trials) + 1)
    if "train" in methods:
        watch(0, len(trials), NO_DEFENSE)
        student = first_student(copy, try_one, undefended, clock.share(MORE_THAN_A_SHARE))
        known = {names: replace(row, trained=student) for names, row in known.items()}
        try_one = partial(try_one, hidden=hidden_of(student), first=student)
    try_all = try_in_turn if engine is None else partial(try_on_engine, engine)
    cells = try_all(copy, trials, known, try_one, clock.left or 0.0, watch)
    rows = tuple(cell for cell in cells if isinstance(cell, Leak))
    return Sweep(on, rows, digits, described, tuple(cell for cell in cells if not isinstance(cell, Leak)), sampled)


def _unwatched(done: int, of: int, doing: str) -> None:
    pass


def _by_ending(rows: Iterable[Leak]) -> str:
    """Defenses in words, those that ended alike together."""
    alike: dict[str, list[str]] = {}
    for row in rows:
        alike.setdefault(row.ending, []).append(defense_words(row.defense))
    return "; ".join(f"{', '.join(names)} ({ending})" for ending, names in alike.items())


def _span_left(row: Leak) -> str:
    """What it leaves of the span, where that is less than all directions."""
    span = row.span
    if span is None or not span.ok or span.rank >= span.subspace.dim:
        return ""
    return f" It leaves the span: {span.rank} of {span.subspace.dim} directions are all that count."


def _for_users(row: Leak) -> str:
    honest = row.honest
    if np.isnan(honest.rms_error):
        return f"honest users get other answers than before, and keep {percentage(honest.agreement)} of labels"
    if honest.rms_error == 0:
        return "honest users lose no digit of it"
    return (
        f"honest users see an error of {honest.rms_error:.1e} of the answers' deviation and keep "
        f"{percentage(honest.agreement)} of labels"
    )


# Defenses after which users get other answers, by how much these tell.
TELLS_LESS = ("softmax", "top", "labels")


def _cost(row: Leak) -> tuple[int, float, float]:
    """Other answers cost more than an error, and most where least is told; then the error, the labels that change."""
    error, other = row.honest.rms_error, bool(np.isnan(row.honest.rms_error))
    less = max((k for k, name in enumerate(TELLS_LESS) if name in row.defense), default=0)
    return (1 + less if other else 0), 0.0 if other else error, 1 - row.honest.agreement
