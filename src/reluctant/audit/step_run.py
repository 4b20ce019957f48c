"""`StepRun`: the steps in order, each within its share of the budget; a step that fails never ends the audit."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reluctant.audit.budget import SHARES, reserve, seconds_for, share, with_extraction
from reluctant.audit.findings import Findings, Skip, StepFunction
from reluctant.audit.record import State, StepFacts
from reluctant.audit.steps.span_step import span_from_labels
from reluctant.audit.target_view import seen
from reluctant.audit.verdict import clipped_inputs, ending_of, error_diagnosis
from reluctant.errors import InvalidAnswer, TranscriptMismatch
from reluctant.messages import Diagnosis
from reluctant.oracles import Counting
from reluctant.oracles.ledger import Limit
from reluctant.results import Ended, Outcome

AS_ANSWERED = ("training",)  # steps that take probabilities as they are; the span does where labels give it

# Called with what begins: "audit" or "defenses", how many parts are done, of how many, and the name of the next one.
Watch = Callable[[str, int, int, str], None]


@dataclass
class StepRun:
    """One audit under way: the steps done, what is known, rows that passed."""

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
        """A step may know more of what one before it had found: how that one ended is put right."""
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


def _failed(new: Mapping[str, Any]) -> Diagnosis | None:
    """What the target said where it failed a method from its first question on; None where it did not."""
    found = [each for value in new.values() for each in (value if isinstance(value, tuple) else (value,))]
    ended = [each for each in found if isinstance(each, Ended) and each.outcome is Outcome.TARGET_FAILED]
    if not ended:
        return None
    message = str(ended[0].evidence.get("error") or ended[0].outcome.happened)
    return Diagnosis("step-failed", {"error": Outcome.TARGET_FAILED.slug, "message": message})
