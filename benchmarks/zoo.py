"""Real models as people have them: trained on data that ships with scikit-learn, opened as they are, copied, compared.

    python -m benchmarks zoo                             every model, at most 120 CPU seconds each
    ZOO_ROWS=cancer,forest python -m benchmarks zoo      those whose names contain one of these words
    ZOO_SEED=1 python -m benchmarks zoo                  another seed of the extraction
    ZOO_SECONDS=60 python -m benchmarks zoo              another limit of processor time
    ZOO_PART=2/5 python -m benchmarks zoo                the second of five parts, for several processors

No link, scale or method is given: a model gets rows of its data (`inputs=`) where its columns are raw. `use` is the
largest difference between copy and model at held-out rows, in deviations of the model's answers; `3×` the same at
rows three times as far from their mean. Of labels both are shares of other labels. `wrong` marks a statement that is
not true: a copy called recovered whose answers differ by more than their digits, or a model called what it is not.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_friedman1,
)
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import reluctant as rl
from benchmarks.onnx_models import save_forest, save_pipeline
from reluctant.numerics import FloatArray
from reluctant.oracles import NetworkOracle
from reluctant.oracles.ledger import processor_time
from reluctant.testing.server import ModelServer

SECONDS = float(os.environ.get("ZOO_SECONDS", "120"))
SEED = int(os.environ.get("ZOO_SEED", "0"))
BUDGET = 300_000
FARTHER = 3.0

RECOVERED, TREES, CURVED, REFUSED = "recovered", "answers-of-trees", "not-piecewise-linear", "refused"
EXACT, SINGLE = 1e-6, 1e-2  # what the copy may differ by in float64 and in float32, in deviations


@dataclass(frozen=True)
class Table:
    """Rows for training and held-out ones, with what is to be predicted."""

    rows: FloatArray
    answers: FloatArray
    held_out: FloatArray


@dataclass(frozen=True)
class Subject:
    """One model: what is opened, how its answers are computed here, and what would be true of it."""

    target: Any
    truth: Callable[[FloatArray], Any]
    table: Table
    raw: bool = False  # its rows are given as inputs
    expected: str = RECOVERED
    allowed: float = EXACT
    labels: bool = False
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """What was said of a model, and how far it is from the truth."""

    verdict: str
    network: str
    use: float
    farther: float
    rows: int
    seconds: float
    wrong: bool

    def cells(self) -> str:
        """Cells of a row of the table."""
        numbers = [_cell(self.use), _cell(self.farther), f"{self.rows:,}", f"{self.seconds:.1f}"]
        return " | ".join([self.verdict, self.network, *numbers, "**wrong**" if self.wrong else ""])


Make = Callable[[ExitStack], Subject]
ZOO: dict[str, Make] = {}


def model(name: str) -> Callable[[Make], Make]:
    """Enter a model under this name."""

    def entered(make: Make) -> Make:
        ZOO[name] = make
        return make

    return entered


def main() -> None:
    words = [word for word in os.environ.get("ZOO_ROWS", "").split(",") if word]
    warnings.simplefilter("ignore")
    print("| model | verdict | copy | use | 3× | queries | CPU s | |\n|---|---|---|---|---|---|---|---|")
    found: list[Finding] = []
    part, parts = map(int, os.environ.get("ZOO_PART", "1/1").split("/"))
    for k, (name, make) in enumerate(ZOO.items(), 1):
        if k % parts == part % parts and (not words or any(word in name for word in words)):
            with ExitStack() as open_things:
                found.append(measured(make(open_things)))
            print(f"| {name} | {found[-1].cells()} |", flush=True)
    wrong, recovered = sum(one.wrong for one in found), sum(one.verdict == RECOVERED for one in found)
    slowest = max(one.seconds for one in found)
    print(f"\n{len(found)} models, {wrong} wrong statements, {recovered} recovered, slowest {slowest:.0f} CPU s")


def measured(subject: Subject) -> Finding:
    """Extract it as it is, and compare the copy with the model."""
    options = subject.options | ({"inputs": subject.table.rows} if subject.raw else {})
    before = processor_time()
    result = rl.extract(subject.target, rng=SEED, budget=BUDGET, seconds=SECONDS, **options)
    seconds = processor_time() - before
    use = farther = float("nan")
    if result.network is not None and result.ok:
        rows = subject.table.held_out
        use = _difference(result, subject, rows)
        farther = _difference(result, subject, rows.mean(axis=0) + FARTHER * (rows - rows.mean(axis=0)))
    shape = "" if result.network is None else "-".join(map(str, result.network.widths))
    verdict = result.outcome.slug if result.ok else result.diagnosis.slug
    wrong = result.ok and not max(use, farther) <= subject.allowed
    wrong = wrong or (subject.expected in (TREES,) and verdict != subject.expected)
    wrong = wrong or (result.ok and subject.expected not in (RECOVERED, "labels"))
    return Finding(
        verdict, shape if result.ok else f"({shape})" if shape else "", use, farther, result.queries, seconds, wrong
    )


def _difference(result: rl.Result, subject: Subject, rows: FloatArray) -> float:
    """Largest difference of answers, in deviations; share of other labels."""
    assert result.network is not None
    given = np.asarray(subject.truth(rows), dtype=np.float64).reshape(len(rows), -1)
    if subject.labels:
        values = result.network(rows)
        said = values.argmax(axis=1) if values.shape[1] > 1 else (values[:, 0] > 0).astype(int)
        return float(np.mean(said != given[:, 0]))
    copied = NetworkOracle(result.as_written("identity")).answer(rows)
    if copied.shape != given.shape:
        return float("inf")
    scale = np.asarray(subject.truth(subject.table.held_out)).std(axis=0).max()
    return float(np.abs(copied - given).max() / scale)


def _cell(number: float) -> str:
    return "" if np.isnan(number) else f"{number:.1e}"


# ---- data


@cache
def table(name: str) -> Table:
    """A table by its name."""
    rows, answers = TABLES[name]()
    train, held_out, known, _ = train_test_split(rows, answers, test_size=0.3, random_state=0)
    return Table(train, known, held_out)


def _prices(seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """A table like that of houses: a year, an area, a price index, shares, and a column that does nothing."""
    rows, answers = make_friedman1(800, n_features=8, noise=0.2, random_state=seed)
    scale = np.array([40.0, 250.0, 3e5, 0.08, 1.0, 1e-3, 12.0, 1e4])
    return rows * scale + np.array([1980.0, 30.0, 1e5, 0.0, 5.0, 0.0, 0.0, 2e4]), 1e4 * answers


def _clients(seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Two classes by columns of an age, an income, a share and others."""
    rows, answers = make_classification(900, 12, n_informative=6, n_redundant=2, random_state=seed)
    scale = np.array([12.0, 2e4, 0.1, 1.0, 300.0, 5.0, 0.01, 1e5, 2.0, 1.0, 40.0, 1e-2])
    return rows * scale + np.array([45.0, 5e4, 0.5, 0.0, 700.0, 20.0, 0.03, 2e5, 3.0, 0.0, 1990.0, 0.0]), answers


