"""`compare_audits`: what got worse and what got better between two audits, from their records alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reluctant._files import as_plain, write_text
from reluctant.audit.record import LEAKS, AuditRecord, LeakKind, LeakState
from reluctant.messages import Diagnosis

RANKS = {LeakState.ABSENT: 0, LeakState.NOT_SETTLED: 1, LeakState.FOUND: 2}  # the larger, the worse


@dataclass(frozen=True)
class LeakChange:
    """The state of a leak before and after."""

    leak: LeakKind
    before: LeakState
    after: LeakState

    @property
    def diagnosis(self) -> Diagnosis:
        """The change as a diagnosis, which has its text in the catalogue."""
        words = {name: str(state).replace("-", " ") for name, state in (("before", self.before), ("after", self.after))}
        return Diagnosis("leak-changed", {"leak": str(self.leak), **words})


@dataclass(frozen=True)
class FigureChange:
    """A number of both audits that changed by more than its seed does."""

    figure: str
    before: float
    after: float

    @property
    def diagnosis(self) -> Diagnosis:
        """The change as a diagnosis, which has its text in the catalogue."""
        return Diagnosis(f"{self.figure}-changed", {"before": self.before, "after": self.after})


@dataclass(frozen=True)
class RiskFigure:
    """A number that says how bad a leak is.

    path: its place in the record. factor: a smaller change is not listed. falls: less of it is worse.
    """

    name: str
    path: tuple[str, ...]
    factor: float
    falls: bool

    def read(self, record: AuditRecord) -> float | None:
        """The number, None where the record has none."""
        value: Any = record
        for name in self.path:
            value = None if value is None else getattr(value, name)
        return value

    def change(self, old: AuditRecord, new: AuditRecord) -> FigureChange | None:
        """How it changed, None where one audit has no such number or both have nearly the same."""
        before, after = self.read(old), self.read(new)
        if not before or not after or max(before, after) < self.factor * min(before, after):
            return None
        return FigureChange(self.name, before, after)

    def is_worse(self, change: FigureChange) -> bool:
        """Whether this change helps an attacker."""
        return (change.after < change.before) is self.falls


FIGURES = (
    RiskFigure("copy-queries", ("recovered", "queries"), 1.2, True),
    RiskFigure("copy-error", ("recovered", "error", "typical"), 10.0, True),
    RiskFigure("flip-size", ("flip", "relative_size"), 1.2, True),  # None of one that failed
    RiskFigure("labels-copied", ("training", "held_out", "agreement"), 1.02, False),
)


@dataclass(frozen=True)
class AuditChanges:
    """What changed from one audit to a later one. other_shape: the targets differ in inputs or outputs."""

    worse: tuple[LeakChange | FigureChange, ...] = ()
    better: tuple[LeakChange | FigureChange, ...] = ()
    other_shape: bool = False

    @property
    def new_leaks(self) -> tuple[LeakKind, ...]:
        """Leaks that were not found before and are now."""
        return tuple(each.leak for each in self._worse_leaks() if each.after is LeakState.FOUND)

    @property
    def no_longer_settled(self) -> tuple[LeakKind, ...]:
        """Leaks that were absent, and are not settled now."""
        return tuple(each.leak for each in self._worse_leaks() if each.after is LeakState.NOT_SETTLED)

    @property
    def ok(self) -> bool:
        """No leak is worse than it was; figures alone do not count."""
        return not self._worse_leaks()

    def _worse_leaks(self) -> list[LeakChange]:
        return [each for each in self.worse if isinstance(each, LeakChange)]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        leaks = {"ok": self.ok, "new_leaks": self.new_leaks, "no_longer_settled": self.no_longer_settled}
        return {**dict(as_plain(leaks)), **dict(as_plain(self))}

    def to_json(self) -> str:
        """One JSON object."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    def write(self, path: str | Path) -> None:
        """Write the JSON form."""
        write_text(Path(path), self.to_json() + "\n")


def compare_audits(old: AuditRecord, new: AuditRecord) -> AuditChanges:
    """Compare two audits, leak by leak and figure by figure.

    Arguments:
        old: the record of the earlier audit (`AuditRecord.load(path)`, or `.record` of what `audit` gives).
        new: the record of the later one.
    """
    leaks = [LeakChange(leak, old.leak_state(leak), new.leak_state(leak)) for leak in LEAKS]
    figures = [(figure, change) for figure in FIGURES if (change := figure.change(old, new)) is not None]
    return AuditChanges(
        worse=(
            *(each for each in leaks if RANKS[each.after] > RANKS[each.before]),
            *(change for figure, change in figures if figure.is_worse(change)),
        ),
        better=(
            *(each for each in leaks if RANKS[each.after] < RANKS[each.before]),
            *(change for figure, change in figures if not figure.is_worse(change)),
        ),
        other_shape=(old.target.inputs, old.target.outputs) != (new.target.inputs, new.target.outputs),
    )
