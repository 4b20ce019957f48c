"""Audits of small targets: those that several tests look at are made once, and every record is read back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import numpy as np
import pytest
from audit_kit import QUICK

from reluctant import open_oracle
from reluctant.audit import Audit, audit, schema
from reluctant.audit.record import AuditRecord
from reluctant.bundled import digits_inputs, digits_model


@pytest.fixture(scope="session")
def valid() -> Callable[[AuditRecord], AuditRecord]:
    """A record, if it keeps to its schema and is the same when it is read back."""
    validator = jsonschema.Draft202012Validator(schema())

    def check(record: AuditRecord) -> AuditRecord:
        data = json.loads(record.to_json())
        errors = [f"{list(error.path)}: {error.message[:200]}" for error in validator.iter_errors(data)]
        assert errors == []
        assert AuditRecord.from_dict(data).to_dict() == data
        return record

    return check


@pytest.fixture(scope="session")
def record(valid) -> Callable[..., AuditRecord]:
    """The record of an audit without the sweep, which has tests of its own."""

    def of(target: Any, dim: int | None = None, steps=QUICK, **settings: Any) -> AuditRecord:
        opening = {} if dim is None else {"dim": dim}
        with open_oracle(target, **opening) as oracle:
            return valid(audit(oracle, steps=steps, **settings).record)

    return of


@pytest.fixture(scope="session")
def digits() -> Audit:
    """The bundled model, beside its file, at a price."""
    with open_oracle(digits_model(), precision="float64") as oracle:
        return audit(
            oracle, steps=QUICK, inputs=np.load(digits_inputs()), file=digits_model(), precision="float64",
            price={"per thousand": 2.0, "currency": "EUR"},
        )  # fmt: skip
