"""JUnit XML: an audit as two suites of tests, its leaks and its steps.

A leak behind a gate fails where it was found or is not settled. Without gates every leak that was found fails, and one
that is not settled is skipped; so is one that was found and has no gate. A step fails if it broke, and is skipped if it
had nothing to do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from reluctant.audit.facts import State
from reluctant.audit.record import LEAKS, AuditRecord, LeakKind, LeakState, StepFacts
from reluctant.report.overview import verdict_sentence
from reluctant.report.text import said, sentence, step_sentence, target_name

UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML 1.0 has not
FAILED, BROKEN, SKIPPED = "failure", "error", "skipped"
STEP_ENDS = {State.FAILED: BROKEN, State.STOPPED: BROKEN, State.SKIPPED: SKIPPED, State.NOT_BEGUN: SKIPPED}


@dataclass(frozen=True)
class Case:
    """One test. end: failure, error or skipped, None where it passed; kind: a slug, text: what to read."""

    name: str
    end: str | None
    kind: str
    text: str
    seconds: float = 0.0


def junit_text(record: AuditRecord) -> str:
    """The suites of a record, as a file has them."""
    suites = {"leaks": [_leak(record, leak) for leak in LEAKS], "steps": [_step(step) for step in record.steps]}
    every = [case for cases in suites.values() for case in cases]
    root = _element("testsuites", {"name": f"reluctant audit of {target_name(record)}", **_counts(every)})
    for name, cases in suites.items():
        suite = _element("testsuite", {"name": f"reluctant.{name}", **_counts(cases)}, root)
        if name == "leaks":
            properties = _element("properties", {}, suite)
            _element("property", {"name": "command", "value": record.repeat.command}, properties)
            _element("property", {"name": "verdict", "value": str(record.verdict.level)}, properties)
        for case in cases:
            named = {"classname": f"reluctant.{name}.{target_name(record)}", "name": case.name}
            element = _element("testcase", {**named, "time": f"{case.seconds:.3f}"}, suite)
            if case.end == SKIPPED:
                _element(SKIPPED, {"message": case.text}, element)
            elif case.end is not None:
                _element(case.end, {"type": case.kind, "message": case.text}, element, case.text)
            elif case.text:
                _element("system-out", {}, element, case.text)
        if name == "leaks":
            _element("system-out", {}, suite, verdict_sentence(record))
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False).join(
        ('<?xml version="1.0" encoding="UTF-8"?>\n', "\n")
    )


def _leak(record: AuditRecord, leak: LeakKind) -> Case:
    state, diagnosis = record.leak_state(leak), record.leak_diagnosis(leak)
    if state is LeakState.ABSENT:
        return Case(str(leak), None, "", "")
    fails = leak in record.gates if record.gates else state is LeakState.FOUND
    reasons = [] if state is LeakState.FOUND else [sentence(each.diagnosis) for each in record.verdict.reasons]
    return Case(str(leak), FAILED if fails else SKIPPED, diagnosis.slug, " ".join([said(diagnosis), *reasons]))


def _step(step: StepFacts) -> Case:
    kind = str(step.state) if step.diagnosis is None else step.diagnosis.slug
    return Case(step.step, STEP_ENDS.get(step.state), kind, step_sentence(step), step.seconds)


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    ends, seconds = Counter(case.end for case in cases), sum(case.seconds for case in cases)
    numbers = {"tests": len(cases), "failures": ends[FAILED], "errors": ends[BROKEN], "skipped": ends[SKIPPED]}
    return {**{name: str(number) for name, number in numbers.items()}, "time": f"{seconds:.3f}"}


def _element(
    tag: str, attributes: dict[str, str], parent: ElementTree.Element | None = None, text: str = ""
) -> ElementTree.Element:
    """An element whose texts are ones that XML can hold."""
    made = ElementTree.Element(tag, {name: UNWRITABLE.sub("?", value) for name, value in attributes.items()})
    made.text = UNWRITABLE.sub("?", text) or None
    if parent is not None:
        parent.append(made)
    return made