TABLES: dict[str, Callable[[], tuple[FloatArray, FloatArray]]] = {
    "cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "iris": lambda: load_iris(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "diabetes": lambda: load_diabetes(return_X_y=True, scaled=False),
    "prices": _prices,
    "clients": _clients,
}


def scaled(name: str) -> Table:
    """The same with columns of mean 0 and deviation 1."""
    raw = table(name)
    by = StandardScaler().fit(raw.rows)
    return Table(by.transform(raw.rows), raw.answers, by.transform(raw.held_out))


# ---- models


def classifier(data: Table, hidden: tuple[int, ...], *, single: bool = False, **settings: Any) -> MLPClassifier:
    rows = data.rows.astype(np.float32) if single else data.rows
    return MLPClassifier(hidden_layer_sizes=hidden, max_iter=200, random_state=0, **settings).fit(rows, data.answers)


def regressor(data: Table, hidden: tuple[int, ...]) -> MLPRegressor:
    targets = (data.answers - data.answers.mean()) / data.answers.std()
    return MLPRegressor(hidden_layer_sizes=hidden, max_iter=200, random_state=0).fit(data.rows, targets)


def pipeline(data: Table, last: Any) -> Any:
    return make_pipeline(StandardScaler(), last).fit(data.rows, data.answers)


