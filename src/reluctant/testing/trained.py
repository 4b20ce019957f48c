"""Trained networks for tests and benchmarks."""

from __future__ import annotations

from reluctant.bundled import digits_model
from reluctant.networks import ReLUNetwork

__all__ = ["trained_digits"]


def trained_digits() -> ReLUNetwork:
    """The bundled 64-32-10 digits classifier (reading it needs onnx)."""
    return ReLUNetwork.load(digits_model())
