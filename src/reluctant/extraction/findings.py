"""Findings of one search, each under a name and a type, and the list of its attempts; both go into the result.

The driver decides by these fields. The evidence of a result is written from them at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from reluctant.extraction.candidate_check import CheckedNetwork
from reluctant.extraction.method import Method, StageFailed
from reluctant.extraction.straight_creases import CreaseKinds
from reluctant.interface import Interface
from reluctant.interface.reach import ClippedInputs, ReadTarget
from reluctant.messages import Diagnosis
from reluctant.oracles.input_units import Box
from reluctant.results import Run
from reluctant.verification.agreement import Verification


@dataclass(frozen=True)
class Attempt:
    """One run of a method: its name, the rows it asked for, the stage it ended in, and the number that ended it.

    raised: type of the exception, where its arithmetic failed.
    """

    method: str
    rows: int
    stage: str
    number: float | None = None
    limit: float | None = None
    raised: str = ""

    def __str__(self) -> str:
        why = "" if self.number is None or self.limit is None else f" ({self.number:.2g}, limit {self.limit:.2g})"
        return f"{self.method}: {self.rows} rows, ended in stage {self.stage or 'start'}{why}"


@dataclass
class Attempts:
    """What was tried, in order."""

    entries: list[Attempt] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(map(str, self.entries))

    @contextmanager
    def entry(self, method: Method, run: Run[Any]) -> Iterator[None]:
        """Enter one attempt, however it ends."""
        before, number, limit, stage, raised = run.rows.asked, None, None, "", ""
        try:
            yield
        except StageFailed as failure:
            number, limit, stage, raised = failure.number, failure.limit, failure.stage, failure.raised
            raise
        finally:
            rows = run.rows.asked - before
            self.entries.append(Attempt(type(method).__name__, rows, stage or run.stage, number, limit, raised))

    def last_was_cheap(self, attempts: int) -> bool:
        """True if the last method has had fewer attempts, with less than half of the rows of all methods."""
        same = [entry.rows for entry in self.entries if entry.method == self.entries[-1].method]
        return len(same) < attempts and 2 * sum(same) <= sum(entry.rows for entry in self.entries)

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain data for JSON."""
        return [asdict(entry) for entry in self.entries]


@dataclass
class Findings:
    """What one search has found, for the result; None of what it did not look at.

    health: of the place that was asked last. inside: the box of that place. link: through which answers were read.
    gradients: why those of the target were not used. failures: why attempts ended, in order. layers: creases of a line
    that were followed. network: the last whole one, with its checks. own_scales: its comparison at the columns' own
    sizes. unit_ratio: of the largest unit of an input to the smallest, where questions have found them. reason: why the
    search ended.
    """

    health: Interface | None = None
    inside: Box | None = None
    link: ReadTarget | None = None
    gradients: Diagnosis | None = None
    failures: list[str] | None = None
    layers: CreaseKinds | None = None
    network: CheckedNetwork | None = None
    own_scales: Verification | None = None
    clipped: ClippedInputs | None = None
    unit_ratio: float | None = None
    reason: Diagnosis | None = None

    @property
    def interface(self) -> Interface:
        """The health of the target, which every search looks at first."""
        assert self.health is not None
        return self.health

    def enter(self, health: Interface, inside: Box | None) -> None:
        """Note how the target answers where it is asked from now on, and the box of that place if it is one."""
        self.health, self.inside = health, inside or self.inside

    def fail(self, reason: str) -> None:
        """Note why an attempt ended."""
        self.failures = [*(self.failures or []), reason]

    def evidence(self) -> dict[str, Any]:
        """As the result shows it."""
        found: dict[str, Any] = {"health": self.health, "inside": self.inside}
        found |= {} if self.link is None else self.link.evidence() | {"health": self.health}
        found |= {"gradients": self.gradients, "failures": self.failures, "layers": self.layers}
        found |= {} if self.network is None else self.network.evidence()
        found |= {"own scales": self.own_scales}
        found |= {} if self.clipped is None else self.clipped.evidence()
        found |= {"reason": self.reason, "found units": self.unit_ratio}
        return {name: value for name, value in found.items() if value is not None or name == "certificate"}
