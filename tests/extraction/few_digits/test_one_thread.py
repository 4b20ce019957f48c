"""Small matrices are worked on by one thread, and afterwards everything is as before."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from reluctant.numerics import one_blas_thread


def threads() -> list[int]:
    np.eye(2) @ np.eye(2)
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_one_thread_inside_and_as_many_as_before_outside() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        assert before
        with one_blas_thread():
            assert threads() == [1] * len(before)
        assert threads() == before
