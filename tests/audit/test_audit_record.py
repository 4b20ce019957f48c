"""The record: its schema, the truth apart, pictures that are true, strings that stay strings."""

from __future__ import annotations

import json
from datetime import datetime

import numpy as np
import pytest
from audit_kit import QUICK, step

from reluctant import ReLUNetwork, open_oracle
from reluctant.audit import STEPS, audit
from reluctant.audit.facts import GradientFrom
from reluctant.audit.record import SCHEMA
from reluctant.audit.steps.probe_steps import first_layer
from reluctant.bundled import digits_model
from reluctant.errors import InvalidInput, InvalidRows
from reluctant.oracles import CallableOracle
from reluctant.testing import planted

NETWORK = planted((9, 6, 3))
HOSTILE = "<script>alert(1)</script> & \"'\u202e{{7*7}}"


def test_the_bundled_model(digits, valid):
    record = valid(digits.record)
    assert record.verdict.level == "exact"
    assert list(record.verdict.leaks) == ["extractable", "approximable", "span", "flippable"]
    assert record.recovered.queries < 1300
    assert record.recovered.cost == pytest.approx(record.recovered.queries * 2 / 1000)
    assert record.price.cost == pytest.approx(record.queries.total * 2 / 1000)
    assert record.recovered.answers_per_parameter == pytest.approx(record.recovered.queries * 10 / 2410)


def test_the_truth_is_apart_and_true(digits):
    truth = digits.record.truth
    assert (truth.file, truth.neurons_found, truth.neurons) == ("digits-64-32-10.onnx", 32, 32)
    assert truth.largest_error < 1e-9
    assert truth.largest_weight_error < 1e-9


def test_a_file_changes_nothing_that_is_found(tmp_path):
    """The truth is compared, never used: with another network's file everything else stays as it is."""
    planted((9, 6, 3), 1).save(tmp_path / "other.npz")
    with_file, without = (
        audit(open_oracle(NETWORK), steps=QUICK, file=file) for file in (tmp_path / "other.npz", None)
    )
    records = [found.to_dict() for found in (with_file, without)]
    assert records[0]["truth"]["neurons_found"] == 0
    assert records[1]["truth"] is None
    for record in records:
        for each in record["steps"]:
            each.pop("seconds")
        record.pop("truth"), record.pop("limits"), record.pop("began")
        record["steps"] = [each for each in record["steps"] if each["step"] != "truth"]
    assert records[0] == records[1]


def test_a_partial_network_is_compared_by_its_first_layer(tmp_path, valid):
    """Half of the neurons are found where the file has twice as many."""
    small = planted((6, 4, 1))
    extra = planted((6, 4, 1), 7)
    both = ReLUNetwork(
        [np.vstack([small.weights[0], extra.weights[0]]), np.hstack([small.weights[1], extra.weights[1]])],
        [np.concatenate([small.biases[0], extra.biases[0]]), small.biases[1]],
    )
    both.save(tmp_path / "both.npz")
    found = valid(audit(open_oracle(small), steps=QUICK, file=tmp_path / "both.npz").record)
    assert found.truth.all_layers is False
    assert (found.truth.neurons_found, found.truth.neurons) == (4, 8)
    assert found.truth.largest_weight_error is None


def test_the_flip_is_one(digits):
    flip = digits.record.flip
    network = ReLUNetwork.load(digits_model())
    before, after = (int(network(np.array([row])).argmax()) for row in (flip.start, flip.x))
    assert (before, after) == flip.classes
    assert before != after
    assert len(flip.tries) == 5
    assert flip.relative_size == min(each.relative_size for each in flip.tries if each.ok)


def test_the_line_is_the_targets(digits):
    """Between creases the drawn function is straight, and it bends at each of them."""
    line = digits.record.pictures.line
    positions, answers = np.array(line.positions), np.array(line.answers)
    bends = np.abs(np.diff(answers, 2, axis=0)).max(axis=1)
    creases = np.array(line.creases)
    middle = positions[1:-1]
    near = np.abs(middle[:, None] - creases[None]).min(axis=1) <= positions[1] - positions[0]
    assert bends[~near].max() < 1e-2 * bends[near].max()  # six digits are kept
    assert len(creases) > 0


def test_the_first_layer_is_that_of_the_model(digits):
    layer = digits.record.pictures.first_layer
    assert (layer.height, layer.width, len(layer.images), layer.of) == (8, 8, 32, 32)
    normals, _ = ReLUNetwork.load(digits_model()).hyperplanes()
    distance = np.abs(np.array(layer.images)[:, None] - normals[None]).max(axis=2)
    assert distance.min(axis=1).max() < 1e-2


def test_errors_by_scale(digits):
    errors = digits.record.pictures.errors
    assert [each.scale for each in errors] == [0.1, 1.0, 10.0]
    for each in errors:
        assert sum(each.counts) == each.points == 100
        assert len(each.edges) == len(each.counts) + 1
        assert each.largest < 1e-8


