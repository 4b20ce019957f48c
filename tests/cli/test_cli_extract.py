"""`reluctant extract`: the network on disk, the exit status, the record, what is kept when it fails."""

from __future__ import annotations

import json

import numpy as np
import pytest

import reluctant as rl
from reluctant.messages import Diagnosis
from reluctant.testing import planted
from reluctant.testing.families import narrow_ridge

TRUE = planted((20, 10, 1), 0)

MORTAL = """
import numpy as np

seen = 0

def dying(x):
    global seen
    seen += len(x)
    if seen > 150:
        raise ConnectionError("503 service unavailable")
    return np.maximum(x, 0).sum(axis=1)
"""


@pytest.fixture
def target(folder):
    TRUE.save(folder / "target.npz")
    return folder / "target.npz"


@pytest.mark.parametrize("name", ["copy.onnx", "copy.npz"])
def test_the_network_is_written(name, target, folder, command):
    ended = command("extract", target, "-o", folder / name)
    assert ended.status == 0
    assert str(rl.Outcome.RECOVERED) in ended.out
    assert rl.equivalent(rl.ReLUNetwork.load(folder / name), TRUE, tol=1e-8)


def test_the_copy_verifies(target, folder, command):
    assert command("extract", target, "-o", folder / "copy.onnx").status == 0
    assert command("verify", target, folder / "copy.onnx").status == 0


def test_the_record_is_one_json_object(target, command):
    ended = command("extract", target, "--json", "-", "--quiet")
    record = json.loads(ended.out)
    assert record["command"] == "extract"
    assert record["extraction"]["outcome"] == "recovered"
    assert record["extraction"]["network"]["widths"] == [20, 10, 1]
    assert record["queries"]["total"] == record["extraction"]["queries"]
    assert ended.err == ""


def test_a_deeper_target_is_refused_and_its_part_is_kept(folder, command):
    planted((10, 8, 6, 1), 1).save(folder / "deep.npz")
    ended = command("extract", folder / "deep.npz", "-o", folder / "copy.onnx", "--attempts", "1")
    assert ended.status == 1
    assert not (folder / "copy.onnx").exists()
    assert "attempt failed" in ended.err


def test_bounds_in_which_a_classifier_saturates_are_refused_with_narrower_ones_to_try(folder, command):
    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(8, 6)), rng.normal(size=8)), (rng.normal(size=(1, 8)), np.zeros(1))]
    rl.ReLUNetwork(*zip(*layers, strict=True), link="sigmoid").save(folder / "classifier.onnx")
    np.save(folder / "box.npy", np.array([np.full(6, -2.0), np.linspace(2.0, 12.0, 6)]))
    ended = command("extract", folder / "classifier.onnx", "--link", "sigmoid", "--domain", folder / "box.npy")
    assert ended.status == 1
    assert ended.out.startswith(str(Diagnosis("saturates-inside")).split(".")[0])
    assert "Give narrower bounds" in ended.out
    assert "far from the origin" not in ended.out
    assert "One hidden layer" not in ended.out  # what is not verified has no such line


def test_a_budget_that_ends_says_so(target, command):
    ended = command("extract", target, "--budget", "100")
    assert ended.status == 1
    assert ended.out.split(".")[0] == str(rl.Outcome.OUT_OF_BUDGET).split(".")[0]


@pytest.mark.parametrize(
    ("option", "name"), [("--out", "copy.txt"), ("--out", "nowhere/copy.onnx"), ("--json", "nowhere/record.json")]
)
def test_a_name_that_cannot_be_written_costs_no_query(option, name, folder, command):
    (folder / "counted.py").write_text("calls = 0\ndef f(x):\n    open('asked', 'w')\n    return x.sum(axis=1)\n")
    ended = command("extract", "counted:f", "--dim", "3", option, folder / name)
    assert ended.status == 2
    assert option in ended.err
    assert not (folder / "asked").exists()


def test_the_cause_of_a_failure_is_printed(folder, command):
    (folder / "mortal.py").write_text(MORTAL)
    ended = command("extract", "mortal:dying", "--dim", "20", "-o", folder / "copy.npz")
    assert ended.status == 1
    assert "503 service unavailable" in ended.out
    assert "--transcript" in ended.err


def test_a_part_that_was_found_is_written(folder, command):
    planted((64, 40, 1), 0).save(folder / "target.npz")
    ended = command("extract", folder / "target.npz", "--budget", "1500", "-o", folder / "copy.npz")
    assert ended.status == 1
    assert (folder / "copy.partial.npz").is_file()
    assert not (folder / "copy.npz").exists()


CLASSIFIER = """
import numpy as np

rng = np.random.default_rng(3)
w, b, a, c = rng.normal(size=(4, 6)), rng.normal(size=6), rng.normal(size=(6, 3)), rng.normal(size=3)

def values(x):
    return np.maximum(x @ w + b, 0) @ a + c

def probabilities(x):
    e = np.exp(values(x) - values(x).max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

def percentages(x):
    return 100 * probabilities(x)

def largest_two(x):
    e = np.exp((values(x) - values(x).max(axis=1, keepdims=True)) / 4)
    p = e / e.sum(axis=1, keepdims=True)
    return np.where(p > p.min(axis=1, keepdims=True), p, 0)

def boxed(x):
    if np.abs(x).max() > 3:
        raise ValueError("inputs must be in [-3, 3]")
    return values(x)
"""


@pytest.fixture
def classifier(module):
    return module(CLASSIFIER)


