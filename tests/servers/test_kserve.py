"""A network behind KServe's real Python server is recovered exactly, through binary tensors and through JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import free_port, program, running

import reluctant as rl
from reluctant.testing import planted

pytestmark = pytest.mark.servers

NETWORK = planted((12, 8, 2), 4)
MODEL = Path(__file__).with_name("kserve_model.py")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, port = tmp_path_factory.mktemp("kserve"), free_port()
    NETWORK.save(folder / "network.npz")
    command = [program("kserve", "python"), MODEL, "relu", folder / "network.npz", port]
    with running(command, f"http://127.0.0.1:{port}/v2/models/relu", folder) as url:
        yield url


@pytest.mark.parametrize("encoding", ["json", "binary", "auto"])
def test_answers_are_the_networks(served: str, encoding: str) -> None:
    rows = np.random.default_rng(0).standard_normal((300, 12))
    with rl.open_oracle(served, dim=12, encoding=encoding) as oracle:
        np.testing.assert_allclose(oracle.query(rows), NETWORK(rows), rtol=0, atol=1e-13)
        assert (oracle.outputs, oracle.facts.dtype) == (2, np.float64)


@pytest.mark.parametrize("encoding", ["json", "binary"])
def test_the_model_is_recovered_exactly(served: str, encoding: str, tmp_path: Path) -> None:
    with rl.open_oracle(served, dim=12, encoding=encoding, transcript=tmp_path) as oracle:
        result = rl.extract(oracle, rng=0)
    result.raise_for_status()
    assert rl.compare(result.network, NETWORK).parameter_error < 1e-9


def test_another_name_lists_the_models(served: str) -> None:
    with pytest.raises(rl.ReluctantError, match=r"model 'nope', which .* does not have, expected one of 'relu'"):
        rl.open_oracle(served.replace("relu", "nope"))
