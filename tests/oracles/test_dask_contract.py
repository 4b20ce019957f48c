"""A target on the workers of a cluster keeps the contract of the boundary, whatever kind of target it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dask_targets import NETWORK
from oracle_models import fitted_mlp, linked, save_onnx, torch_module
from sweeps import sweep

from reluctant.oracles import NetworkOracle, Oracle, open_oracle
from reluctant.testing.contract import OracleContract

Target = Callable[[Path], dict[str, Any]]

TARGETS: dict[str, Target] = {
    "network": lambda _: {"target": NETWORK},
    "callable": lambda _: {"target": lambda x: NETWORK(x), "dim": 4},
    "oracle of one's own": lambda _: {"target": NetworkOracle(NETWORK)},
    "module:attribute": lambda _: {"target": "dask_targets:NETWORK"},
    "npz": lambda folder: {"target": saved_npz(folder)},
    "onnx": lambda folder: {"target": save_onnx(NETWORK, folder / "model.onnx")},
    "onnx re-cast": lambda folder: {"target": save_onnx(NETWORK, folder / "model.onnx"), "precision": "float64"},
    "torch": lambda _: {"target": torch_module(NETWORK)},
    "torch re-cast": lambda _: {"target": torch_module(NETWORK), "precision": "float64"},
    "scikit-learn": lambda _: {"target": fitted_mlp("MLPClassifier")},
    "full stack": lambda folder: {
        "target": save_onnx(linked(NETWORK, "softmax"), folder / "model.onnx"),
        "dim": 4, "budget": 10_000, "transcript": folder / "transcript", "keep_rows": True, "output": [1, 0],
        "link": "softmax", "domain": (-2, 2), "precision": "float64", "timeout": 60, "retries": 2,
    },
}  # fmt: skip

LARGE_LIBRARIES = {"torch", "torch re-cast", "scikit-learn"}  # every worker imports them first


def saved_npz(folder: Path) -> Path:
    NETWORK.save(folder / "model.npz")
    return folder / "model.npz"


@pytest.fixture(scope="class", params=sweep(TARGETS, fast=TARGETS.keys() - LARGE_LIBRARIES))
def keywords(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return TARGETS[request.param](tmp_path_factory.mktemp("target"))


@pytest.fixture(scope="class")
def opened(keywords: dict[str, Any], local_cluster: Any, patience: float) -> Iterator[Oracle]:
    """Once for all tests of a target."""
    local_cluster.wait_for_workers(2, timeout=patience)
    with open_oracle(**keywords, engine=local_cluster) as oracle:
        yield oracle


class TestOnWorkers(OracleContract):
    @pytest.fixture
    def oracle(self, opened: Oracle) -> Oracle:
        return opened

    def test_it_answers_and_is_as_the_target_is_here(self, oracle: Oracle, keywords: dict[str, Any]) -> None:
        """The same facts and, bit by bit, the same answers as the target asked here in one small batch."""
        with open_oracle(**keywords | {"transcript": None, "keep_rows": False}) as here:
            assert oracle.facts == here.facts
            rows = self.rows(oracle, 20)
            np.testing.assert_array_equal(oracle.query(rows), here.query(rows))
