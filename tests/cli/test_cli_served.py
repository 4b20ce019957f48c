"""Served models and defenses on the command line."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time

import numpy as np
import pytest

import reluctant as rl
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted
from reluctant.testing.server import Fault, ModelServer, at

NETWORK = planted((6, 5, 2), 1)
SECRET = "s3cr3t-t0ken-0123456789"


def test_a_served_model_is_extracted(command, folder, monkeypatch):
    monkeypatch.setenv("MODEL_TOKEN", SECRET)
    with ModelServer(NETWORK, 6, outputs=2, token=f"Bearer {SECRET}") as server:
        options = [
            "--connections",
            2,
            "--rate",
            100_000,
            "--batch",
            64,
            "--auth-env",
            "MODEL_TOKEN",
            "--encoding",
            "json",
        ]
        ended = command(
            "extract", server.url, "-o", "copy.npz", "--transcript", "answers", "--json", "r.json", *options
        )
    assert ended.status == 0
    assert rl.compare(ReLUNetwork.load(folder / "copy.npz"), NETWORK).parameter_error < 1e-9
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in text for text in [*files, ended.out.encode(), ended.err.encode()])
    assert json.loads((folder / "r.json").read_text())["target"]["name"].startswith("model at localhost")


def test_a_plain_endpoint_is_asked(command):
    with ModelServer(NETWORK, 6) as server:
        how = ["--dim", 6, "--request", '{"instances": "$rows"}', "--reply", "predictions"]
        ended = command("health", server.plain_url, *how)
    assert ended.status == 0
    assert "piecewise linear" in ended.out


def test_an_error_of_a_server_names_flags(command):
    with ModelServer(NETWORK, 6) as server:
        how = ["--dim", 6, "--request", '{"instances": "$rows"}', "--reply", "outputs"]
        ended = command("health", server.plain_url, *how)
    assert ended.status == 1
    assert ended.err.endswith("Give another --reply. [invalid-answer]\n")


COMMANDS = {
    "health": [],
    "extract": ["-o", "copy.npz"],
    "learn": [],
    "flip": ["--input", "x.npy"],
    "span": [],
    "verify": ["true.npz"],
    "audit": ["--budget", 3000, "--seconds", 3, "--skip", "defenses"],
}
KEY, BODY_KEY = "abcSECRETxyz", "bodySECRETxyz"


def no_key_in(folder, ended) -> None:
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    for key in (KEY, BODY_KEY):
        assert not any(key.encode() in text for text in [*files, ended.out.encode(), ended.err.encode()])


@pytest.mark.parametrize("name", COMMANDS)
def test_no_key_in_an_address_or_a_request_is_written(name, command, folder):
    NETWORK.save(folder / "true.npz")
    np.save(folder / "x.npy", np.full(6, 0.3))
    request = json.dumps({"instances": "$rows", "key": BODY_KEY})
    how = ["--dim", 6, "--request", request, "--reply", "predictions", "--transcript", "kept", "--json", "r.json"]
    with ModelServer(NETWORK, 6) as server:
        ended = command(name, f"{server.plain_url}?token={KEY}", *how, *COMMANDS[name])
        assert server.rows > 0
    assert ended.status in (0, 1), ended.err
    record = json.loads((folder / "r.json").read_text())
    assert record["target"]["name"] == server.plain_url.removeprefix("http://")
    no_key_in(folder, ended)


def test_the_command_of_an_audit_says_where_something_is_to_be_filled_in(command, folder):
    request = json.dumps({"instances": "$rows", "key": BODY_KEY})
    how = ["--dim", 6, "--request", request, "--reply", "predictions", "--json", "r.json"]
    ended = command("audit", f"http://localhost:9/predict?token={KEY}", *how)
    assert ended.status == 1
    record = json.loads((folder / "r.json").read_text())
    assert record["target"]["name"] == "http://localhost:9/predict"
    assert "'http://localhost:9/predict?[hidden]'" in record["repeat"]["command"]
    assert '"key": "[hidden]"' in record["repeat"]["command"]
    assert '"instances": "$rows"' in record["repeat"]["command"]
    assert "[hidden]" in (folder / "report.html").read_text()
    no_key_in(folder, ended)


@pytest.mark.parametrize("quiet", [[], ["-q"]], ids=["told", "quiet"])
@pytest.mark.parametrize("name", ["health", "extract", "span", "learn"])
def test_a_model_that_breaks_down_out_of_range_has_its_range_named(name, quiet, command, short_pauses):
    with ModelServer(NETWORK, 6, outputs=2, accepts=(-9, 9), out_of_range=Fault.DROP) as server:
        ended = command(name, server.url, *quiet)
        asked_inside = server.rows
    assert ended.status == (0 if name == "health" else 1)
    assert asked_inside > 0
    (named,) = re.findall(r"--domain (-\S+?),(\S+?)\.(?:\s|$)", ended.out)
    assert all(0.5 < abs(float(bound)) < 9 for bound in named)
    assert ("Try 2 of 9 failed, next in " in ended.err) == (not quiet)
    assert ended.err == "" or not quiet


def test_an_audit_of_such_a_model_goes_on_inside(command, folder, short_pauses):
    with ModelServer(NETWORK, 6, outputs=2, accepts=(-9, 9), out_of_range=Fault.ERROR) as server:
        ended = command("audit", server.url, "--budget", 5000, "--skip", "defenses", "--json", "r.json")
    assert ended.status == 0
    reach = json.loads((folder / "r.json").read_text())["target"]["reach"]
    assert (reach["low"], reach["high"]) == (-8, 8)
    assert "Try 2 of 9 failed, next in " in ended.err


def test_a_wrong_name_is_status_2(command):
    with ModelServer(NETWORK, 6, name="digits") as server:
        ended = command("health", server.url.replace("digits", "letters"))
    assert ended.status == 2
    assert "expected one of 'digits'" in ended.err


def test_an_option_of_served_models_is_refused_for_a_file(command, folder):
    NETWORK.save(folder / "model.npz")
    ended = command("health", "model.npz", "--rate", 5)
    assert ended.status == 2
    assert "rate: got a value for a local target" in ended.err


def test_a_defense_stands_before_the_target(command, folder):
    NETWORK.save(folder / "model.npz")
    ended = command("health", "model.npz", "--defense", "clip=-9:9", "--defense", "decimals=3")
    assert "rounded to 3 decimals" in ended.out
    assert command("health", "model.npz", "--defense", "armour").status == 2


@pytest.mark.parametrize("link", ["softmax", "log-softmax"])
def test_the_network_is_written_with_its_link(link, command, folder):
    target = ReLUNetwork(NETWORK.weights, NETWORK.biases, link=link)
    target.save(folder / "model.npz")
    ended = command("extract", "model.npz", "--link", link, "-o", "copy.onnx")
    assert ended.status == 0, ended.err
    rows = np.random.default_rng(0).uniform(-1, 1, (50, 6))
    with rl.open_oracle(target) as one, rl.open_oracle(folder / "copy.onnx") as other:
        np.testing.assert_allclose(other.query(rows), one.query(rows), atol=1e-9)
    assert command("verify", "model.npz", "copy.onnx", "--link", link, "--domain=-1,1").status == 0


def test_ctrl_c_keeps_what_a_served_model_has_answered(main, folder, patience):
    slow = at(dict.fromkeys(range(6, 1000), Fault.SLOW))
    with ModelServer(NETWORK, 6, outputs=2, faults=slow) as server:
        server.slowness = 60.0
        arguments = ["extract", server.url, "--transcript", "kept", "--batch", "16"]
        process = subprocess.Popen([*main, *arguments], cwd=folder, stderr=subprocess.PIPE, text=True)
        try:
            end = time.monotonic() + patience
            while server.questions < 7 and time.monotonic() < end:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=patience)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "Those that were answered are kept in kept" in err
    assert "Traceback" not in err


def test_what_to_send_to_another_service_is_quoted_for_the_shell(command):
    ended = command("extract", "http://127.0.0.1:9/predict")
    assert ended.status == 2
    assert """--request '{"instances": "$rows"}', --reply predictions""" in ended.err