def network_of(mlp: Any) -> rl.ReLUNetwork:
    """The layers of an MLP without its link: its logits."""
    return rl.ReLUNetwork([w.T for w in mlp.coefs_], list(mlp.intercepts_))


def torch_module(mlp: Any, *, double: bool, link: str = "") -> Any:
    """The same layers as a torch module, with a link after them."""
    import torch

    layers: list[Any] = []
    for weights, bias in zip(mlp.coefs_, mlp.intercepts_, strict=True):
        linear = torch.nn.Linear(*weights.shape)
        linear.weight.data, linear.bias.data = torch.tensor(weights.T), torch.tensor(bias)
        layers += [linear, torch.nn.ReLU()]
    ends = {"": [], "softmax": [torch.nn.Softmax(dim=1)], "sigmoid": [torch.nn.Sigmoid()]}[link]
    module = torch.nn.Sequential(*layers[:-1], *ends)
    return module.double() if double else module.float()


def asked(module: Any, double: bool) -> Callable[[FloatArray], Any]:
    import torch

    dtype = torch.float64 if double else torch.float32
    return lambda x: module(torch.tensor(x, dtype=dtype)).detach().double().numpy()


def folder(open_things: ExitStack) -> Path:
    return Path(open_things.enter_context(TemporaryDirectory()))


def enter_classifiers() -> None:
    """MLPs of scikit-learn on scaled tables, in probabilities, by depth."""
    shapes = {
        "cancer": [(16,), (100,), (16, 8), (12, 8, 6)],
        "wine": [(10,), (12, 6), (10, 8, 6)], "iris": [(8,), (100,), (8, 8), (6, 6, 6)],
        "digits": [(32,), (32, 16)], "clients": [(24,), (12, 6)],
    }  # fmt: skip
    for name, hiddens in shapes.items():
        for hidden in hiddens:

            @model(f"{name} {_shape(hidden)} MLPClassifier, probabilities")
            def _(_: ExitStack, name: str = name, hidden: tuple[int, ...] = hidden) -> Subject:
                data = scaled(name)
                mlp = classifier(data, hidden)
                return Subject(mlp, mlp.predict_proba, data)


def enter_regressors() -> None:
    for name, hiddens in {"diabetes": [(20,), (20, 10), (10, 6, 4)], "prices": [(32,), (16, 8), (64, 32)]}.items():
        for hidden in hiddens:

            @model(f"{name} {_shape(hidden)} MLPRegressor")
            def _(_: ExitStack, name: str = name, hidden: tuple[int, ...] = hidden) -> Subject:
                data = scaled(name)
                mlp = regressor(data, hidden)
                return Subject(mlp, mlp.predict, data)


