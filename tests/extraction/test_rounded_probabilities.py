"""One hidden layer from rounded probabilities: recovered to what the decimals allow, refused where it is more."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.extraction import boxes
from reluctant.oracles import NetworkOracle
from reluctant.testing import planted


def rounded(network: rl.ReLUNetwork, link: str, decimals: int):
    """The network behind a link, rounded, and not."""
    exact = NetworkOracle(network.before_link(link)).answer
    return (lambda x: np.round(exact(x), decimals)), exact


def largest_error(found: rl.Result, exact, dim: int, link: str = "identity") -> float:
    rows = np.random.default_rng(9).standard_normal((500, dim))
    return float(np.abs(NetworkOracle(found.as_written(link)).answer(rows) - exact(rows)).max())


@pytest.mark.parametrize(("link", "outputs", "decimals"), [("softmax", 3, 4), ("softmax", 2, 5), ("sigmoid", 1, 3)])
def test_a_layer_is_recovered_to_its_decimals(link: str, outputs: int, decimals: int, seed: int) -> None:
    network = planted((4, 5, outputs), seed)
    target, exact = rounded(network, link, decimals)
    found = rl.extract(target, dim=4, link=link, rng=seed)
    found.raise_for_status()
    assert found.network.widths[1] <= 8
    assert found.evidence["certificate"] is None  # the fit says nothing of the error of a weight
    assert largest_error(found, exact, 4, link) < 5 * 10.0**-decimals
    assert found.queries < 4000


def test_the_link_is_found(seed: int) -> None:
    target, exact = rounded(planted((4, 5, 3), seed), "softmax", 4)
    found = rl.extract(target, dim=4, rng=seed)
    found.raise_for_status()
    assert found.evidence["found link"] == "softmax"
    assert largest_error(found, exact, 4) < 5e-4


@pytest.mark.parametrize("decimals", [1, 2])
def test_fewer_decimals_are_refused_at_once(decimals: int) -> None:
    found = rl.extract(rounded(planted((4, 5, 3), 0), "softmax", decimals)[0], dim=4, link="softmax")
    assert found.outcome is rl.Outcome.LOW_PRECISION
    assert found.queries < 500


def test_many_inputs_are_refused_without_a_fit() -> None:
    found = rl.extract(rounded(planted((64, 8, 9), 0), "softmax", 4)[0], dim=64, link="softmax")
    assert found.outcome is rl.Outcome.LOW_PRECISION
    assert found.queries < 100
    assert "too many parameters" in found.evidence["failures"][0]


def test_another_function_is_not_called_recovered() -> None:
    def waves(x):
        values = np.column_stack([np.sin(3 * x).sum(axis=1), np.cos(3 * x).sum(axis=1), 0 * x[:, 0]])
        powers = np.exp(values)
        return np.round(powers / powers.sum(axis=1, keepdims=True), 4)

    found = rl.extract(waves, dim=1, link="softmax")
    assert found.outcome is rl.Outcome.LOW_PRECISION
    assert [text.partition(":")[0] for text in found.evidence["failures"]] == ["fit", "fit"]


@pytest.mark.slow
@pytest.mark.parametrize("sample", range(40))
def test_no_network_is_wrong(sample: int) -> None:
    rng = np.random.default_rng(sample)
    dim, hidden, outputs = int(rng.integers(2, 9)), int(rng.integers(1, 14)), int(rng.integers(2, 5))
    deep = (int(rng.integers(2, 6)),) if rng.random() < 0.3 else ()
    target, exact = rounded(planted((dim, hidden, *deep, outputs), sample), "softmax", 4)
    found = rl.extract(target, dim=dim, rng=sample, seconds=40)
    print(dim, hidden, deep, outputs, found.outcome.slug, found.network and found.network.widths, found.queries)
    assert not found.ok or largest_error(found, exact, dim) < 20e-4


def in_single(network: rl.ReLUNetwork):
    """Probabilities of two classes in float32, [1 - p, p]: next to 0 and 1 log-odds have far fewer digits."""

    def target(x: np.ndarray) -> np.ndarray:
        p = (1 / (1 + np.exp(-np.clip(network(x), -60, 60)))).astype(np.float32)
        return np.hstack([np.float32(1) - p, p])

    return target


def test_probabilities_in_float32_are_fitted_where_no_line_of_them_is_read(monkeypatch) -> None:
    monkeypatch.setattr(boxes, "_go_inside", lambda *_: (rl.Outcome.LOW_PRECISION, None))
    target = in_single(planted((4, 5, 1), 0))
    found = rl.extract(target, dim=4, rng=0)
    found.raise_for_status()
    assert largest_error(found, target, 4) < 1e-5
    assert found.evidence["verification"].ok


@pytest.mark.slow
def test_a_trained_classifier_in_float32_is_recovered() -> None:
    from sklearn.datasets import load_breast_cancer
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    rows, labels = load_breast_cancer(return_X_y=True)
    rows = StandardScaler().fit_transform(rows)
    with pytest.warns(ConvergenceWarning):
        trained = MLPClassifier((20,), max_iter=200, random_state=0).fit(rows, labels)
    (w, a), (b, c) = trained.coefs_, trained.intercepts_
    target = in_single(rl.ReLUNetwork([w.T, a.T], [b, c]))
    for seed in range(3):
        found = rl.extract(target, dim=30, rng=seed)
        found.raise_for_status()
        assert largest_error(found, target, 30) < 1e-5
