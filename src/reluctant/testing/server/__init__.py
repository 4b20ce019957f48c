"""A small server of the Open Inference Protocol v2, with faults to order: for tests, and to try a client on.

    with ModelServer(network, dim=4) as server:
        oracle = rl.open_oracle(server.url)

It speaks JSON and binary tensors, lists its models, and has a plain JSON endpoint beside (`server.plain_url`).
`faults(i)` names what goes wrong with the i-th question; see `Fault`. From the command line it serves a network:
`python -m reluctant.testing.server network.npz`.
"""

from reluctant.testing.server.faults import Fault, at, every
from reluctant.testing.server.model import ModelServer

__all__ = ["Fault", "ModelServer", "at", "every"]