def enter_pipelines() -> None:
    """A scaler inside, raw columns outside; also as ONNX files."""
    for name, hidden in {"cancer": (20,), "wine": (10,), "clients": (24,), "cancer ": (12, 6)}.items():

        @model(f"{name.strip()} {_shape(hidden)} pipeline on raw columns, probabilities")
        def _(_: ExitStack, name: str = name.strip(), hidden: tuple[int, ...] = hidden) -> Subject:
            data = table(name)
            whole = pipeline(data, MLPClassifier(hidden_layer_sizes=hidden, max_iter=200, random_state=0))
            return Subject(whole, whole.predict_proba, data, raw=True)

    for name, hidden in {"prices": (32,), "diabetes": (20,), "prices ": (12, 6)}.items():

        @model(f"{name.strip()} {_shape(hidden)} pipeline on raw columns, values")
        def _(_: ExitStack, name: str = name.strip(), hidden: tuple[int, ...] = hidden) -> Subject:
            data = table(name)
            whole = pipeline(data, MLPRegressor(hidden_layer_sizes=hidden, max_iter=200, random_state=0))
            return Subject(whole, whole.predict, data, raw=True)

    for name in ("wine", "diabetes"):

        @model(f"{name} 16-8 pipeline on raw columns, no inputs given")
        def _(_: ExitStack, name: str = name) -> Subject:
            data, kind = table(name), MLPClassifier if name == "wine" else MLPRegressor
            whole = pipeline(data, kind(hidden_layer_sizes=(16, 8), max_iter=200, random_state=3))
            return Subject(whole, whole.predict_proba if name == "wine" else whole.predict, data)

    for name, dtype in {
        "cancer": np.float64,
        "prices": np.float64,
        "cancer ": np.float32,
        "prices ": np.float32,
    }.items():

        @model(f"{name.strip()} 20 pipeline as ONNX in {np.dtype(dtype).name}, raw columns")
        def _(open_things: ExitStack, name: str = name.strip(), dtype: Any = dtype) -> Subject:
            data = table(name)
            last = (MLPClassifier if name == "cancer" else MLPRegressor)(
                hidden_layer_sizes=(20,), max_iter=200, random_state=0
            )
            whole = pipeline(data, last)
            path = save_pipeline(whole, folder(open_things) / "model.onnx", dtype)
            truth = rl.open_oracle(path).query
            return Subject(path, truth, data, raw=True, allowed=EXACT if dtype is np.float64 else SINGLE)


def enter_torch() -> None:
    for name, hidden, double, link in (
        ("digits", (32,), True, ""), ("digits", (32,), False, ""), ("iris", (10, 6), True, ""),
        ("wine", (12,), False, "softmax"), ("cancer", (16,), False, "sigmoid"), ("wine", (10, 6), True, "softmax"),
    ):  # fmt: skip
        what = link or "logits"

        @model(f"{name} {_shape(hidden)} torch {'float64' if double else 'float32'}, {what}")
        def _(_: ExitStack, name: str = name, hidden: Any = hidden, double: bool = double, link: str = link) -> Subject:
            data = scaled(name)
            module = torch_module(classifier(data, hidden), double=double, link=link)
            return Subject(module, asked(module, double), data, allowed=EXACT if double else SINGLE,
                           options={"dim": data.rows.shape[1]})  # fmt: skip


def enter_heads() -> None:
    """Values that end at bounds, maxout units, and a convolution."""
    for what, bounds in (("ReLU", (0.0, np.inf)), ("clipped", (-1.0, 1.0))):

        @model(f"prices 12 MLPRegressor, {what} output")
        def _(_: ExitStack, bounds: tuple[float, float] = bounds) -> Subject:
            data = scaled("prices")
            mlp = regressor(data, (12,))

            def bounded(x: FloatArray) -> FloatArray:
                return np.clip(mlp.predict(x), *bounds)

            return Subject(bounded, bounded, data, options={"dim": data.rows.shape[1]})

    @model("diabetes 6 pairs of maxout units, torch float64")
    def _(_: ExitStack) -> Subject:
        import torch

        pairs = torch.nn.Unflatten(1, (6, 2)), torch.nn.AdaptiveMaxPool1d(1), torch.nn.Flatten()
        module = torch.nn.Sequential(torch.nn.Linear(10, 12), *pairs, torch.nn.Linear(6, 1)).double()
        data = scaled("diabetes")
        answers = (data.answers - data.answers.mean()) / data.answers.std()
        trained(module, data.rows, torch.tensor(answers[:, None]), torch.nn.functional.mse_loss)
        return Subject(module, asked(module, True), data, options={"dim": 10})

    for double, pooled in ((True, False), (False, False), (False, True)):
        digits, pooling = "float64" if double else "float32", " and pooling" * pooled

        @model(f"digits convolution of 3 kernels{pooling}, torch {digits}, logits")
        def _(_: ExitStack, double: bool = double, pooled: bool = pooled) -> Subject:
            import torch

            data = table("digits")
            layers = torch.nn.Unflatten(1, (1, 8, 8)), torch.nn.Conv2d(1, 3, 3, stride=1 if pooled else 2)
            pools = (torch.nn.MaxPool2d(2),) if pooled else ()
            module = torch.nn.Sequential(
                *layers, torch.nn.ReLU(), *pools, torch.nn.Flatten(), torch.nn.Linear(27, 10)
            ).double()
            answers = torch.tensor(data.answers).long()
            trained(module, data.rows / 16, answers, torch.nn.functional.cross_entropy)
            whole = Table(data.rows / 16, data.answers, data.held_out / 16)
            module = module if double else module.float()
            return Subject(module, asked(module, double), whole, allowed=EXACT if double else SINGLE,
                           options={"dim": 64})  # fmt: skip


