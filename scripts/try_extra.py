"""Use one extra of the installed package, with nothing else installed: `make dist` runs it in an empty environment.

python scripts/try_extra.py EXTRA
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import reluctant as rl

NETWORK = rl.random_network((4, 3, 1), rng=0)
ROWS = np.ones((2, 4))


def cli() -> None:
    command = Path(sys.executable).with_name("reluctant")
    subprocess.run([command, "estimate", "8-4-1"], check=True, stdout=subprocess.DEVNULL)


def onnx() -> None:
    from reluctant.bundled import digits_model

    assert rl.open_oracle(digits_model()).query(np.zeros((2, 64))).shape == (2, 10)


def torch() -> None:
    assert rl.open_oracle(NETWORK.to_torch(), dim=4).query(ROWS).shape == (2, 1)


def sklearn() -> None:
    assert rl.open_oracle(NETWORK.to_sklearn()).query(ROWS).shape == (2, 1)


def report() -> None:
    with TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        rl.report(rl.audit(NETWORK, budget=2000, rng=0, steps=["health", "extraction", "line"]), page)
        assert page.stat().st_size > 0


def lattice() -> None:
    import fpylll

    assert fpylll.IntegerMatrix.identity(3).nrows == 3


def http() -> None:
    from reluctant.testing.server import ModelServer

    with ModelServer(NETWORK, dim=4) as server, rl.open_oracle(server.url) as oracle:
        assert np.array_equal(oracle.query(ROWS), NETWORK(ROWS))


def dask() -> None:
    from distributed import Client

    client = Client(processes=False, dashboard_address=None, n_workers=1)  # type: ignore[no-untyped-call]
    with client:
        assert rl.open_oracle(NETWORK, engine=client).query(ROWS).shape == (2, 1)


def testing() -> None:
    from reluctant.testing.contract import OracleContract

    class TestNetwork(OracleContract):
        def make_oracle(self) -> rl.Oracle:
            return rl.open_oracle(NETWORK)

    assert TestNetwork().make_oracle().query(ROWS).shape == (2, 1)


USES: dict[str, Callable[[], None]] = {
    use.__name__: use for use in (cli, onnx, torch, sklearn, report, lattice, http, dask, testing)
}


def main() -> None:
    extra = sys.argv[1]
    assert rl.extract(NETWORK, rng=0).ok  # the core needs no extra
    USES[extra]()
    print(f"{extra}: reluctant {rl.__version__} works")


if __name__ == "__main__":
    main()
