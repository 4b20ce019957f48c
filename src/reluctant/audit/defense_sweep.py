"""The last step: every default defense on a local copy, with its cost to honest users.

The copy is the network that extraction recovered and verified, answering in the same digits, or the local file. Where
there is neither, no defense is tried. The real target is asked nothing. A defense works where an owner would put it: on
the values of the model as they are computed. The digits that the interface gives now are cut last: put on answers that
are cut already, probabilities would be stopped for what their values lack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from reluctant.audit.budget import TIMES
from reluctant.audit.defense_trial import BUDGET, METHODS, SECONDS, DefenseResult, Rebuilt, try_defense
from reluctant.audit.facts import Bounds
from reluctant.audit.findings import Findings, Skip, copy_error
from reluctant.audit.record import NO_DEFENSE, NO_GRADIENTS, FailedDefense, StandsFor, SweepFacts, SweepInputs
from reluctant.defenses import (
    FEWER_DIGITS,
    MOST_DIGITS,
    DefenseSpec,
    HonestCost,
    defend,
    kinds_of,
    labels_of,
    split_last_defenses,
)
from reluctant.domains import Domain
from reluctant.engines import Engine, as_they_end
from reluctant.evidence import Measured
from reluctant.interface import Interface
from reluctant.interface.noise import UNIFORM_SD
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Counting, Facts, Kind, NetworkOracle, Oracle, open_oracle
from reluctant.oracles.adapters.dispatch import WithGradients
from reluctant.oracles.input_units import Scaled
from reluctant.oracles.ledger import Clock
from reluctant.oracles.links import LINK_FUNCTIONS, AnswerLink, PlainProbabilities
from reluctant.results import Outcome, Result

DefenseNames: TypeAlias = tuple[str, ...]  # the first next to the model
TriedDefense: TypeAlias = DefenseResult | FailedDefense
Watch: TypeAlias = Callable[[int, int, str], None]

DECIMALS = (6, 3, 2)
LABELS_ALONE: DefenseNames = ("labels",)
ENOUGH_LABELS = 10  # honest inputs: fewer may have the same label by chance
NOISE = 1e-3  # of the answers' deviation
MORE_THAN_A_SHARE = 2.0  # of the time left for each defense: most need less than theirs
FLOAT64_DIGITS = -float(np.log10(unit_roundoff("float64")))
FORMAT_ROUNDINGS = 16.0  # noise that is no more than so many roundings of a format is its own
GIVES_LESS = ("softmax", "top", "labels")  # defenses after which users get other answers, by how little these give
ONE_HIDDEN = 2  # layers of weights


@dataclass(frozen=True)
class Sweep:
    """Results of the sweep in the order tried, and the cheapest defense that stops a copy.

    on: the model's stand-in. base: digits of its answers without any defense. inputs: how many honest ones; domain:
    where they were drawn, None of those given. failed: defenses that could not be tried.
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
        """For the record."""
        sampled = self.domain is not None
        inputs = SweepInputs(self.inputs, sampled, None if self.domain is None else Bounds.of(self.domain))
        rows = tuple(row.facts(self.digits(row)) for row in self.rows)
        cheapest = None if self.cheapest is None else self.cheapest.defense
        return SweepFacts(self.on, BUDGET, inputs, rows, self.failed, self.open, cheapest)


def _cost(row: DefenseResult) -> tuple[int, float, float]:
    """Other answers cost more than an error, and most where they give least; then the error, the labels that change."""
    error, other = row.honest.rms_error, bool(np.isnan(row.honest.rms_error))
    less = max((GIVES_LESS.index(kind) for kind in kinds_of(row.defense) if kind in GIVES_LESS), default=0)
    return (1 + less if other else 0), 0.0 if other else error, 1 - row.honest.agreement


