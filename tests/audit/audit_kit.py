"""What tests of the audit share: the quick steps, a target that counts its rows, slugs of a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reluctant.audit import STEPS
from reluctant.audit.defense_trial import DefenseResult, Rebuilt
from reluctant.audit.record import AuditRecord, StepFacts, VerdictFacts
from reluctant.defenses import HonestCost
from reluctant.results import Outcome, Result

QUICK = tuple(name for name in STEPS if name != "defenses")
UNTRAINED = [name for name in QUICK if name != "training"]


class Rows:
    """A function that counts the rows it has answered."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.seen = function, 0

    def __call__(self, x: Any) -> Any:
        self.seen += len(x)
        return self.function(x)


def step(record: AuditRecord, name: str) -> StepFacts:
    """How one step went."""
    return next(each for each in record.steps if each.step == name)


def why(record: AuditRecord, name: str) -> str | None:
    """Slug of why a step ended as it did."""
    found = step(record, name).diagnosis
    return None if found is None else found.slug


def fields(record: AuditRecord, name: str) -> dict[str, Any]:
    """Fields of why a step ended as it did."""
    found = step(record, name).diagnosis
    return {} if found is None else dict(found.fields)


def reasons(verdict: VerdictFacts) -> list[str]:
    """Slugs of why there is no copy, or no exact one."""
    return [reason.diagnosis.slug for reason in verdict.reasons]


def reason(verdict: VerdictFacts, slug: str) -> dict[str, Any]:
    """Fields of the one reason with this slug, with what it advises under "try"."""
    (found,) = [each.diagnosis for each in verdict.reasons if each.diagnosis.slug == slug]
    return {**found.fields, "try": [(remedy.purpose, dict(remedy.options)) for remedy in found.remedies]}


def limits(record: AuditRecord) -> dict[str, dict[str, Any]]:
    """What was assumed, by slug."""
    return {limit.slug: dict(limit.fields) for limit in record.limits}


def row_of(name: str, error: float, ok: bool, *, undecided: bool = False, copied: float = 1.0) -> DefenseResult:
    """A row of the sweep: extraction gave a copy that is off by this, or ended for few digits."""
    outcome = Outcome.RECOVERED if ok else Outcome.LOW_PRECISION
    rebuilt = Rebuilt("extract", Result(outcome, None, {}), copied, undecided=undecided)
    return DefenseResult(name, HonestCost(error, error, 1.0, 10), None, rebuilt)
