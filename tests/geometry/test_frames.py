"""Frames: coordinates of their own, and a network seen in them is the same network."""

from __future__ import annotations

import numpy as np

from reluctant.geometry import Frame, FramedNetwork
from reluctant.testing import planted


def a_frame(rng: np.random.Generator, k: int, d: int) -> Frame:
    start = Frame(rng.standard_normal(d), np.empty((0, d)))
    return start.extended(start.new_directions(k, rng))


def test_new_directions_are_orthonormal_to_the_frame() -> None:
    rng = np.random.default_rng(0)
    frame = a_frame(rng, 3, 10)
    frame = frame.extended(frame.new_directions(4, rng))
    np.testing.assert_allclose(frame.basis @ frame.basis.T, np.eye(7), atol=1e-14)


def test_lifted_network_is_the_framed_one() -> None:
    rng = np.random.default_rng(1)
    frame, inside = a_frame(rng, 4, 9), planted((4, 6, 2), 0, skip=True)
    y = rng.standard_normal((50, 4))
    lifted = FramedNetwork(frame, inside, np.zeros(6), np.zeros(6)).lifted()
    np.testing.assert_allclose(lifted(frame.points(y)), inside(y), atol=1e-12)
