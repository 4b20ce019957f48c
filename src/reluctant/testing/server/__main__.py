"""Serve a network until standard input ends; its address is printed."""

from __future__ import annotations

import sys

from reluctant.networks import ReLUNetwork
from reluctant.testing.server import ModelServer


def main() -> None:
    """Serve the network of the file that is named."""
    network = ReLUNetwork.load(sys.argv[1])
    with ModelServer(network, network.dim, outputs=network.outputs) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
