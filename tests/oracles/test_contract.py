"""Every adapter, every wrapper and the whole stack keep the contract of the boundary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from oracle_models import IMAGE, Asked, fitted_mlp, gaussian_rows, linked, save_onnx, sigmoid, softmax, torch_module

from reluctant.errors import InvalidRows
from reluctant.oracles import (
    CallableOracle,
    Counting,
    Ledger,
    Linked,
    Metered,
    NetworkOracle,
    Oracle,
    Retrying,
    Selected,
    Timed,
    Transcript,
    open_oracle,
)
from reluctant.oracles.links import PlainProbabilities, ProbabilityFormat
from reluctant.oracles.parallel import Parallel
from reluctant.oracles.wrappers import Batched, Borrowed, Watched
from reluctant.testing import planted
from reluctant.testing.contract import OracleContract

NETWORK = planted((4, 6, 5, 3), 1)
IMAGES = planted((16, 7, 2), 2)
GOOD_ROWS = gaussian_rows(7, 4)

Maker = Callable[[Path], Oracle]


def network_oracle(_: Path) -> Oracle:
    return NetworkOracle(NETWORK)


def asked_once(function: Callable[..., object]) -> Oracle:
    oracle = CallableOracle(function, 4)
    oracle.query(np.zeros((1, 4)))
    return oracle


def onnx_oracle(batch: int | str = "batch", dtype: str = "float32", precision: str = "as-served") -> Maker:
    return lambda folder: (
        open_oracle(save_onnx(NETWORK, folder / "model.onnx", dtype, batch), precision=precision).inner
    )


def onnx_images(batch: int | str) -> Maker:
    return lambda folder: open_oracle(save_onnx(IMAGES, folder / "model.onnx", batch=batch, shape=IMAGE)).inner


def torch_images(_: Path) -> Oracle:
    import torch

    return open_oracle(torch_module(IMAGES, first=(torch.nn.Flatten(),)), shape=IMAGE).inner


def full_stack(folder: Path) -> Counting:
    model = save_onnx(linked(NETWORK, "softmax"), folder / "model.onnx")
    return open_oracle(
        model,
        dim=4,
        budget=10_000,
        transcript=folder / "transcript",
        keep_rows=True,
        output=[1, 0],
        link="softmax",
        domain=(-2, 2),
        precision="float64",
        timeout=60,
        retries=2,
        batch=3,
    )


ADAPTERS: dict[str, Maker] = {
    "callable": lambda _: asked_once(NETWORK),
    "callable of one axis": lambda _: asked_once(lambda x: NETWORK(x)[:, 0]),
    "callable with a read-only answer": lambda _: asked_once(lambda x: np.broadcast_to([1.0, 2.0], (len(x), 2))),
    "network": network_oracle,
    "onnx float32": onnx_oracle(),
    "onnx float64": onnx_oracle(dtype="float64"),
    "onnx re-cast": onnx_oracle(precision="float64"),
    "onnx one at a time": onnx_oracle(batch=1),
    "onnx three at a time": onnx_oracle(batch=3, dtype="float64"),
    "onnx images": onnx_images("batch"),
    "onnx images one at a time": onnx_images(1),
    "onnx images three at a time": onnx_images(3),
    "torch float32": lambda _: open_oracle(torch_module(NETWORK)).inner,
    "torch float64": lambda _: open_oracle(torch_module(NETWORK).double()).inner,
    "torch re-cast": lambda _: open_oracle(torch_module(NETWORK), precision="float64").inner,
    "torch images": torch_images,
    "MLPClassifier": lambda _: open_oracle(fitted_mlp("MLPClassifier")).inner,
    "MLPClassifier float32": lambda _: open_oracle(fitted_mlp("MLPClassifier", dtype="float32")).inner,
    "MLPRegressor": lambda _: open_oracle(fitted_mlp("MLPRegressor")).inner,
    "MLPRegressor of one output": lambda _: open_oracle(fitted_mlp("MLPRegressor", outputs=1)).inner,
}

WRAPPERS: dict[str, Maker] = {
    "Counting": lambda folder: Counting(network_oracle(folder), Ledger()),
    "Metered": lambda folder: Metered(network_oracle(folder), Ledger(), budget=10_000),
    "Retrying": lambda folder: Retrying(network_oracle(folder), 3),
    "Batched": lambda folder: Batched(network_oracle(folder), 2),
    "Parallel": lambda folder: Parallel(network_oracle(folder), connections=3, batch=2),
    "Borrowed": lambda folder: Borrowed(network_oracle(folder)),
    "Watched": lambda folder: Watched(network_oracle(folder), every=2),
    "Timed": lambda folder: Timed(network_oracle(folder), 60),
    "Selected": lambda folder: Selected(network_oracle(folder), [2, 0]),
    "Linked softmax": lambda _: Linked(asked_once(lambda x: softmax(NETWORK(x))), "softmax"),
    "Linked sigmoid": lambda _: Linked(asked_once(lambda x: sigmoid(NETWORK(x))), "sigmoid"),
    "Plain": lambda _: PlainProbabilities(
        asked_once(lambda x: 100 * softmax(NETWORK(x))), ProbabilityFormat(percent=True)
    ),
    "Transcript": lambda folder: Transcript(network_oracle(folder), folder, Ledger()),
    "box": lambda _: open_oracle(NETWORK, domain=(0, 1)),
    "orthant": lambda _: open_oracle(NETWORK, domain=(0, np.inf)),
    "bounds for each coordinate": lambda _: open_oracle(NETWORK, domain=([-1, 0, 1, 2], [0, 1, 2, 3])),
    "full stack": full_stack,
}

MAKERS = ADAPTERS | WRAPPERS


class TestEveryOracle(OracleContract):
    @pytest.fixture(params=MAKERS)
    def oracle(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Oracle]:
        with MAKERS[request.param](tmp_path) as oracle:
            yield oracle


class TestAsDocumented(OracleContract):
    def make_oracle(self) -> Oracle:
        return NetworkOracle(NETWORK)


# ---- bad rows: `query` is final, so that one oracle stands for all


BAD_ROWS: dict[str, object] = {
    "one axis": GOOD_ROWS[0],
    "too wide": np.column_stack([GOOD_ROWS, GOOD_ROWS]),
    "empty": GOOD_ROWS[:0],
    "NaN": np.where(np.arange(7)[:, None] == 3, np.nan, GOOD_ROWS),
    "inf": np.where(np.arange(7)[:, None] == 3, np.inf, GOOD_ROWS),
    "strings": [["cat"] * 4],
    "complex": GOOD_ROWS * 1j,
}


@pytest.mark.parametrize("flaw", BAD_ROWS)
def test_bad_rows_are_refused_before_anything_is_sent(flaw: str) -> None:
    target = Asked(NETWORK)
    oracle = CallableOracle(target, 4)
    with pytest.raises(InvalidRows, match=r"^x: got .*, expected "):
        oracle.query(BAD_ROWS[flaw])  # type: ignore[arg-type]
    assert target.calls == []


def test_bad_rows_are_refused_through_the_whole_stack(tmp_path: Path) -> None:
    with full_stack(tmp_path) as oracle:
        before = oracle.queries
        for rows in BAD_ROWS.values():
            with pytest.raises(InvalidRows, match=r"^x: got .*, expected "):
                oracle.query(rows)  # type: ignore[arg-type]
        assert oracle.queries == before
