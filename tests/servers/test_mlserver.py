"""A scikit-learn model behind the real MLServer (JSON tensors only) is recovered exactly."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import free_port, program, running, write_json

import reluctant as rl
from reluctant.testing import planted

pytestmark = pytest.mark.servers

NETWORK = planted((12, 8, 2), 3)
FIT = """
import sys, warnings, joblib, numpy as np
from sklearn.neural_network import MLPClassifier, MLPRegressor
arrays = np.load(sys.argv[1])
model = MLPRegressor(hidden_layer_sizes=(8,), max_iter=1)
warnings.simplefilter("ignore")
model.fit(np.random.default_rng(0).standard_normal((50, 12)), np.zeros((50, 2)))
model.coefs_ = [arrays["weight_0"].T, arrays["weight_1"].T]
model.intercepts_ = [arrays["bias_0"], arrays["bias_1"]]
joblib.dump(model, "model.joblib")
classes = MLPClassifier(hidden_layer_sizes=(8,), max_iter=1)
classes.fit(np.random.default_rng(0).standard_normal((60, 12)), np.arange(60) % 3)
np.savez("classifier.npz", *classes.coefs_, *classes.intercepts_)
joblib.dump(classes, "classifier.joblib")
"""
MODELS = {"mlp": "model.joblib", "classifier": "classifier.joblib", "described": "classifier.joblib"}
DESCRIBED = {
    "inputs": [{"name": "rows", "datatype": "FP64", "shape": [-1, 12]}],
    "outputs": [{"name": "predict_proba", "datatype": "FP64", "shape": [-1, 3]}],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mlserver")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[str]:
    NETWORK.save(folder / "network.npz")
    fit = [program("mlserver", "python"), "-I", "-c", FIT, "network.npz"]
    subprocess.run(fit, cwd=folder, check=True)
    port = free_port()
    settings = {"http_port": port, "grpc_port": free_port(), "metrics_port": free_port(), "parallel_workers": 0}
    write_json(folder / "settings.json", {"host": "127.0.0.1", "debug": False, **settings})
    for name, file in MODELS.items():
        (folder / name).mkdir()
        model = {"name": name, "implementation": "mlserver_sklearn.SKLearnModel"}
        model["parameters"] = {"uri": f"../{file}", "version": "v1"}
        model |= DESCRIBED if name == "described" else {}
        write_json(folder / name / "model-settings.json", model)
    command = [program("mlserver", "mlserver"), "start", "."]
    with running(command, f"http://127.0.0.1:{port}/v2/models/mlp", folder) as url:
        yield url


def test_answers_are_the_models(served: str) -> None:
    rows = np.random.default_rng(0).standard_normal((300, 12))
    with rl.open_oracle(served, dim=12) as oracle:
        np.testing.assert_allclose(oracle.query(rows), NETWORK(rows), rtol=0, atol=1e-13)
        assert (oracle.outputs, oracle.facts.dtype) == (2, np.float64)


def test_the_model_is_recovered_exactly(served: str, tmp_path: Path) -> None:
    with rl.open_oracle(served, dim=12, transcript=tmp_path) as oracle:
        result = rl.extract(oracle, rng=0)
    result.raise_for_status()
    assert rl.compare(result.network, NETWORK).parameter_error < 1e-9


def test_a_classifier_is_recovered_from_its_probabilities(served: str, folder: Path) -> None:
    with np.load(folder / "classifier.npz") as arrays:
        first, second, inner, outer = arrays.values()
    true = rl.ReLUNetwork([first.T, second.T], [inner, outer], link="softmax")
    url = served.replace("/mlp", "/classifier")
    with rl.open_oracle(url, dim=12, tensor="predict_proba", link="softmax") as oracle:
        result = rl.extract(oracle, rng=0)
    result.raise_for_status()
    rows = np.random.default_rng(1).uniform(-1, 1, (500, 12))
    got = rl.open_oracle(result.network.before_link("softmax")).query(rows)
    np.testing.assert_allclose(got, rl.open_oracle(true).query(rows), rtol=0, atol=1e-9)


def test_labels_are_known_as_such(served: str) -> None:
    with rl.open_oracle(served.replace("/mlp", "/classifier"), dim=12) as oracle:
        assert rl.check_health(oracle).answers == "labels"


def test_the_only_output_that_it_describes_is_asked_for(served: str) -> None:
    with rl.open_oracle(served.replace("/mlp", "/described")) as oracle:
        result = rl.extract(oracle, rng=0)
    result.raise_for_status()
    assert (result.network.widths, result.network.link) == ((12, 8, 3), "softmax")


def test_an_output_that_it_lacks_is_named(served: str) -> None:
    with pytest.raises(rl.ReluctantError, match="predict_proba"):
        rl.open_oracle(served.replace("/mlp", "/classifier"), dim=12, tensor="probabilities").query(np.zeros((1, 12)))


def test_another_name_lists_the_models(served: str) -> None:
    with pytest.raises(rl.ReluctantError, match=r"model 'nope', which .* does not have, expected one of .*'mlp'"):
        rl.open_oracle(served.replace("mlp", "nope"))


def test_rows_of_another_size_are_refused_with_its_words(served: str) -> None:
    with pytest.raises(rl.ReluctantError, match="12"):
        rl.open_oracle(served, dim=7, retries=0)
