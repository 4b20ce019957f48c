"""`Outcome`, `Result` and `Run`: how a run ends, what it found, rows by stage, evidence, diagnosis.

One `Run` serves every verb. It knows the cost and the findings so far, and turns errors of the target, an empty
budget and an ended time into outcomes, with the partial result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Any, Generic, Self, TypeVar

from reluctant._notebook import html_table
from reluctant.errors import (
    BudgetExhausted,
    LinkMismatch,
    NonFiniteAnswer,
    NotRecovered,
    TargetError,
    TimeExhausted,
    Words,
)
from reluctant.messages.catalogue import GIVE_INPUTS, OUTCOMES, ROWS_OF_USE
from reluctant.messages.diagnosis import Diagnosis, Remedy
from reluctant.networks import ReLUNetwork
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.numerics import Rng
from reluctant.oracles import Counting, Facts
from reluctant.oracles.base import Oracle
from reluctant.oracles.input_units import InputUnits
from reluctant.oracles.ledger import Clock, Rows, check_time
from reluctant.oracles.links import written_link

__all__ = ["UNSETTLED", "Ended", "Outcome", "Result", "Run", "outcome_of", "split_reason"]


class Outcome(Enum):
    """How a run ended: a slug, whose text is in the catalogue of messages."""

    RECOVERED = "recovered"
    LEARNED = "learned"
    NOT_ACCURATE = "not-accurate-enough"
    UNVERIFIED = "unverified"
    PARTIAL = "partial"
    SPAN_RECOVERED = "span-recovered"
    FULL_RANK = "full-rank"
    SPAN_PARTIAL = "span-partial"
    OUTPUT_SPACE = "output-space"
    OUTPUTS_FULL = "outputs-full"
    RANK_UNCLEAR = "rank-unclear"
    ONE_LABEL = "one-label"
    CONSTANT = "constant"
    NOT_PIECEWISE_LINEAR = "not-piecewise-linear"
    PIECEWISE_CONSTANT = "piecewise-constant"
    LOW_PRECISION = "low-precision"
    OUT_OF_REACH = "out-of-reach"
    TOO_NOISY = "too-noisy"
    NON_FINITE = "non-finite"
    OUT_OF_BUDGET = "out-of-budget"
    TARGET_FAILED = "target-failed"
    WRONG_LINK = "wrong-link"

    FLIPPED = "flipped"
    NOT_FLIPPED = "not-flipped"
    ON_BOUNDARY = "on-boundary"
    FLAT = "flat"

    @property
    def slug(self) -> str:
        """Its name in records and on the page of messages."""
        return str(self.value)

    @property
    def diagnosis(self) -> Diagnosis:
        """The general text of the outcome: what happened and what to try."""
        entry = OUTCOMES[self.slug]
        return Diagnosis(self.slug, entry.example or {}, entry.remedies)

    @property
    def happened(self) -> str:
        """What happened, in a sentence."""
        return self.diagnosis.happened

    @property
    def advice(self) -> str:
        """What to try, in Python."""
        return self.diagnosis.to_try()

    def __str__(self) -> str:
        return str(self.diagnosis)

    @property
    def settles(self) -> bool:
        """True if the method succeeded, or the target gives it nothing to succeed on.

        False where it was cut short, or went part of the way: another run, with more rows, time or digits, may find
        more. Who reads such an outcome may not take it for the absence of a leak.
        """
        return self not in OPEN


OPEN = frozenset(
    {
        Outcome.CONSTANT,
        Outcome.NON_FINITE,
        Outcome.ONE_LABEL,
        Outcome.ON_BOUNDARY,
        Outcome.OUT_OF_BUDGET,
        Outcome.OUT_OF_REACH,
        Outcome.PARTIAL,
        Outcome.RANK_UNCLEAR,
        Outcome.SPAN_PARTIAL,
        Outcome.TARGET_FAILED,
        Outcome.TOO_NOISY,
        Outcome.UNVERIFIED,
        Outcome.WRONG_LINK,
    }
)


UNSETTLED = frozenset(outcome.slug for outcome in OPEN)  # as records have them: they say nothing of a longer run


def split_reason(outcome: Outcome, evidence: Mapping[str, Any]) -> tuple[dict[str, Any], Diagnosis | None]:
    """Evidence without its reason, and why a run ended so: what its interface explains comes before the reason."""
    left = dict(evidence)
    reason, interface = left.pop("reason", None), left.get("health")
    measured = None if interface is None else interface.why(outcome)
    return left, measured or reason


class Ended(ABC):
    """What every result of a method has: how and where it ended, the numbers that decided, rows by stage."""

    outcome: Outcome
    rows: Mapping[str, Rows]
    stage: str
    evidence: Mapping[str, Any]
    reason: Diagnosis | None

    @property
    def diagnosis(self) -> Diagnosis:
        """Why it ended so and what to try: the reason the method gave, else what the outcome says by itself."""
        return self.outcome.diagnosis if self.reason is None else self.reason

    @property
    def error(self) -> Words:
        """The message of the target or limit that ended the run; empty if none did."""
        return Words(self.evidence.get("error") or "")

    @property
    def link_found(self) -> Diagnosis | None:
        """The diagnosis that the method found a link and read answers through it; None if it did not."""
        link = self.evidence.get("found link")
        return None if link is None else Diagnosis("link-found", {"link": link, "percent": "percent" in self.evidence})

    @property
    def columns_constant(self) -> Diagnosis | None:
        """The diagnosis that columns of the inputs given never vary; None if all do."""
        columns = self.evidence.get("constant columns")
        return None if columns is None else Diagnosis("constant-columns", {"columns": columns, "inputs": None})

    @property
    def units_found(self) -> Diagnosis | None:
        """The diagnosis that units of columns of different sizes were found, or a copy compared at them; else None."""
        ratio, own = self.evidence.get("found units"), self.evidence.get("own scales")
        if ratio is not None:
            middle = bool(self.evidence["units"].centre.any())
            return Diagnosis("units-found", {"ratio": ratio, "middle": middle}, (ROWS_OF_USE,))
        if own is None or not (self.ok and own.ok):
            return None
        fields = {"ratio": own.ratio, "middle": own.is_around_middle}
        return Diagnosis("compared-at-own-scales", fields, (ROWS_OF_USE,))

    @property
    @abstractmethod
    def ok(self) -> bool:
        """True only if the method reached its aim and checked it."""

    @property
    def queries(self) -> int:
        """Rows that reached the target in this call, verification included."""
        return sum(self.rows.values(), Rows()).queries

    def raise_for_status(self) -> Self:
        """Return self if ok, else raise `NotRecovered` with the same information."""
        if self.ok:
            return self
        where = f" (stage: {self.stage})" if self.stage else ""
        raise NotRecovered(f"{self.diagnosis}{where} {self.queries} queries were spent.", result=self)

    @abstractmethod
    def shown_facts(self) -> dict[str, object]:
        """The rows of its table in a notebook, besides outcome and cost."""

    def _repr_html_(self) -> str:
        by_stage = {stage: rows.queries for stage, rows in self.rows.items()}
        facts = {"queries": self.queries, "by stage": by_stage, "ended in": None if self.ok else self.stage}
        ending = {"what happened": str(self.diagnosis), "error": self.error or None}
        return html_table(f"{type(self).__name__}: {self.outcome.slug}", {**self.shown_facts(), **facts, **ending})

    def ending(self) -> dict[str, Any]:
        """The shared part as plain data."""
        evidence = {
            name: value.to_dict() if hasattr(value, "to_dict") else value for name, value in self.evidence.items()
        }
        return {
            "outcome": self.outcome.slug,
            "text": str(self.diagnosis),
            "diagnosis": self.diagnosis.to_dict(),
            "ok": self.ok,
            "stage": self.stage,
            "queries": self.queries,
            "evidence": evidence,
        }


@dataclass(frozen=True)
class Result(Ended):
    """Outcome of a method that searches for a network.

    `network` is the verified network if `ok`, else the best partial one or None. It has as many outputs as the target
    answers; behind a softmax they are logits, the first of them 0. `stage` is where the run ended; `evidence` holds the
    numbers that decided. `rows` counts by stage. `diagnosis` says why it ended so.
    """

    outcome: Outcome
    network: ReLUNetwork | None
    rows: Mapping[str, Rows]
    stage: str = ""
    evidence: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    reason: Diagnosis | None = None

    @property
    def ok(self) -> bool:
        """True only if the network passed verification, or was measured to be as accurate as asked for."""
        return self.outcome in {Outcome.RECOVERED, Outcome.LEARNED}

    def with_classes(self, oracle: Oracle) -> Self:
        """The result with a network of all classes, the first 0, if the target's softmax left log-ratios to read.

        The link is noted in the network: what it makes of the network's values are the target's answers.
        """
        link = oracle.facts.link
        if self.network is None or link is None or not oracle.facts.reference:
            return self
        return replace(self, network=self.network.before_link(written_link(link)))

    def in_inputs_of(self, units: InputUnits | None) -> Self:
        """The result with a network of the target's own inputs, if the run worked in units of them."""
        if units is None:
            return self
        network = None if self.network is None else units.network(self.network)
        return replace(self, network=network, evidence={**self.evidence, "units": units})

    def with_log_ratios(self) -> Self:
        """The result with a network of the values that were read: log-ratios, if it has all classes of a softmax."""
        if self.network is None or self.network.link in ELEMENTWISE_LINKS:
            return self
        return replace(self, network=self.network.log_ratios())

    def as_written(self, link: str) -> ReLUNetwork:
        """The network as it is written and shown: with the link that answers were read through, and all its classes.

        One that was trained on answers as they are, where others read them through a link, has a link of its own.
        """
        network, own = self.network, self.evidence.get("own link")
        assert network is not None
        if own is None:
            return network.before_link(written_link(self.evidence.get("found link", link)))
        return network.with_parts(link=own)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the outcome, the network, the cost, the evidence."""
        network = self.network
        shape = None if network is None else {"widths": network.widths, "parameters": network.parameters}
        return {
            **self.ending(),
            "network": shape and shape | {"skip": network is not None and bool(network.skips)},
        }

    def shown_facts(self) -> dict[str, object]:
        """The network."""
        return {"network" if self.ok else "network, not verified": self.network}

    def __repr__(self) -> str:
        return f"Result({self.outcome.slug}, {self.network!r}, queries={self.queries})"


Part = TypeVar("Part")
Found = TypeVar("Found")


def outcome_of(
    error: BudgetExhausted | TargetError,
    facts: Facts,
    *,
    non_finite: Outcome = Outcome.TARGET_FAILED,
    saturated: Outcome = Outcome.OUT_OF_REACH,
) -> Outcome:
    """The outcome of a run that this error ended.

    non_finite: for NaN and inf; saturated: for those of probabilities that are 0 or 1, which a link cannot read.
    """
    if isinstance(error, BudgetExhausted):
        return Outcome.OUT_OF_BUDGET
    if isinstance(error, LinkMismatch):
        return Outcome.WRONG_LINK
    if isinstance(error, NonFiniteAnswer):
        return saturated if facts.saturates else non_finite
    return Outcome.TARGET_FAILED


TIMED_VERBS = frozenset({"extract", "learn", "span"})  # which take seconds


def out_of_time(seconds: float, verb: str) -> Diagnosis:
    """The diagnosis of a run that ended with its processor time, not with its rows."""
    more = (Remedy("more-time", verb, {"seconds": None}),) if verb in TIMED_VERBS else ()
    return Diagnosis("out-of-time", {"seconds": seconds}, more)


SATURATES_INSIDE = Diagnosis(
    "saturates-inside", remedies=(Remedy("narrower-domain", "open", {"domain": None}), GIVE_INPUTS)
)


@dataclass
class Run(Generic[Part]):
    """One call of a verb on an opened target.

    partial: the best so far, should the run end here. evidence: the numbers that decide. clock: the processor time that
    the call was given. verb: its name. non_finite, saturated: how answers that are no numbers end it, see `outcome_of`.
    """

    oracle: Counting
    partial: Part
    clock: Clock = field(default_factory=lambda: Clock(None))
    non_finite: Outcome = Outcome.TARGET_FAILED
    saturated: Outcome = Outcome.OUT_OF_REACH
    evidence: dict[str, Any] = field(default_factory=dict)
    verb: str = ""
    _before: Mapping[str, Rows] = field(init=False)

    def __post_init__(self) -> None:
        self._before = dict(self.oracle.ledger.stages)

    @classmethod
    def begin(cls, oracle: Counting, verb: str, rng: Rng, partial: Part, **settings: Any) -> Run[Part]:
        """Tell the stack which run starts, and count from here. A transcript refuses another verb or seed."""
        oracle.begin(verb, rng)
        return cls(oracle, partial, verb=verb, **settings)

    def keep(self, partial: Part) -> None:
        """Remember the findings so far."""
        self.partial = partial

    def spent(self) -> dict[str, Rows]:
        """Rows of this run, by stage."""
        return self.oracle.ledger.since(self._before)

    @property
    def rows(self) -> Rows:
        """Rows of this run, all stages together."""
        return sum(self.spent().values(), Rows())

    @property
    def stage(self) -> str:
        """The last stage that was entered."""
        return self.oracle.ledger.last_stage

    def check_time(self) -> None:
        """Raise `TimeExhausted` if the time of a limit around the call is over."""
        check_time()

    def finish(self, work: Callable[[], Found], cut_short: Callable[[Outcome], Found]) -> Found:
        """What the work gives; where budget, time or target end it, what `cut_short` makes of that outcome.

        evidence["error"] then says what ended it.
        """
        try:
            return work()
        except (BudgetExhausted, TargetError) as error:
            self.evidence["error"] = error.words
            if isinstance(error, TimeExhausted):
                self.evidence["reason"] = out_of_time(error.seconds, self.verb)
            outcome = outcome_of(error, self.oracle.facts, non_finite=self.non_finite, saturated=self.saturated)
            if outcome is Outcome.OUT_OF_REACH and self.oracle.facts.domain.is_box:
                self.evidence["reason"] = SATURATES_INSIDE
        return cut_short(outcome)

    def result(self, outcome: Outcome, network: ReLUNetwork | None, more: Mapping[str, Any] | None = None) -> Result:
        """A result with the rows, the last stage and the evidence of this run, and more evidence if there is some."""
        evidence, reason = split_reason(outcome, self.evidence | dict(more or {}))
        return Result(outcome, network, self.spent(), self.stage, evidence, reason)
