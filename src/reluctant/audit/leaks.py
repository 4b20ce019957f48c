"""Leaks of a record one by one: found, absent or not settled, and each as a diagnosis with its numbers."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from reluctant.audit.record import AuditRecord, LeakKind
from reluctant.messages import Diagnosis


class LeakState(StrEnum):
    """The state of a leak. absent: the steps that would show it came to their end without it."""

    FOUND = "found"
    NOT_SETTLED = "not-settled"
    ABSENT = "absent"


def leak_state(record: AuditRecord, leak: LeakKind) -> LeakState:
    """What an audit says of one leak."""
    if leak in record.verdict.leaks:
        return LeakState.FOUND
    return LeakState.NOT_SETTLED if leak in record.verdict.unsettled else LeakState.ABSENT


def leak_diagnosis(record: AuditRecord, leak: LeakKind) -> Diagnosis:
    """What leaks, in numbers; that it is not settled, where that is so."""
    if leak_state(record, leak) is LeakState.NOT_SETTLED:
        return Diagnosis("leak-not-settled", {"leak": str(leak)})
    return Diagnosis(str(leak), _numbers(record, leak))


def _numbers(record: AuditRecord, leak: LeakKind) -> dict[str, Any]:
    copy, span, flip = record.recovered, record.span, record.flip
    if leak in (LeakKind.EXTRACTABLE, LeakKind.APPROXIMABLE):
        return {} if copy is None else {"queries": copy.queries, "parameters": copy.parameters}
    if leak is LeakKind.SPAN:
        return {} if span is None else {"rank": span.rank, "inputs": span.inputs, "queries": span.queries}
    return {} if flip is None else {"relative_size": flip.relative_size, "queries": flip.queries}
