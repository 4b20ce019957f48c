"""Targets on the workers of a dask cluster (extra `dask`)."""

from reluctant.oracles.dask.opening import as_sent, in_shards, open_on_engine
from reluctant.oracles.dask.oracle import DaskOracle

__all__ = ["DaskOracle", "as_sent", "in_shards", "open_on_engine"]
