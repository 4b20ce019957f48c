"""Every command on real targets: files, modules, the bundled model."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from reluctant import ReLUNetwork
from reluctant.audit import defense_sweep
from reluctant.audit.record import AuditRecord
from reluctant.bundled import digits_model
from reluctant.cli.commands.audit_commands import DEMO
from reluctant.errors import InvalidInput
from reluctant.report import verdict_sentence

RELU = "import numpy as np\nW = np.random.default_rng(0).standard_normal((8, 5))\n"
TARGET = f"{RELU}def target(x): return np.maximum(x @ W.T + 0.3, 0).sum(axis=1)\n"


@pytest.mark.usefixtures("short_training")
def test_the_demo_writes_a_report_and_a_record(command, folder, monkeypatch):
    monkeypatch.setitem(DEMO, "seconds", 5.0)
    monkeypatch.setattr(defense_sweep, "default_defenses", lambda *_: [(), ("decimals=2",)])
    ended = command("demo")
    assert ended.status == 0
    out = folder / "reluctant-demo"
    assert sorted(path.name for path in out.iterdir()) == ["audit.json", "recovered.onnx", "report.html"]
    record = json.loads((out / "audit.json").read_text())
    assert (record["ok"], record["verdict"]["level"]) == (True, "exact")
    kept = {
        name: str(Path("reluctant-demo", file)) for name, file in (("record", "audit.json"), ("page", "report.html"))
    }
    assert {name: record["repeat"][name] for name in kept} == kept  # the page says how it is made again
    assert verdict_sentence(AuditRecord.load(out / "audit.json")) in ended.out
    assert str(out / "report.html") in ended.out
    assert "audit 1/13: health" in ended.err


def test_the_demo_keeps_quiet(command, monkeypatch):
    def stopped(*_: object, **__: object) -> None:
        raise InvalidInput("stopped")

    monkeypatch.setattr("reluctant.cli.commands.audit_commands.audit_target", stopped)
    assert command("demo", "-q").err == "error: stopped [invalid-input]\n"


@pytest.mark.parametrize("suffix", ["npz", "onnx"])
def test_health_of_a_file(suffix, command, request):
    ended = command("health", request.getfixturevalue(suffix))
    assert ended.status == 0
    assert "piecewise linear" in ended.out.splitlines()[0]
    assert ended.out.endswith("102 queries.\n")


def test_health_of_a_module(command, module):
    ended = command("health", f"{module(TARGET)}:target", "--dim", 5)
    assert ended.status == 0
    assert ended.out.endswith("103 queries.\n")  # one to open a callable


def test_health_of_a_network_in_a_module(command, module):
    source = "from reluctant.testing import planted\nclass Models: small = planted((5, 8, 1))\n"
    ended = command("health", f"{module(source)}:Models.small")
    assert ended.status == 0
    assert ended.out.endswith("102 queries.\n")


def test_verify_agrees(command, onnx, npz):
    assert command("verify", onnx, npz).status == 0


def test_verify_of_the_bundled_model(command):
    assert command("verify", digits_model(), digits_model()).status == 0
    assert command("verify", digits_model(), digits_model(), "--precision", "float64").status == 0


def test_verify_disagrees(command, onnx, network, folder):
    weights = [network.weights[0] + 1e-3, network.weights[1]]
    ReLUNetwork(weights, network.biases).save(folder / "other.npz")
    ended = command("verify", onnx, folder / "other.npz")
    assert ended.status == 1
    assert "NOT" in ended.out


def test_verify_takes_a_tolerance(command, onnx, network, folder):
    ReLUNetwork([network.weights[0] + 1e-6, network.weights[1]], network.biases).save(folder / "other.npz")
    assert command("verify", onnx, folder / "other.npz").status == 1
    assert command("verify", onnx, folder / "other.npz", "--tol", 0.1).status == 0


def test_a_link_and_a_domain(command, network, folder):
    ReLUNetwork(network.weights, network.biases, link="sigmoid").save(folder / "served.onnx")
    served = ("health", folder / "served.onnx", "--domain", "-2,2")
    assert command(*served).status == 1
    assert command(*served, "--link", "sigmoid").status == 0


def test_one_output_is_looked_at(command):
    assert command("health", digits_model(), "--output", 3, "--precision", "float64").status == 0


def test_the_seed_is_in_the_record(command, npz):
    first, second = (json.loads(command("health", npz, "--json", "-", "--seed", seed).out) for seed in (0, 4))
    assert (first["seed"], second["seed"]) == (0, 4)
    assert first["health"]["noise"] != second["health"]["noise"]


def test_a_file_that_can_run_code_needs_trust(command, network, folder):
    (folder / "model.pkl").write_bytes(pickle.dumps(network))
    refused = command("health", folder / "model.pkl")
    assert refused.status == 2
    assert "pass --trust-code;" in refused.err
    assert "[unsafe-file]" in refused.err
    assert command("health", folder / "model.pkl", "--trust-code").status == 0


FAILING_AT_TIMES = """
calls = 0

def failing(x):
    global calls
    calls += 1
    if calls % 3 == 0:
        raise OSError("busy")
    return target(x)
"""


def test_retries_reach_a_target_that_fails_at_times(command, module):
    failing = f"{module(TARGET + FAILING_AT_TIMES)}:failing"
    assert command("health", failing, "--dim", 5).status == 1
    assert command("health", failing, "--dim", 5, "--retries", 2).status == 0
