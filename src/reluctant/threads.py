"""One thread for linear algebra where matrices are small: a second one would only wait for the first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["one_blas_thread"]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, numpy and scipy use one thread; outside, as many as before."""
    from threadpoolctl import threadpool_limits  # here, for it looks at every loaded library

    with threadpool_limits(limits=1, user_api="blas"):
        yield
