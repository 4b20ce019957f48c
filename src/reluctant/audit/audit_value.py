"""The record of an audit: plain data under a versioned schema, from which a report is made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from reluctant._notebook import html_table
from reluctant.audit.assumed import assumed
from reluctant.audit.expected import expected
from reluctant.audit.known import Known
from reluctant.audit.leaks import LEAKS, smallest_flip
from reluctant.audit.names import names
from reluctant.audit.pictures import first_layer, rounded
from reluctant.audit.probing import stepped_by
from reluctant.audit.record import AuditRecord
from reluctant.audit.recovered import Price, cost, recovered
from reluctant.audit.states import State
from reluctant.audit.stopped import how_to_go_on
from reluctant.audit.verdict import Verdict, judge
from reluctant.interface.diagnoses import AS_A_CLASS, OTHER_ANSWERS, STEPWISE, likeness
from reluctant.interface.whole_numbers import Whole
from reluctant.messages import Diagnosis
from reluctant.oracles import Facts, Kind, Rows
from reluctant.results import Result
from reluctant.run_record import Record, jsonable

__all__ = ["LEAKS", "SCHEMA", "Audit", "StepRecord", "schema"]

SCHEMA = "reluctant-audit/1"
MAYBE_PERCENT = "values between 0 and 100, which may be probabilities in percent"
SMALL_INPUT = 4096  # numbers of an input that is written into the record


@dataclass(frozen=True)
class StepRecord:
    """How one step went, why, what it spent of what it was allowed."""

    step: str
    state: State
    why: str = ""
    queries: int = 0
    seconds: float = 0.0
    allowed: int | None = None
    diagnosis: Diagnosis | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        names = ("step", "state", "why", "queries", "seconds", "allowed")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Audit:
    """What an audit found; `to_dict` is the record. `ok`: it ran to its end. recorded: there is a transcript of it.

    written: names of the files that it goes to, "record" and "page", where they are known.
    """

    facts: Facts | None
    rows: Mapping[str, Rows]
    known: Known
    steps: tuple[StepRecord, ...]
    ok: bool
    seed: int
    budget: int
    price: Price | None = None
    classes: tuple[str, ...] = ()
    repeat: str = ""
    name: str = "target"
    rate: float | None = None
    recorded: bool = False
    written: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """What leaks."""
        return judge(self.known)

    @property
    def stopped(self) -> str | None:
        """Where it was stopped from outside and how it goes on, None where it was not."""
        return how_to_go_on([(step.step, step.state) for step in self.steps], self.recorded) or None

    @property
    def queries(self) -> int:
        """Rows that reached the target."""
        return sum(self.rows.values(), Rows()).queries

    @property
    def record(self) -> AuditRecord:
        """All that was found, as typed facts."""
        from reluctant.audit.record_entries import make_record

        return make_record(self)

    def _repr_html_(self) -> str:
        verdict = self.verdict
        facts = {
            "leaks": list(verdict.leaks) or "none found",
            "not settled": list(verdict.unsettled),
            "queries": f"{self.queries:,} of {self.budget:,}",
            "steps": {step.step: str(step.state) for step in self.steps},
        }
        return html_table(f"Audit: {verdict.level}", facts)

    @property
    def outputs(self) -> int:
        """That were looked at."""
        return (0 if self.facts is None else self.facts.outputs) - len(self.known.without)

    def to_dict(self) -> dict[str, Any]:
        """The record, as docs/audit-record.md describes it; NaN and inf are None."""
        known, verdict = self.known, self.verdict
        facts = self.facts or Facts(0, 0, name=self.name)
        shared = Record("audit", self.seed, self.ok, facts, self.rows).to_dict()
        record: dict[str, Any] = {
            **shared,
            "schema": SCHEMA,
            "target": self._target(shared["target"]),
            "budget": self.budget,
            "price": None if self.price is None else {**self.price, "cost": cost(self.queries, self.price)},
            "verdict": verdict.to_dict(),
            "stopped": self.stopped,
            **_by_step(known),
            "recovered": recovered(known.copy, self.outputs, self.price, known.written_link, self.rate),
            "expected": expected(known, facts, self.price, self.rate),
            "truth": known.truth,
            "defenses": known.sweep and known.sweep.to_dict(),
            "pictures": _pictures(known),
            "steps": [step.to_dict() for step in self.steps],
            "limits": assumed(known, self.facts, self.queries, self.budget),
            "names": names(known, verdict),
            "repeat": {"command": self.repeat, "seed": self.seed, **self.written},
        }
        return dict(jsonable(record))

    def _target(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        opened = self.facts is not None
        known = {name: value if opened or name == "name" else None for name, value in facts.items()}
        link, found = self.known.link, self.known.link != self.known.given.link
        reach = self.known.reach
        return {
            **known,
            "classes": list(self.classes) if self.classes and not self.known.without else None,
            "link": link,
            "link found": found,
            "answers only in": None if reach is None else reach.describe(),
            "may be sigmoids": self.known.may_be_sigmoids,
            **_look_like(self.known),
        }

    def to_json(self) -> str:
        """One JSON object."""
        return self.record.to_json()

    def write(self, path: str | Path) -> None:
        """Write the JSON form."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the record."""
    return dict(json.loads(resources.files("reluctant.audit").joinpath("schema.json").read_text("utf-8")))


