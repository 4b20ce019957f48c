"""One thread for linear algebra where matrices are small: a second one would only wait for the first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from reluctant.optional import require

__all__ = ["one_blas_thread"]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, numpy and scipy use one thread; outside, as many as before."""
    pools = require("threadpoolctl", purpose="linear algebra with one thread")  # it looks at every loaded library
    with pools.threadpool_limits(limits=1, user_api="blas"):
        yield
