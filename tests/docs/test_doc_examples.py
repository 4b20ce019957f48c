"""Python examples of the pages, run as they stand, page by page, against real targets."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_once import undrawn
from examples import PAGES, ROOT, python_examples, same_output, shown_outputs
from sweeps import sweep

import reluctant as rl
from reluctant.bundled import digits_model
from reluctant.testing import planted
from reluctant.testing.server import ModelServer

SHOWN = [page for page in PAGES if python_examples(page)]
SCHEDULER = "scheduler:8786"
SMALL = (
    "audit.md",
    "student.md",
)  # pages for which any model will do, and any student: a whole audit then takes a second
LONG = ("audit.md", "experiments.md", "precision.md", "scale.md")  # whole audits and experiments, few digits, width
QUICK = [page for page in SHOWN if page.name not in LONG]
SERVED = ("http://host:8080/v2/models/mlp", "https://host/v2/models/mlp", "http://localhost:8080/v2/models/mlp")
PLAIN = "http://localhost:8000/predict"  # JSON in, JSON out


@pytest.fixture(scope="module")
def served() -> Any:
    with ModelServer(planted((8, 6, 1), 0), dim=8) as server:
        yield server


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the examples speak of without making it: files, a function, a module, a trained classifier, images."""
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MODEL_TOKEN", "secret")
    (tmp_path / "model.onnx").write_bytes(digits_model().read_bytes())
    (tmp_path / "audit.json").write_bytes((ROOT / "tests" / "report" / "example-audit.json").read_bytes())
    np.save(tmp_path / "rows.npy", np.random.default_rng(2).standard_normal((50, 8)))
    network, f = planted((8, 6, 1), 1), planted((784, 4, 1), 2)
    oracle = rl.open_oracle(network)
    return {
        "rl": rl, "np": np, "f": lambda x: f(x), "network": network, "oracle": oracle,
        "module": torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 3), torch.nn.ReLU()),
        "mlp": _classifier(), "x": np.ones(8), "span": _span(),
        "X": np.random.default_rng(1).standard_normal((20, 784)),
        "images": np.random.default_rng(0).uniform(0, 1, (20, 64)), "points": np.ones((3, 64)),
    }  # fmt: skip


@cache
def _span() -> rl.Span:
    return rl.recover_span(planted((8, 6, 1), 1), rng=0)


@cache
def _classifier() -> Any:
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 8))
    classes = (rows[:, 0] > 0).astype(int) + (rows[:, 1] > 1)
    return MLPClassifier((5,), solver="lbfgs", max_iter=2000, random_state=0).fit(rows, classes)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a list of ways to open closes nothing
@pytest.mark.parametrize(
    "page",
    sweep(SHOWN, fast=QUICK),
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_examples_run(
    page: Path, names: dict[str, Any], served: ModelServer, request: pytest.FixtureRequest, capsys: Any
) -> None:
    if page.name in SMALL:
        request.getfixturevalue("short_training")
        planted((8, 6, 1), 1).save("model.onnx")
    for number, (example, shown) in enumerate(zip(python_examples(page), shown_outputs(page), strict=True)):
        for address in SERVED:
            example = example.replace(address, served.url)
        example = example.replace(PLAIN, served.plain_url)
        if SCHEDULER in example:
            example = example.replace(SCHEDULER, request.getfixturevalue("address").removeprefix("dask://"))
        with undrawn() if page.name in SMALL else nullcontext():
            exec(compile(example, f"{page.name}, example {number + 1}", "exec"), names)
        printed = capsys.readouterr().out
        assert shown is None or same_output(shown, printed), f"{page.name} shows\n{shown}and prints\n{printed}"


def test_outputs_are_compared_by_words_and_sizes() -> None:
    shown = "784-32-1 in 1183 queries, error 4e-13\n"
    assert same_output(shown, "784-32-1 in 1190 queries, error 9e-14\n")
    assert not same_output(shown, "784-32-1 in 1255 queries, error 4e-13\n")
    assert not same_output(shown, "784-32-1 in 1183 rows, error 4e-13\n")
    assert not same_output(shown, "784-32-1 in 1183 queries, error 4e-10\n")
