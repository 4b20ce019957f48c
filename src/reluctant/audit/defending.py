"""The last step: the defense sweep on a local copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reluctant.audit.known import Known, Skip, as_given
from reluctant.audit.sweep import as_served, sweep
from reluctant.networks.network import LINKS, Link
from reluctant.oracles import Counting, NetworkOracle, Oracle, Selected, open_oracle

__all__ = ["try_defenses"]


def try_defenses(oracle: Counting, known: Known, seed: int) -> Mapping[str, Any]:
    """Every default defense on the recovered network, or on the local file. The target is asked nothing."""
    copy, on = _copy(known)
    served = known.served
    try:
        found = sweep(
            copy, on=on, inputs=known.given.inputs, described=as_given(known, oracle), link=known.link,
            spread=1.0 if served is None else served.spread,
            digits="float64" if served is None else served.number_format,
            seconds=known.given.sweep_seconds, rng=seed, watch=known.given.watch,
        )  # fmt: skip
    finally:
        copy.close()
    return {"sweep": found}


def _copy(known: Known) -> tuple[Oracle, str]:
    """What stands for the model, and what it is called."""
    extraction, file = known.extraction, known.given.file
    if extraction is not None and extraction.ok and extraction.network is not None:
        network = extraction.network.before_link(_written(known.link))
        return as_served(NetworkOracle(network), known.served), "the recovered network"
    if file is None:
        raise Skip("There is no local copy: the network was not recovered, and the target is not a file.")
    opened: Oracle = open_oracle(file, precision=known.given.precision)
    return opened if known.given.output is None else Selected(opened, known.given.output), "the local file"


def _written(link: str) -> Link:
    """What a network is written with, by how its answers were read."""
    return next((known for known in LINKS if known == link), "softmax" if link == "top-k" else "identity")