@pytest.mark.parametrize("name", ["copy.onnx", "copy.npz"])
def test_a_classifier_is_shown_and_written_with_all_its_classes(name, classifier, folder, command):
    target = f"{classifier}:probabilities"
    ended = command("extract", target, "--dim", 4, "--link", "softmax", "-o", folder / name)
    assert ended.status == 0
    assert "ReLUNetwork(4-6-3, softmax, " in ended.out
    assert rl.ReLUNetwork.load(folder / name).widths == (4, 6, 3)
    assert command("verify", target, folder / name, "--dim", 4).status == 0
    assert command("verify", target, folder / name, "--dim", 4, "--link", "softmax").status == 0


def test_the_largest_few_probabilities_are_verified_without_the_option(classifier, folder, command):
    target, written = f"{classifier}:largest_two", folder / "copy.npz"
    assert command("extract", target, "--dim", 4, "--link", "top-k", "-o", written).status == 0
    assert command("verify", target, written, "--dim", 4).status == 0


def test_percentages_are_divided_and_verified(classifier, folder, command):
    target, written = f"{classifier}:percentages", folder / "copy.npz"
    ended = command("extract", target, "--dim", 4, "--link", "softmax")
    assert ended.status == 1
    assert "--percent" in ended.out
    ended = command("extract", target, "--dim", 4, "--percent", "--link", "softmax", "-o", written)
    assert ended.status == 0
    assert rl.ReLUNetwork.load(written).widths == (4, 6, 3)
    assert command("verify", target, written, "--dim", 4, "--percent").status == 0
    undivided = command("verify", target, written, "--dim", 4)
    assert undivided.status != 0
    assert "--percent" in undivided.err


def test_values_are_compared_as_they_are_with_a_network_that_has_a_link(classifier, folder, command):
    from_values = rl.extract(rl.open_oracle(f"{classifier}:values", dim=4)).network
    rl.ReLUNetwork(from_values.weights, from_values.biases, from_values.skip, "softmax").save(folder / "linked.npz")
    assert command("verify", f"{classifier}:values", folder / "linked.npz", "--dim", 4).status == 0


@pytest.mark.parametrize(("target", "link"), [("values", "softmax"), ("probabilities", "sigmoid")])
def test_a_wrong_link_is_an_outcome(target, link, classifier, command):
    ended = command("extract", f"{classifier}:{target}", "--dim", 4, "--link", link, "--json", "-")
    assert ended.status == 1
    assert json.loads(ended.out)["extraction"]["outcome"] == "wrong-link"


def test_a_target_that_raises_outside_a_box_is_told_to_get_a_domain(classifier, command):
    ended = command("extract", f"{classifier}:boxed", "--dim", 4)
    assert ended.status == 1
    assert "--domain LOW,HIGH" in ended.out
    assert "domain=" not in ended.out  # what the target's error advises is typed in the same way
    assert command("extract", f"{classifier}:boxed", "--dim", 4, "--domain=-3,3").status == 0


def test_a_transcript_is_resumed_without_paying(target, folder, command):
    arguments = ("extract", target, "--transcript", folder / "answers", "--json", "-", "-q")
    first, second = (json.loads(command(*arguments).out) for _ in range(2))
    assert first["queries"]["total"] == second["queries"]["total"]
    assert sum(rows["sent"] for rows in second["queries"]["by stage"].values()) == 0


@pytest.mark.parametrize("verb", ["extract", "learn", "span"])
def test_a_command_ends_after_its_seconds(verb, target, command):
    ended = command(verb, target, "--seconds", "1e-6", "--transcript", "answers")
    assert ended.status == 1
    assert "1e-06" in ended.out
    assert f"reluctant {verb} {target} --transcript answers --seconds SECONDS" in ended.err


def test_a_network_that_is_not_verified_has_no_certificate(command, folder):
    narrow_ridge(40_000).save(folder / "ridge.npz")
    ended = command("extract", folder / "ridge.npz", "--seed", 40_000, "--attempts", 1)
    assert ended.status == 1
    assert "NOT" in ended.out
    assert "could be missing" not in ended.out


EXPLAINED = """
from reluctant.testing import planted

network = planted((12, 4, 1), 0)

def values(x):
    return network(x)

def slopes(x):
    return network.gradients(x)

def saliency(x):
    return network.gradients(x) * x[:, None]

def absolute(x):
    return abs(network.gradients(x))
"""


@pytest.mark.parametrize(
    "given", [["explained:slopes"], ["explained:saliency", "--explanation", "input-times-gradient"]]
)
def test_a_function_of_gradients_saves_queries(given, folder, command):
    (folder / "explained.py").write_text(EXPLAINED)
    ended = command("extract", "explained:values", "--dim", "12", "--json", "-", "-q", "--gradients", *given)
    record = json.loads(ended.out)
    assert ended.status == 0
    assert record["extraction"]["network"]["widths"] == [12, 4, 1]
    assert record["extraction"]["outcome"] == "recovered"
    assert "gradients" in record["queries"]["by stage"]


def test_what_is_no_gradient_is_named(folder, command):
    (folder / "explained.py").write_text(EXPLAINED)
    ended = command("extract", "explained:values", "--dim", "12", "--gradients", "explained:absolute")
    assert ended.status == 0
    assert "The gradients are absolute values" in ended.out
    assert "Values alone were used" in ended.out


def test_a_network_has_gradients_of_its_own(target, command):
    ended = command("span", target, "--gradients", "own", "--json", "-", "-q")
    assert ended.status == 0
    assert json.loads(ended.out)["queries"]["total"] < 80


@pytest.mark.parametrize("name", ["nothing", "explained:nothing"])
def test_gradients_that_are_nowhere_are_bad_input(name, target, folder, command):
    (folder / "explained.py").write_text(EXPLAINED)
    ended = command("extract", target, "--gradients", name)
    assert ended.status == 2
    assert "--gradients" in ended.err
