"""`Record`: one run as JSON (target, seed, findings, cost) for a report or another program."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from reluctant._files import as_plain
from reluctant._version import __version__
from reluctant.messages import Diagnosis
from reluctant.oracles import Counting, Facts, Rows
from reluctant.oracles.retry import answered_sizes

# 1: command, seed, versions, target, queries by stage, findings.
SCHEMA_VERSION = 1
ANSWERED = "answered range"  # a finding where a target fails on larger inputs than it answers


@dataclass(frozen=True)
class Record:
    """One run of one command.

    `findings` holds what the command found, under the name of the part that found it: "health",
    "verification", and so on.
    """

    command: str
    seed: int
    ok: bool
    facts: Facts
    rows: Mapping[str, Rows]
    findings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, oracle: Counting, command: str, seed: int, ok: bool, **findings: Any) -> Record:
        """Record what an opened target was asked, and what was found."""
        sizes = answered_sizes(oracle)
        if sizes is not None and sizes.diagnosis is not None:
            findings[ANSWERED] = sizes.diagnosis
        return cls(command, seed, ok, oracle.facts, dict(oracle.ledger.stages), findings)

    @property
    def answered(self) -> Diagnosis | None:
        """The range that the target answers, where it fails on larger inputs; None where it does not."""
        return self.findings.get(ANSWERED)

    @property
    def queries(self) -> int:
        """Rows that reached the target."""
        return sum(self.rows.values(), Rows()).queries

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the documented form of the record."""
        return {
            "schema": SCHEMA_VERSION,
            "command": self.command,
            "seed": self.seed,
            "ok": self.ok,
            "versions": {
                "reluctant": __version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
            "target": _facts_as_data(self.facts),
            "queries": {"total": self.queries, "by stage": {k: asdict(v) for k, v in self.rows.items()}},
            **{name: _plain(value) for name, value in self.findings.items()},
        }

    def to_json(self) -> str:
        """One JSON object; NaN and inf become null."""
        return json.dumps(as_plain(self.to_dict()), indent=2, allow_nan=False)


def _facts_as_data(facts: Facts) -> dict[str, Any]:
    return {
        "name": facts.name,
        "inputs": facts.dim,
        "outputs": facts.outputs,
        "number format": str(facts.dtype),
        "kind": str(facts.kind),
        "domain": facts.domain.describe(),
        "identity": facts.identity,
    }


def _plain(value: Any) -> Any:
    return value.to_dict() if hasattr(value, "to_dict") else value