def test_the_record_is_json_and_says_what_it_is(digits):
    record = json.loads(digits.to_json())
    assert record == digits.to_dict()
    assert record["schema"] == SCHEMA
    assert [each["step"] for each in record["steps"]] == list(STEPS)
    assert record["steps"][-1] == {
        "step": "defenses", "state": "skipped", "diagnosis": {"slug": "left-out", "fields": {}, "remedies": []},
        "queries": 0, "seconds": 0.0, "allowed": None,
    }  # fmt: skip
    assert len(digits.to_json()) < 400_000


def test_the_names_readers_know(digits):
    record = digits.record
    ids = [name.id for name in record.names]
    assert ids[:3] == ["AML.T0040", "AML.T0024.002", "AML.T0043.001"]
    assert ids[3:] == ["AML.M0002", "AML.M0004", "NIST AI 100-2", "ML05:2023"]


def test_hostile_names_stay_text(valid):
    oracle = open_oracle(CallableOracle(NETWORK, 9, name=HOSTILE))
    record = valid(
        audit(oracle, steps=["health"], classes=[HOSTILE, "b", "c"], repeat=f"reluctant audit {HOSTILE}").record
    )
    assert record.target.name == HOSTILE
    assert record.target.classes[0] == HOSTILE
    assert json.loads(record.to_json())["repeat"]["command"].endswith(HOSTILE)


def test_the_same_seed_gives_the_same_record():
    records = [audit(open_oracle(NETWORK), steps=QUICK, rng=5).to_dict() for _ in range(2)]
    for record in records:
        for each in record["steps"]:
            each.pop("seconds")
        assert datetime.fromisoformat(record.pop("began")).tzinfo is not None
    assert records[0] == records[1]


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"inputs": np.zeros((3, 4))}, InvalidRows),
        ({"inputs": np.full((3, 9), np.nan)}, InvalidRows),
        ({"inputs": "text"}, InvalidRows),
        ({"input_shape": (2, 3)}, InvalidInput),
        ({"steps": ["health", "magic"]}, InvalidInput),
        ({"link": "magic"}, InvalidInput),
        ({"classes": ["a", "b"]}, InvalidInput),
        ({"output": 7}, InvalidInput),
    ],
)
def test_bad_arguments_are_found_before_anything_is_asked(settings, error):
    oracle = open_oracle(NETWORK)
    with pytest.raises(error):
        audit(oracle, **settings)
    assert oracle.queries == 0


def test_inputs_that_are_given_are_used(record):
    inputs = np.random.default_rng(1).uniform(0, 1, (20, 9))
    found = record(NETWORK, inputs=inputs, steps=["health", "flip"])
    starts = np.array(found.flip.start)
    assert np.abs(inputs[:5] - starts).max(axis=1).min() < 1e-5
    assert step(found, "flip").state == "done"


def test_the_strongest_neurons_are_shown_where_some_are_dead():
    """A neuron without weights has no image, and its strength is nobody else's."""
    first = np.vstack([np.zeros(4), np.eye(4)])
    network = ReLUNetwork([first, np.array([[9.0, 1.0, 2.0, 3.0, 4.0]])], [np.ones(5), np.zeros(1)])
    images = first_layer(network, (2, 2)).images
    assert [int(np.argmax(image)) for image in images] == [3, 2, 1, 0]


def test_a_flip_tells_the_middle_size_and_what_came_first(record):
    found = record(planted((9, 6, 3)), steps=["health", "extraction", "flip"])
    flip = found.flip
    sizes = sorted(one.relative_size for one in flip.tries if one.ok)
    assert len(sizes) == 5
    assert (flip.relative_size, flip.median_relative_size) == (sizes[0], sizes[2])
    assert (flip.by, flip.queries_before) == (GradientFrom.RECOVERED, found.recovered.queries)


def test_a_flip_by_questions_alone_says_so(record):
    flip = record(planted((9, 6, 3)), steps=["health", "flip"]).flip
    assert (flip.by, flip.queries_before) == (GradientFrom.QUERIES, 0)


def test_wrong_inputs_are_told_apart():
    with open_oracle(NETWORK) as oracle:
        with pytest.raises(InvalidRows, match=r"\(n, 9\)"):
            audit(oracle, inputs=np.ones((3, 4)))
        rows = np.ones((3, 9))
        rows[1, 2] = np.nan
        with pytest.raises(InvalidRows, match="1 of 3"):
            audit(oracle, inputs=rows)


def test_an_audit_prints_as_one_line(digits):
    assert repr(digits) == f"Audit(exact; leaks: extractable, approximable, span, flippable; queries={digits.queries})"


def test_every_diagnosis_prints(digits):
    record = digits.record
    found = [*record.limits, *(each.diagnosis for each in record.steps if each.diagnosis)]
    assert len(found) > 10
    assert all(str(each).endswith(".") for each in found)
