"""The record of a run: one JSON object that round-trips, with its schema, and no NaN in it."""

from __future__ import annotations

import json
import platform

import numpy as np
import pytest

from reluctant import __version__, check_health, open_oracle, verify
from reluctant.run_record import SCHEMA_VERSION, Record
from reluctant.testing import planted

NETWORK = planted((6, 8, 3))


def health_record(target=NETWORK, **options) -> Record:
    oracle = open_oracle(target, **options)
    health = check_health(oracle)
    return Record.of(oracle, "health", 0, health.refusal is None, health=health)


def test_the_documented_keys():
    data = health_record().to_dict()
    assert list(data) == ["schema", "command", "seed", "ok", "versions", "target", "queries", "health"]
    assert data["schema"] == SCHEMA_VERSION == 1
    assert data["versions"] == {
        "reluctant": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def test_the_target_in_the_record():
    target = health_record(domain=(0, 1)).to_dict()["target"]
    assert (target["name"], target["inputs"], target["outputs"]) == ("6-8-3", 6, 3)
    assert (target["number format"], target["kind"]) == ("float64", "values")
    assert target["domain"] == "[0, 1] in every coordinate"
    assert target["identity"].startswith("network sha256:")


def test_queries_by_stage_add_up():
    oracle = open_oracle(lambda x: NETWORK(x), dim=6)
    health = check_health(oracle)
    record = Record.of(oracle, "health", 0, True, health=health)
    queries = record.to_dict()["queries"]
    assert queries["total"] == record.queries == oracle.queries == 103
    assert queries["by stage"] == {
        "open": {"asked": 0, "sent": 1, "replayed": 0},
        "health": {"asked": 102, "sent": 102, "replayed": 0},
    }


def test_json_round_trips():
    record = health_record()
    data = json.loads(record.to_json())
    assert json.dumps(data, indent=2) == record.to_json()
    assert data["health"]["noise"] == record.to_dict()["health"]["noise"]


def test_nan_and_inf_become_null():
    findings = {"a": float("nan"), "b": [np.inf, 1.5], "c": {"d": np.float64("-inf")}, "e": (np.int64(3),)}
    oracle = open_oracle(NETWORK)
    data = json.loads(Record.of(oracle, "test", 0, True, findings=findings).to_json())
    assert data["findings"] == {"a": None, "b": [None, 1.5], "c": {"d": None}, "e": [3]}


def test_a_target_without_numbers_has_a_record():
    record = health_record(lambda x: np.full(len(x), np.nan), dim=4)
    health = json.loads(record.to_json())["health"]
    assert health["noise"] == {"absolute": None, "relative": None, "rounding": np.finfo(np.float64).eps / 2}
    assert health["refusal"] == "non-finite"


@pytest.mark.parametrize("value", [np.bool_(True), np.float32(1.5), np.int8(3)], ids=repr)
def test_numpy_values_are_written_as_plain_ones(value):
    data = json.loads(Record.of(open_oracle(NETWORK), "test", 0, True, found={"value": value}).to_json())
    assert data["found"]["value"] == value.tolist()


def test_a_verification_in_the_record():
    oracle = open_oracle(NETWORK)
    found = verify(oracle, NETWORK)
    data = json.loads(Record.of(oracle, "verify", 1, found.ok, verification=found).to_json())
    assert data["verification"]["ok"] is True
    assert {group["name"] for group in data["verification"]["groups"]} >= {"on creases", "random, scale 1"}