@dataclass(frozen=True)
class StandIn:
    """The model's stand-in in a sweep, and the honest inputs that it is asked.

    copy: the model before its digits are cut.
    last: what cuts them, as names of defenses.
    on: which of the two it is, the recovered network or the file.
    inputs: honest ones (n, d); `sampled` if they are random ones.
    link: what undoes the copy's answers, where they are probabilities.
    spread: deviation of the answers; noise is a part of it.
    digits: decimal digits of the answers, of their deviation.
    yardstick: the copy without noise, to compare networks with; if not given, the copy.
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
        """True if honest inputs do not all have the same label: else the label alone would be no answer."""
        whole = self.yardstick or self.copy
        try:
            labels = labels_of(whole.answer(self.inputs), whole.facts.kind)
        except Exception:  # each defense reports why it could not be tried
            return True
        return len(labels) < ENOUGH_LABELS or bool(np.ptp(labels) > 0)


def default_defenses(
    facts: Facts, spread: float, last: Sequence[str] = (), link: AnswerLink = "identity"
) -> list[DefenseNames]:
    """The defenses that fit a model with these answers, of this link, none at all first. A tanh makes no classes.

    Those that would change nothing are left out: more decimals than the answers have now.
    """
    given = [int(spec.value) for spec in map(DefenseSpec.read, last) if spec.kind == "decimals"]
    fewer = [k for k in DECIMALS if k < min(given, default=MOST_DIGITS)] or [k - 1 for k in given if k > 0]
    noise = NOISE * spread if np.isfinite(spread) and spread > 0 else NOISE
    found: list[DefenseNames] = [(), *((f"decimals={k}",) for k in fewer)]
    found += [] if "float16" in last else [("float16",)]
    found.append((f"gaussian={noise:.1g}",))
    if facts.outputs > 1 and link != "tanh":
        first = ("softmax",) if facts.kind is Kind.VALUES else ()
        found += [first] if first else []
        found.append((*first, "top=1"))
    if facts.kind is not Kind.LABELS:
        found.append(LABELS_ALONE)
    return found


def gradient_defenses(dim: int, spread: float) -> list[DefenseNames]:
    """The defenses of an interface that answers gradients, none of them last: values stay as they are."""
    few_entries = 0.1  # of a gradient
    noise = NOISE * spread if np.isfinite(spread) and spread > 0 else NOISE
    names = (
        f"gradient-decimals={DECIMALS[1]}", f"gradient-noise={noise:.1g}",
        f"gradient-top={max(1, round(few_entries * dim))}", "gradient-sign", "gradient-absolute", NO_GRADIENTS,
    )  # fmt: skip
    return [(name,) for name in names]


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
    """Try every default defense on the stand-in of a model, within this time.

    Arguments:
        model: the copy, and honest inputs.
        undefended: the row without any defense, where it is known already.
        methods: which to try, of `try_defense`.
        seconds: processor time for all of it; unused time of one defense is left to the others.
        watch: called with how many of how many are done, and the next one.
        engine: "dask://host:port", or a Client: defenses are tried at the same time, on its workers.
    """
    trials = [
        names for names in default_defenses(model.copy.facts, model.spread, model.last, model.link)
        if names != LABELS_ALONE or model.has_labels
    ]  # fmt: skip
    if model.copy.explained is not None:
        trials += gradient_defenses(model.copy.dim, model.spread)
    known: dict[DefenseNames, DefenseResult] = {} if undefended is None else {(): undefended}
    watch = watch or (lambda done, of, doing: None)
    try_one = partial(
        _tried, inputs=model.inputs, link=model.link, methods=methods, yardstick=model.yardstick, last=model.last,
        rng=rng,
    )  # fmt: skip
    try_all = _try_in_turn if engine is None else partial(_try_on_engine, engine)
    tried = try_all(model.copy, trials, known, try_one, seconds, watch)
    rows = tuple(each for each in tried if isinstance(each, DefenseResult))
    failed = tuple(each for each in tried if isinstance(each, FailedDefense))
    domain = model.copy.facts.domain if model.sampled else None
    return Sweep(model.on, rows, model.digits, len(model.inputs), domain, failed)


def _tried(copy: Oracle, trial: tuple[DefenseNames, float], **settings: Any) -> TriedDefense:
    names, seconds = trial
    try:
        return try_defense(copy, names, seconds=min(SECONDS, seconds), **settings)
    except Exception as error:  # one defense must not cost the others
        return FailedDefense(", ".join(names) or NO_DEFENSE, type(error).__name__, str(error))


def _try_in_turn(
    copy: Oracle, trials: Sequence[DefenseNames], known: Mapping[DefenseNames, DefenseResult],
    try_one: Callable[..., TriedDefense], seconds: float, watch: Watch,
) -> list[TriedDefense]:  # fmt: skip
    """One after the other; unused time of one is left to the others."""
    clock, tried = Clock(seconds, len(trials)), list[TriedDefense]()
    for k, names in enumerate(trials):
        share = clock.share(MORE_THAN_A_SHARE) or 0.0
        if names in known:
            tried.append(known[names])
            continue
        watch(k, len(trials), ", ".join(names) or NO_DEFENSE)
        tried.append(try_one(deepcopy(copy), (names, share)))
    watch(len(trials), len(trials), "")
    return tried


def _try_on_engine(
    engine: Engine, copy: Oracle, trials: Sequence[DefenseNames], known: Mapping[DefenseNames, DefenseResult],
    try_one: Callable[..., TriedDefense], seconds: float, watch: Watch,
) -> list[TriedDefense]:  # fmt: skip
    """At the same time; each may take as long as the first of them could if they were tried in turn."""
    share = min(1.0, MORE_THAN_A_SHARE / len(trials)) * seconds
    open_ = [names for names in trials if names not in known]
    tried: dict[DefenseNames, TriedDefense] = dict(known)
    watch(0, len(trials), "")
    work = [(names, share) for names in open_]
    for number, each in as_they_end(partial(try_one, copy), work, engine=engine):
        tried[open_[number]] = each
        watch(len(tried) - len(known), len(trials), "")
    watch(len(trials), len(trials), "")
    return [tried[names] for names in trials]


# ---- the step


def try_defenses(oracle: Counting, known: Findings, seed: int) -> Mapping[str, Any]:
    """Every default defense on the recovered network, or on the local file. The target is asked nothing."""
    copy, yardstick, last, on = _copy(known, oracle.facts.domain, gradients=oracle.explained is not None)
    served, link = known.target.served, known.target.link if known.given.output is None else "identity"
    try:
        model = StandIn(
            copy, on, known.given.inputs, known.given.sampled, link, digits=digits_given(served), yardstick=yardstick,
            spread=1.0 if served is None else served.spread, last=last,
        )  # fmt: skip
        found = sweep(
            model, undefended=_undefended(known), methods=_methods(known), rng=seed, watch=known.given.watch,
            seconds=TIMES["defenses"] * known.given.seconds, engine=known.given.engine,
        )  # fmt: skip
    finally:
        copy.close()
        yardstick.close()
    return {"sweep": found.facts()}


def _methods(known: Findings) -> Sequence[str]:
    """Methods that may succeed: learning needs one hidden layer; if nothing was rebuilt, only the span is left."""
    if known.network is None or known.copy is known.training:
        return ("span",)
    return METHODS if known.network.depth <= ONE_HIDDEN else tuple(name for name in METHODS if name != "learn")


def _undefended(known: Findings) -> DefenseResult | None:
    """The audit's own runs: the sweep does not repeat findings on the target.

    None where its rows ran out: other rows of the table have a budget of their own, and would not compare.
    """
    runs = (known.span, known.extraction, known.learning)
    if known.extraction is None or any(run is not None and run.outcome is Outcome.OUT_OF_BUDGET for run in runs):
        return None

    def rebuilt(name: str, run: Result, step: str) -> Rebuilt:
        found = copy_error(run)
        own = found.own  # as in the other rows, whose copies are compared with a model without noise
        undecided = step in known.timed_out
        return Rebuilt(name, run, found.typical if own is None else own, found.largest, undecided=undecided)

    extracted = rebuilt("extract", known.extraction, "extraction")
    learned = None if known.learning is None else rebuilt("learn", known.learning, "learning")
    cut = not (known.settled("extraction") and known.settled("learning"))
    honest = HonestCost(0.0, 0.0, 1.0, len(known.given.inputs))
    return DefenseResult(NO_DEFENSE, honest, known.span, extracted, learned, cut)


def _copy(
    known: Findings, domain: Domain, *, gradients: bool = False
) -> tuple[Oracle, Oracle, tuple[str, ...], StandsFor]:
    """The stand-in, the same without noise, the names that cut the digits of both, and its kind.

    The network that extraction recovered, else the file; skipped where there is neither. gradients: the target answers
    them, and so does the network, unless they are none.
    """
    extraction = known.extraction
    if known.target.without and known.given.file is not None:
        raise Skip("outputs-left-out")
    if known.given.output is not None and known.target.linked:
        raise Skip("output-behind-link")
    if extraction is not None and extraction.ok and extraction.network is not None and not known.target.of_labels:
        plain = NetworkOracle(extraction.as_written(known.written_link))
        explained = gradients and Measured.of(extraction).gradients is None
        whole = WithGradients(plain, plain.gradients) if explained else plain
        noisy = defend(whole, *noise_served(known.target.served))
        digits = digits_served(known.target.served)
        return open_oracle(noisy, domain=domain), open_oracle(whole, domain=domain), digits, StandsFor.RECOVERED
    if known.given.file is None:
        raise Skip("labels-left-alone" if extraction is not None and extraction.ok else "no-local-copy")
    # Percentages lose their digits before they are divided by 100.
    given, plain_file = known.given.defense, known.target.written is None
    before, last = split_last_defenses(given, FEWER_DIGITS) if plain_file else (given, ())
    links = [name for name in before if name in LINK_FUNCTIONS]  # these take no digits away
    stand_in, yardstick = (_file_behind(known, names, domain) for names in (before, links))
    return stand_in, yardstick, last or format_served(known.target.served), StandsFor.FILE


def _file_behind(known: Findings, defense: Sequence[str], domain: Domain) -> Oracle:
    """The file behind these defenses."""
    assert known.given.file is not None
    bare: Oracle = open_oracle(known.given.file, precision=known.given.precision, percent=known.given.percent)
    units = known.given.units
    defended = defend(bare if units is None else Scaled(bare, units, Domain(), None), *defense)
    as_read = defended if known.target.written is None else PlainProbabilities(defended, known.target.written)
    return open_oracle(as_read, domain=domain, output=known.given.output)


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
    """The number format of answers, as a defense; none for float64."""
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
