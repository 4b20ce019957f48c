"""One call of a verb: what it has spent, what it has found so far, and how it ends.

`extract`, `learn`, `train_student`, `recover_span` and `flip_sign` begin a `Run` and hand it their work. The run counts
rows by stage from its beginning, keeps the best partial result and the evidence, and turns what ends work from outside
(a budget, a limit, a target that fails) into an outcome. A method contains mathematics only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from reluctant.errors import BudgetExhausted, LinkMismatch, NonFiniteAnswer, TargetError
from reluctant.networks import ReLUNetwork
from reluctant.numerics import Rng
from reluctant.oracles import Counting, Facts, Rows
from reluctant.oracles.limits import Clock, check_time
from reluctant.results import Outcome, Result, split_reason

__all__ = ["Run", "outcome_of"]

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


@dataclass
class Run(Generic[Part]):
    """One call of a verb on an opened target.

    partial: the best so far, should the run end here. evidence: the numbers that decide. clock: the processor time that
    the call was given. non_finite, saturated: how answers that are no numbers end it, see `outcome_of`.
    """

    oracle: Counting
    partial: Part
    clock: Clock = field(default_factory=lambda: Clock(None))
    non_finite: Outcome = Outcome.TARGET_FAILED
    saturated: Outcome = Outcome.OUT_OF_REACH
    evidence: dict[str, Any] = field(default_factory=dict)
    _before: Mapping[str, Rows] = field(init=False)

    def __post_init__(self) -> None:
        self._before = dict(self.oracle.ledger.stages)

    @classmethod
    def begin(cls, oracle: Counting, verb: str, rng: Rng, partial: Part, **settings: Any) -> Run[Part]:
        """Tell the stack which run starts, and count from here. A transcript refuses another verb or seed."""
        oracle.begin(verb, rng)
        return cls(oracle, partial, **settings)

    def keep(self, partial: Part) -> None:
        """Remember what is known so far."""
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
            self.evidence["error"] = str(error)
            outcome = outcome_of(error, self.oracle.facts, non_finite=self.non_finite, saturated=self.saturated)
        return cut_short(outcome)

    def result(self, outcome: Outcome, network: ReLUNetwork | None, more: Mapping[str, Any] | None = None) -> Result:
        """A result with the rows, the last stage and the evidence of this run, and more evidence if there is some."""
        evidence, reason = split_reason(outcome, self.evidence | dict(more or {}))
        return Result(outcome, network, self.spent(), self.stage, evidence, reason)
