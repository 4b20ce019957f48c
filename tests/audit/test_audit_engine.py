"""The defense sweep on a cluster: the same table as here, in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reluctant import open_oracle
from reluctant._files import as_plain
from reluctant.audit import StandIn, sweep
from reluctant.audit.record import StandsFor
from reluctant.defenses import defend
from reluctant.oracles import NetworkOracle
from reluctant.testing import planted

NETWORK = planted((4, 2, 2))
INPUTS = np.random.default_rng(3).standard_normal((50, 4))


@pytest.mark.parametrize("own", [(), ("gaussian=1e-4",)], ids=["as it is", "with noise of its own"])
def test_a_sweep_on_a_cluster_gives_the_table_of_one_here(own: tuple[str, ...], client: Any) -> None:
    """Also where the model answers with fresh noise: no row depends on how much of it another one has drawn."""
    tables, watched = [], []
    for engine in (None, client):
        copy = open_oracle(defend(NetworkOracle(NETWORK), *own))
        found = sweep(
            StandIn(copy, StandsFor.FILE, INPUTS), methods=["span", "extract"], seconds=600.0,
            watch=lambda done, of, _: watched.append((done, of)), engine=engine,
        )  # fmt: skip
        tables.append(as_plain(found.facts()))
        assert watched[-1] == (8, 8)  # all inputs have one label, which is no defense
    assert [row["defense"] for row in tables[1]["rows"]][:2] == ["none", "decimals=6"]
    np.testing.assert_equal(tables[1], tables[0])
