"""A fresh audit of the bundled model against the record that was looked at: what is told, not the last digits.

After a change that is meant: RELUCTANT_GOLDEN=write pytest -m slow tests/report/test_golden_record.py; read the diff.
"""

from __future__ import annotations

import json
import os
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reluctant.audit import STEPS, audit
from reluctant.bundled import digits_inputs, digits_model
from reluctant.cli.commands.audit_commands import DEMO
from reluctant.oracles import open_oracle

GOLDEN = Path(__file__).parent / "example-audit.json"
EXACT = {"widths", "parameters", "rank", "inputs", "outputs", "height", "width", "neurons", "neurons_found", "seed"}
OF_THE_SWEEP = ("sweep-inputs", "one-recipe", "training-not-tried")  # limits


def fresh(*, left_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """The audit of `reluctant demo`."""
    with open_oracle(digits_model(), precision="float64") as oracle:
        found = audit(
            oracle, inputs=np.load(digits_inputs()), file=digits_model(), repeat="reluctant demo",
            steps=[step for step in STEPS if step not in left_out], **DEMO,
        )  # fmt: skip
    return json.loads(found.to_json())


def scrubbed(data: Any, name: str = "") -> Any:
    """What is told: names, words and sizes; other numbers as such, for they differ by their last digits."""
    if isinstance(data, dict):
        return {key: scrubbed(value, key) for key, value in data.items() if key != "versions"}
    if isinstance(data, list):
        told = [scrubbed(value, name) for value in data]
        return told if name in EXACT or any(not isinstance(each, float) for each in told) else ["numbers"]
    if isinstance(data, bool) or data is None or name in EXACT:
        return data
    return re.sub(r"\d[\d.,]*(e[+-]\d+)?", "N", data) if isinstance(data, str) else 0.0


def without_defenses(record: dict[str, Any]) -> dict[str, Any]:
    record = deepcopy(record) | {"defenses": None}
    record["steps"] = [step for step in record["steps"] if step["step"] != "defenses"]
    record["limits"] = [limit for limit in record["limits"] if limit["slug"] not in OF_THE_SWEEP]
    return record


def test_an_audit_tells_what_the_example_tells(written_record):
    found = scrubbed(without_defenses(fresh(left_out=("defenses",))))
    assert found == scrubbed(without_defenses(written_record))


@pytest.mark.slow
def test_a_whole_audit_tells_what_the_example_tells(written_record):
    found = fresh()
    if os.environ.get("RELUCTANT_GOLDEN") == "write":
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        written_record = found
    assert scrubbed(found) == scrubbed(written_record)


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["recovered"].update(widths=[64, 31, 10]),
        lambda record: record["verdict"].update(confidence="no-proof"),
        lambda record: record["interface"].pop("noise"),
        lambda record: record["pictures"].update(line=None),
        lambda record: record["steps"].pop(0),
    ],
)
def test_the_comparison_sees_what_changed(record, written_record, change):
    change(record)
    assert scrubbed(record) != scrubbed(written_record)
