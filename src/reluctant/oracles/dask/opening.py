"""From a target to an oracle on an engine, and what cannot go there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reluctant.engines import Cluster, Engine
from reluctant.errors import UnusableEngine
from reluctant.oracles.base import Oracle, Wrapper
from reluctant.oracles.counting import Counting
from reluctant.oracles.dask.oracle import IN_FLIGHT, SHARDS, DaskOracle, shard_rows
from reluctant.oracles.dask.parcel import seal
from reluctant.oracles.parallel import Parallel
from reluctant.oracles.timeout import Timed

__all__ = ["as_sent", "in_shards", "open_on_engine"]


def open_on_engine(engine: Engine, make: Callable[[], Oracle], name: str, timeout: float | None) -> DaskOracle:
    """Send what `make` opens to the workers of an engine; each call there is given up after `timeout` seconds."""
    sealed = seal(partial(_timed, make, timeout), name)
    cluster = Cluster.reach(engine)
    try:
        return DaskOracle(cluster, sealed)
    except BaseException:
        cluster.close()
        raise


def in_shards(sender: Oracle, most: int | None = None) -> Parallel:
    """Questions cut into tasks of at most so many rows, several under way; the cut is the same on every cluster."""
    size = shard_rows(sender.dim)
    return Parallel(sender, IN_FLIGHT, size if most is None else min(size, most), spread=SHARDS)


def as_sent(oracle: Oracle) -> Oracle:
    """The oracle itself, unless copies of it on workers would each keep an account, or random numbers, of their own."""
    inner: Oracle | None = oracle
    while inner is not None:
        if isinstance(inner, Counting):
            raise UnusableEngine.about(
                "target", got="one that is opened already, with an account of its own", expected="the bare target",
                fix="Give engine= where it is opened: open_oracle(model, engine=...).",
            )  # fmt: skip
        if inner.draws:
            raise UnusableEngine.about(
                "target", got="one that adds random noise: every worker would draw the same",
                expected="the target behind the noise",
                fix="Send that, and put the noise before it here: defend(open_oracle(model, engine=...), ...).",
            )  # fmt: skip
        inner = inner.inner if isinstance(inner, Wrapper) else None
    return oracle


def _timed(make: Callable[[], Oracle], seconds: float | None) -> Oracle:
    """On a worker, where waiting for one's turn does not count."""
    return make() if seconds is None else Timed(make(), seconds)
