"""SARIF 2.1.0: the findings of an audit for code scanning.

A leak is a result whose rule is its slug: an error for copies, a warning for directions, flips and open questions.
Why there is no copy is a note. A step that failed is a notification of the run. Code scanning wants a place in the
repository for every result: an address becomes a path, and a module its file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from reluctant.audit.facts import State
from reluctant.audit.record import LEAKS, AuditRecord, LeakKind, LeakState
from reluctant.messages import Diagnosis
from reluctant.messages.catalogue import TEXTS
from reluctant.report.overview import verdict_sentence
from reluctant.report.text import defense_words, said, sentence, step_sentence, target_name

SARIF_VERSION = "2.1.0"
SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
NOT_SETTLED = "leak-not-settled"


@dataclass(frozen=True)
class Severity:
    """How bad a finding is. score: for code scanning, from 7 high, from 4 medium; None where there is no finding.

    title: the name of the rule in a list; the slug in words if empty.
    """

    level: str
    score: float | None = None
    title: str = ""


SEVERITIES = {
    LeakKind.EXTRACTABLE: Severity("error", 8.0, "The network can be copied exactly"),
    LeakKind.APPROXIMABLE: Severity("error", 7.0, "The network can be copied closely"),
    LeakKind.SPAN: Severity("warning", 4.0, "The input subspace is visible"),
    LeakKind.FLIPPABLE: Severity("warning", 5.0, "A small step flips the decision"),
    NOT_SETTLED: Severity("warning", 4.0, "The audit could not decide on a leak"),
}
NOTE = Severity("note")
NOTIFIED = {State.FAILED: "error", State.STOPPED: "error", State.NOT_BEGUN: "warning"}


@dataclass(frozen=True)
class SarifFinding:
    """One result: its diagnosis, its text, and a mark that distinguishes it from others of the same slug."""

    diagnosis: Diagnosis
    text: str
    key: str = ""

    @property
    def severity(self) -> Severity:
        """By the slug."""
        return SEVERITIES.get(self.diagnosis.slug, NOTE)


def sarif_text(record: AuditRecord) -> str:
    """The log of a record, as a file has it."""
    return json.dumps(sarif_log(record), indent=1, allow_nan=False) + "\n"


def sarif_log(record: AuditRecord) -> dict[str, Any]:
    """The findings of a record as a SARIF log with one run."""
    found = list(findings(record))
    rules = list(dict.fromkeys([*map(str, LEAKS), *(finding.diagnosis.slug for finding in found)]))
    run = {
        "tool": {"driver": {
            "name": "reluctant", "version": record.versions.reluctant,
            "rules": [_rule(slug, record) for slug in rules],
        }},
        "automationDetails": {"id": f"reluctant/{_place(record)}/"},
        "invocations": [_invocation(record)],
        "results": [_result(finding, rules.index(finding.diagnosis.slug), record) for finding in found],
        "properties": {
            "verdict": str(record.verdict.level), "confidence": str(record.verdict.confidence), "seed": record.seed,
            "queries": record.queries.total, "budget": record.budget, "text": verdict_sentence(record),
        },
    }  # fmt: skip
    return {"$schema": SARIF_SCHEMA, "version": SARIF_VERSION, "runs": [run]}


def findings(record: AuditRecord) -> Iterator[SarifFinding]:
    """Leaks that were found or are not settled, the worst first; then why there is no copy, or no exact one."""
    states = {leak: record.leak_state(leak) for leak in LEAKS}
    for state in (LeakState.FOUND, LeakState.NOT_SETTLED):
        for leak in (leak for leak in LEAKS if states[leak] is state):
            diagnosis = record.leak_diagnosis(leak)
            yield SarifFinding(diagnosis, " ".join([said(diagnosis), *_defense(record, leak, state)]), str(leak))
    for reason in record.verdict.reasons:
        yield SarifFinding(reason.diagnosis, sentence(reason.diagnosis), reason.step)


def _defense(record: AuditRecord, leak: LeakKind, state: LeakState) -> list[str]:
    """What would help against exact recovery, where the audit found that."""
    cheapest = None if record.defenses is None else record.defenses.cheapest
    if cheapest is None or leak is not LeakKind.EXTRACTABLE or state is not LeakState.FOUND:
        return []
    return [said(Diagnosis("cheapest-defense", {"defense": defense_words(cheapest)}))]


def _rule(slug: str, record: AuditRecord) -> dict[str, Any]:
    """A slug with the text of the catalogue; names of other catalogues are its tags."""
    severity = SEVERITIES.get(slug, NOTE)
    title = severity.title or slug.replace("-", " ").capitalize()
    text = (TEXTS[slug].more if slug in TEXTS else "") or f"{title}."
    names = [f"external/{each.source}/{each.id}".replace(" ", "-") for each in record.names if each.leak == slug]
    properties: dict[str, Any] = {"tags": ["security", "model-extraction", *names]}
    if severity.score is not None:
        properties["security-severity"] = str(severity.score)
    return {
        "id": slug, "name": slug.replace("-", " ").title().replace(" ", ""),
        "shortDescription": {"text": title}, "fullDescription": {"text": text}, "help": {"text": text},
        "defaultConfiguration": {"level": severity.level}, "properties": properties,
    }  # fmt: skip


def _result(finding: SarifFinding, index: int, record: AuditRecord) -> dict[str, Any]:
    slug, place = finding.diagnosis.slug, _place(record)
    identity = "\n".join([slug, finding.key, place])
    return {
        "ruleId": slug, "ruleIndex": index, "level": finding.severity.level,
        "message": {"text": finding.text or slug},
        "locations": [{
            "physicalLocation": {"artifactLocation": {"uri": place}, "region": {"startLine": 1}},
            "logicalLocations": [{"name": target_name(record), "kind": "module"}],
        }],
        "partialFingerprints": {"primaryLocationLineHash": f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}:1"},
    }  # fmt: skip


def _invocation(record: AuditRecord) -> dict[str, Any]:
    """How the audit ran: steps that failed or were stopped are notifications."""
    notes = [
        {
            "level": NOTIFIED[step.state], "message": {"text": f"{step.step}: {step_sentence(step)}"},
            "descriptor": {"id": "step-failed" if step.diagnosis is None else step.diagnosis.slug},
        }
        for step in record.steps
        if step.state in NOTIFIED
    ]  # fmt: skip
    return {
        "executionSuccessful": record.ok, "commandLine": record.repeat.command, "toolExecutionNotifications": notes,
    }  # fmt: skip


def _place(record: AuditRecord) -> str:
    """The target as a path: code scanning refuses addresses."""
    location = record.target.location or target_name(record)
    address = urlsplit(location)
    if address.scheme in ("http", "https"):
        return quote(f"{address.netloc.replace(':', '_')}{address.path}")
    module, colon, _ = location.partition(":")
    if colon and module and "/" not in module:
        return quote(f"{module.replace('.', '/')}.py")
    return f"file://{quote(location)}" if location.startswith("/") else quote(location)