def _by_step(known: Known) -> dict[str, Any]:
    """What the steps found, each under its name."""
    return {
        "health": known.health and known.health.to_dict(),
        "served": None if known.served is known.health or known.served is None else known.served.to_dict(),
        "span": known.span and known.span.to_dict(),
        "extraction": _run_as_data(known.extraction),
        "part": known.part and asdict(known.part),
        "learning": _run_as_data(known.learning),
        "training": _run_as_data(known.training),
        "flip": _flip(known),
        "linearity": known.linearity,
    }


def _run_as_data(run: Result | None) -> dict[str, Any] | None:
    """A run without what the pictures hold already."""
    if run is None:
        return None
    data = run.to_dict()
    return data | {"evidence": {k: v for k, v in data["evidence"].items() if not k.endswith(" search")}}


def _flip(known: Known) -> dict[str, Any] | None:
    """The smallest flip, with its inputs where they are small; how every try went, by what, and the middle size."""
    best = smallest_flip(known)
    if best is None:
        return None
    small = len(best.start) <= SMALL_INPUT
    tries = [flip.to_dict() for flip in known.flips]
    parts = ("outcome", "ok", "relative size", "classes", "queries")
    by, before = stepped_by(known)
    sizes = [flip.relative_size for flip in known.flips if flip.ok]
    return best.to_dict() | {
        "start": best.start.tolist() if small else None,
        "x": best.x.tolist() if small and best.x is not None else None,
        "tries": [{part: each[part] for part in parts} for each in tries],
        "median relative size": float(np.median(sizes)) if sizes else None,
        "by": by,
        "queries before": before,
    }


def _pictures(known: Known) -> dict[str, Any]:
    search = None if known.extraction is None else known.extraction.evidence.get("line search")
    return {
        "line": known.line,
        "slice": known.plane,
        "first layer": first_layer(known.network, known.given.shape),
        "errors": list(known.errors) or None,
        "search": None if search is None else _small_search(search.to_dict()),
    }


def _small_search(search: dict[str, Any]) -> dict[str, Any]:
    return search | {name: rounded(np.asarray(search[name])) for name in ("t", "answers", "creases")}


def _look_like(known: Known) -> dict[str, str]:
    """What its answers look like in words, where that is more than their kind."""
    served, percent = known.served, known.written is not None and known.written.percent
    if served is not None and served.percent and known.may_be_sigmoids:
        return {"look like": MAYBE_PERCENT}
    if known.without:
        which = f"output{'s' * (len(known.without) > 1)} {', '.join(map(str, known.without))}"
        return {"look like": f"{AS_A_CLASS} ({which}), beside {OTHER_ANSWERS}"}
    if served is not None and served.in_steps:
        return {"look like": f"{served.answers} {STEPWISE}"}
    maybe_labels = served is not None and served.answers is Kind.LABELS and served.whole is Whole.UNTOLD
    if served is None or not (percent or served.told is not None or maybe_labels):
        return {}
    return {"look like": likeness(replace(served, percent=percent))}