def trained(module: Any, rows: FloatArray, answers: Any, loss: Callable[..., Any]) -> Any:
    """A torch module after 300 steps of Adam on all rows, from the same start every time."""
    import torch

    torch.manual_seed(0)
    for layer in module.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    steps = torch.optim.Adam(module.parameters(), lr=1e-2)
    given = torch.tensor(rows)
    for _ in range(300):
        steps.zero_grad()
        loss(module(given), answers).backward()
        steps.step()
    return module


def enter_served() -> None:
    """Behind a JSON endpoint, as a few lines of FastAPI serve a model, and behind the inference protocol."""
    for name, plain in (("wine 10", True), ("iris 8", True), ("wine 10", False)):
        how = "a JSON endpoint" if plain else "the inference protocol"

        @model(f"{name} MLPClassifier served by {how}, probabilities")
        def _(open_things: ExitStack, name: str = name, plain: bool = plain) -> Subject:
            data = scaled(name.split()[0])
            mlp = classifier(data, (int(name.split()[1]),))
            server = open_things.enter_context(ModelServer(mlp.predict_proba, dim=data.rows.shape[1]))
            url = server.plain_url if plain else server.url
            options: dict[str, Any] = {"dim": data.rows.shape[1]}
            options |= {"request": {"instances": "$rows"}, "reply": "predictions"} if plain else {}
            return Subject(url, mlp.predict_proba, data, options=options)


def enter_rounded() -> None:
    for name, hidden, decimals in (("iris", (8,), 6), ("wine", (10,), 4), ("diabetes", (20,), 3)):

        @model(f"{name} {_shape(hidden)} rounded to {decimals} decimals")
        def _(_: ExitStack, name: str = name, hidden: Any = hidden, decimals: int = decimals) -> Subject:
            data = scaled(name)
            mlp = regressor(data, hidden) if name == "diabetes" else classifier(data, hidden)
            verb = mlp.predict if name == "diabetes" else mlp.predict_proba

            def rounded(x: FloatArray) -> FloatArray:
                return np.asarray(verb(x)).round(decimals)

            return Subject(rounded, rounded, data, allowed=1e3 * 10.0**-decimals, options={"dim": data.rows.shape[1]})


def enter_labels() -> None:
    for name, hidden in (("cancer", (8,)), ("clients", (10,))):

        @model(f"{name} {_shape(hidden)} MLPClassifier, labels")
        def _(_: ExitStack, name: str = name, hidden: Any = hidden) -> Subject:
            data = scaled(name)
            mlp = classifier(data, hidden)
            return Subject(mlp.predict, mlp.predict, data, expected="labels", labels=True, allowed=1e-2,
                           options={"dim": data.rows.shape[1]})  # fmt: skip


def enter_linear() -> None:
    for name, last, verb in (
        ("cancer", LogisticRegression(max_iter=500), "predict_proba"),
        ("wine", LogisticRegression(max_iter=500), "predict_proba"),
        ("diabetes", LinearRegression(), "predict"),
        ("prices", Ridge(), "predict"),
        ("cancer ", LinearSVC(), "decision_function"),
    ):  # fmt: skip

        @model(f"{name.strip()} {type(last).__name__} in a pipeline, raw columns")
        def _(_: ExitStack, name: str = name.strip(), last: Any = last, verb: str = verb) -> Subject:
            data = table(name)
            whole = pipeline(data, last)
            return Subject(whole, getattr(whole, verb), data, raw=True)

    @model("digits LogisticRegression, scaled columns")
    def _(_: ExitStack) -> Subject:
        data = scaled("digits")
        last = LogisticRegression(max_iter=300).fit(data.rows, data.answers)
        return Subject(last, last.predict_proba, data)


