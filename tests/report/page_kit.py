"""What tests of pages share: records as the page takes them, and the words of a page as a reader sees them."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from reluctant.audit import audit
from reluctant.audit.record import AuditRecord
from reluctant.messages import Diagnosis
from reluctant.oracles import open_oracle
from reluctant.report.overview import found_leaks

__all__ = ["audited", "slugs", "states", "typed", "with_verdict", "words"]


def typed(data: dict[str, Any]) -> AuditRecord:
    """Plain data as the record that a page takes."""
    return AuditRecord.from_dict(data)


def audited(target: Callable[..., Any], dim: int = 6, **settings: Any) -> AuditRecord:
    """The record of an audit, written and read again."""
    with open_oracle(target, dim=dim) as oracle:
        record = audit(oracle, **settings).record
    assert typed(record.to_dict()).to_dict() == record.to_dict()
    return typed(record.to_dict())


def with_verdict(record: AuditRecord, **changes: Any) -> AuditRecord:
    """The same record under another verdict."""
    return replace(record, verdict=replace(record.verdict, **changes))


def states(record: AuditRecord) -> dict[str, str]:
    """What the first screen says of each leak."""
    return {leak.what: leak.state for leak in found_leaks(record)}


def slugs(record: AuditRecord) -> set[str]:
    """All diagnoses of a record."""
    found: list[Diagnosis | None] = [step.diagnosis for step in record.steps]
    found += [reason.diagnosis for reason in record.verdict.reasons]
    found += record.limits
    return {each.slug for each in found if each is not None}


def words(page: str) -> str:
    """The text of a page, in one line."""
    shown = re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(" ".join(re.sub("<[^>]*>", " ", shown).split()))
