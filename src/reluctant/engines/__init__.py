"""Where work is done besides this process: a dask cluster, and sweeps over processes or over its workers."""

from reluctant.engines.cluster import Cluster, Engine, check_engine
from reluctant.engines.sweeps import as_they_end, in_order, spread

__all__ = ["Cluster", "Engine", "as_they_end", "check_engine", "in_order", "spread"]