def enter_trees() -> None:
    for name, last, verb in (
        ("cancer", DecisionTreeClassifier(max_depth=4, random_state=0), "predict_proba"),
        ("diabetes", DecisionTreeRegressor(max_depth=5, random_state=0), "predict"),
        ("cancer", RandomForestClassifier(50, random_state=0), "predict_proba"),
        ("digits", RandomForestClassifier(100, random_state=0), "predict_proba"),
        ("diabetes", RandomForestRegressor(50, random_state=0), "predict"),
        ("cancer", GradientBoostingClassifier(random_state=0), "predict_proba"),
        ("prices", GradientBoostingRegressor(random_state=0), "predict"),
        ("wine", HistGradientBoostingClassifier(random_state=0), "predict_proba"),
    ):  # fmt: skip

        @model(f"{name} {type(last).__name__}, raw columns")
        def _(_: ExitStack, name: str = name, last: Any = last, verb: str = verb) -> Subject:
            data = table(name)
            last.fit(data.rows, data.answers)
            return Subject(last, getattr(last, verb), data, raw=True, expected=TREES)

    for name, last in (
        ("cancer", RandomForestClassifier(50, random_state=0)),
        ("prices", RandomForestRegressor(20, max_depth=6, random_state=0)),
    ):  # fmt: skip

        @model(f"{name} {type(last).__name__} as ONNX in float32, raw columns")
        def _(open_things: ExitStack, name: str = name, last: Any = last) -> Subject:
            data = table(name)
            path = save_forest(last.fit(data.rows, data.answers), folder(open_things) / "model.onnx")
            return Subject(path, rl.open_oracle(path).query, data, raw=True, expected=TREES)


def enter_others() -> None:
    """Smooth models, which no ReLU network is."""
    for activation in ("GELU", "SiLU"):

        @model(f"diabetes 20 {activation}, torch float32")
        def _(_: ExitStack, activation: str = activation) -> Subject:
            import torch

            layers = torch.nn.Linear(10, 20), getattr(torch.nn, activation)(), torch.nn.Linear(20, 1)
            data, module = scaled("diabetes"), torch.nn.Sequential(*layers).double()
            answers = (data.answers - data.answers.mean()) / data.answers.std()
            module = trained(module, data.rows, torch.tensor(answers[:, None]), torch.nn.functional.mse_loss).float()
            return Subject(module, asked(module, False), data, expected=REFUSED, options={"dim": 10})

    for name, last, verb in (
        ("cancer", SVC(), "decision_function"), ("iris", GaussianNB(), "predict_proba"),
        ("wine", MLPClassifier((10,), activation="tanh", max_iter=200, random_state=0), "predict_proba"),
    ):  # fmt: skip

        @model(f"{name} {type(last).__name__}{' tanh' if isinstance(last, MLPClassifier) else ''}, scaled columns")
        def _(_: ExitStack, name: str = name, last: Any = last, verb: str = verb) -> Subject:
            data = scaled(name)
            last.fit(data.rows, data.answers)
            return Subject(last, getattr(last, verb), data, expected=REFUSED)


def _shape(hidden: tuple[int, ...]) -> str:
    return "-".join(map(str, hidden))


def _entries() -> Iterator[Callable[[], None]]:
    yield from (
        enter_linear, enter_classifiers, enter_regressors, enter_pipelines, enter_torch, enter_heads, enter_served,
        enter_rounded, enter_labels, enter_trees, enter_others,
    )  # fmt: skip


for _enter in _entries():
    _enter()

if __name__ == "__main__":
    main()
