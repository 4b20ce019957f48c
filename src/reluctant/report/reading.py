"""An audit's record from a file: checked against its schema before anything is made of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reluctant._optional import require
from reluctant.audit import schema
from reluctant.audit.audit_value import SCHEMA
from reluctant.errors import InvalidInput, ReluctantError
from reluctant.report.consistency import inconsistencies

__all__ = ["check_audit", "read_audit", "told_as_a_wrong_record"]

EXPECTED = "a record that `reluctant audit --json` wrote"
LONGEST = 160  # characters of what the schema says


def read_audit(path: Path) -> dict[str, Any]:
    """The record in a file, or an error that says what is wrong with the file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise InvalidInput.about("RECORD", got=f"'{path}' ({error.strerror})", expected=EXPECTED) from error
    except ValueError as error:  # not JSON, or not text
        raise InvalidInput.about("RECORD", got=f"'{path}', which is no JSON ({error})", expected=EXPECTED) from error
    return check_audit(data, f"'{path}'")


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def check_audit(data: Any, name: str = "the record") -> dict[str, Any]:
    """The record if it follows the schema, or an error that names the first place where it does not."""
    version = data.get("schema") if isinstance(data, dict) else None
    if version != SCHEMA:
        raise InvalidInput.about("RECORD", got=f"{name} with schema {version!r}", expected=f"schema {SCHEMA!r}")
    jsonschema = require("jsonschema", extra="report", purpose="Checking a record")
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema()).iter_errors(data))
    if error is not None:
        place = "/".join(str(part) for part in error.absolute_path) or "its top"
        said = error.message if len(error.message) <= LONGEST else error.message[: LONGEST - 1] + "…"
        raise InvalidInput.about("RECORD", got=f"{name}, wrong at {place}: {said}", expected=EXPECTED)
    for wrong in inconsistencies(data):
        raise InvalidInput.about("RECORD", got=f"{name}, wrong at {wrong}", expected=EXPECTED)
    return dict(data)


@contextmanager
def told_as_a_wrong_record(path: Path) -> Iterator[None]:
    """Whatever a page stumbles over in a record from elsewhere is a mistake of the record."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, ReluctantError):
            raise
        got = f"'{path}', of which no page can be made ({type(error).__name__}: {error})"
        raise InvalidInput.about("RECORD", got=got, expected=EXPECTED) from error
