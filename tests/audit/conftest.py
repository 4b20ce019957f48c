"""Audits of small targets, checked against the schema as they are made."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from audit_kit import QUICK

from reluctant import open_oracle
from reluctant.audit import audit, schema
from reluctant.audit.record import AuditRecord


@pytest.fixture(scope="session")
def valid() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A record, if it keeps to the schema."""
    rules = schema()
    jsonschema.Draft202012Validator.check_schema(rules)
    validator = jsonschema.Draft202012Validator(rules)

    def check(record: dict[str, Any]) -> dict[str, Any]:
        errors = [f"{list(error.path)}: {error.message[:200]}" for error in validator.iter_errors(record)]
        assert errors == []
        return record

    return check


@pytest.fixture
def record(valid) -> Callable[..., dict[str, Any]]:
    """The record of an audit without the sweep, which has tests of its own."""

    def of(target: Any, dim: int | None = None, steps=QUICK, **settings: Any) -> dict[str, Any]:
        opening = {} if dim is None else {"dim": dim}
        with open_oracle(target, **opening) as oracle:
            found = audit(oracle, steps=steps, **settings)
            typed = json.loads(found.record.to_json())
            assert AuditRecord.from_dict(typed).to_dict() == typed
            return valid(found.to_dict())

    return of
