"""Steps one after the other, each within its share of the budget; one that fails never ends the rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reluctant.audit.audit_value import StepRecord
from reluctant.audit.clipping import clipped_words
from reluctant.audit.endings import clipped_inputs, ending_of, error_diagnosis
from reluctant.audit.known import Known, Skip, StepFunction
from reluctant.audit.looking import span_from_labels
from reluctant.audit.owner import told_of
from reluctant.audit.seeing import seen
from reluctant.audit.shares import SHARES, reserve, seconds_for, share, with_extraction
from reluctant.audit.states import WHY, State
from reluctant.errors import InvalidAnswer, ReluctantError, TranscriptMismatch
from reluctant.messages import Diagnosis
from reluctant.oracles import Counting
from reluctant.oracles.limits import Limit
from reluctant.results import Ended, Outcome

__all__ = ["Run", "Watch"]

TIME_UP = "The time for it ran out; what it had found by then is kept. Allow more (--seconds)."
LEFT_OUT = "Left out, as asked for."
AS_ANSWERED = ("training",)  # steps that take probabilities as they are; the span does where labels give it
NO_ROWS = "No rows of the budget are left."
NO_ANSWERS = "The target gave no answer that can be used: see {}."

# Told what begins: "audit" or "defenses", how many parts are done, of how many, and the name of the next one.
Watch = Callable[[str, int, int, str], None]


@dataclass
class Run:
    """One audit under way."""

    oracle: Counting
    known: Known
    budget: int
    seed: int
    watch: Watch
    steps: list[StepRecord] = field(default_factory=list)
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
                record = StepRecord(name, State.SKIPPED, LEFT_OUT, diagnosis=Diagnosis("left-out"))
            elif stopped:
                record = StepRecord(name, State.NOT_BEGUN, WHY[State.NOT_BEGUN])
            else:
                record = self.step(name, function)
            stopped = stopped or record.state is State.STOPPED
            self.steps.append(record)
            said, states = {**self.known.said, name: record.why}, {**self.known.states, name: record.state}
            ended = self.known.ended if record.diagnosis is None else {**self.known.ended, name: record.diagnosis}
            self.known = replace(self.known, said=said, states=states, ended=ended)
        if not stopped:
            self.watch("audit", len(functions), len(functions), "")
        return not stopped

    def step(self, name: str, function: StepFunction) -> StepRecord:
        """One step within its share, and what it spent of it."""
        rows, before, start = self.share(name), self.oracle.queries, time.perf_counter()
        if rows == 0 and name in SHARES:
            self.known = replace(self.known, without_rows=(*self.known.without_rows, name))
            return StepRecord(name, State.SKIPPED, NO_ROWS, allowed=0, diagnosis=Diagnosis("no-rows-left"))
        if self.unusable_in and name in SHARES:
            unusable = Diagnosis("unusable-answers", {"step": self.unusable_in})
            return StepRecord(name, State.SKIPPED, NO_ANSWERS.format(self.unusable_in), allowed=0, diagnosis=unusable)
        allowance = Limit(rows, seconds_for(name, self.known.given.seconds), name)
        state, why, diagnosis = self.outcome(name, function, allowance)
        self.passed += allowance.passed
        self.answered = self.answered or allowance.answered > 0
        if allowance.time_up:
            self.known = replace(self.known, timed_out=(*self.known.timed_out, name))
        spent, seconds = self.oracle.queries - before, time.perf_counter() - start
        return StepRecord(name, state, why, spent, seconds, rows if name in SHARES else None, diagnosis)

    def outcome(self, name: str, function: StepFunction, allowance: Limit) -> tuple[State, str, Diagnosis | None]:
        """Run a step: its finding becomes known, its failure a state and a reason."""
        try:
            with allowance.running():
                new = function(allowance.of(self.view(name)), self.known, self.seed)
        except Skip as reason:
            self.known = replace(self.known, refused=(*self.known.refused, *([name] if reason.settles else [])))
            return State.SKIPPED, str(reason), reason.diagnosis
        except KeyboardInterrupt:
            return State.STOPPED, WHY[State.STOPPED], None
        except TranscriptMismatch:
            raise  # a mistake at the keyboard: every step would stumble over it
        except Exception as error:  # whatever a target or a method raises, the rest goes on
            # Answers of the wrong type or shape, and never another one: no step can use them.
            never = allowance.in_vain and not self.answered
            self.unusable_in = name if never and type(error) is InvalidAnswer else ""
            return State.FAILED, _said(error), error_diagnosis(error)
        if allowance.in_vain and (failed := _failed(new)):
            return State.FAILED, failed, Diagnosis("step-failed", {"error": "target-failed", "message": failed})
        self.known = replace(self.known, **new)
        self.amend(new)
        if allowance.time_up:
            return State.DONE, TIME_UP, Diagnosis("time-over")
        return State.DONE, self.ending(name, new), self.diagnosis(name, new)

    def amend(self, new: Mapping[str, Any]) -> None:
        """A step may know more of what one before it had found: what that one says is put right."""
        earlier = {step.step: self.ending(step.step, new) for step in self.steps if step.step in new}
        amended = {name: self.diagnosis(name, new) for name in earlier}
        self.steps = [
            replace(step, why=earlier[step.step], diagnosis=amended[step.step]) if step.step in earlier else step
            for step in self.steps
        ]
        ended = {name: each for name, each in {**self.known.ended, **amended}.items() if each is not None}
        self.known = replace(self.known, said={**self.known.said, **earlier}, ended=ended)

    def diagnosis(self, name: str, new: Mapping[str, Any]) -> Diagnosis | None:
        """How the method of a step ended; None where there is nothing to say."""
        if new.get("clipped") is not None:
            return clipped_inputs(new["clipped"])
        ended = new.get(name)
        return ending_of(ended, self.known) if isinstance(ended, Ended) else None

    def ending(self, name: str, new: Mapping[str, Any]) -> str:
        """How the method of a step ended, in its own words, and what else there is to say."""
        if new.get("clipped") is not None:
            return clipped_words(new["clipped"])
        ended, interface, saturates = new.get(name), self.known.health, self.known.linked
        said = told_of(ended, interface, saturates=saturates) if isinstance(ended, Ended) else ""
        return f"{said} {new.get('needed', '')}".strip()

    def view(self, name: str) -> Counting:
        """The target as a step sees it; the first looks at the bare interface."""
        if name == "health":
            return self.oracle
        reach, output = self.known.reach, self.known.given.output
        without = self.known.without
        labels = name == "span" and span_from_labels(self.known, self.oracle.outputs - len(without))
        as_answered = output is None and (name in AS_ANSWERED or labels)
        link = "identity" if as_answered else self.known.link
        noisy, written = self.known.noisy, self.known.written
        return seen(self.oracle, link, output, reach, noisy=noisy, written=written, without=without)

    def share(self, name: str) -> int:
        """Rows of a step: by what was asked, not sent, so that a replayed audit shares as the first one did."""
        left = self.budget - self.passed
        rows = share(name, left, reserve(self.budget, self.oracle.dim))
        return with_extraction(name, rows, left, self.known.rows_needed)


def _failed(new: Mapping[str, Any]) -> str:
    """What the target said where it failed a method from its first question on; empty where it did not."""
    found = [each for value in new.values() for each in (value if isinstance(value, tuple) else (value,))]
    ended = [each for each in found if isinstance(each, Ended) and each.outcome is Outcome.TARGET_FAILED]
    return str(ended[0].evidence.get("error") or ended[0].outcome.happened) if ended else ""


def _said(error: Exception) -> str:
    if isinstance(error, ReluctantError):
        return f"{error} [{error.slug}]"
    return f"{type(error).__name__}: {error}"
