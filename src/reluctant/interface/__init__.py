"""The interface of a target: what its answers are like, measured once before any method relies on it."""

from reluctant.interface.classification import Shape
from reluctant.interface.health import Interface, check_health
from reluctant.interface.probe import NoiseReading, measure_noise

__all__ = ["Interface", "NoiseReading", "Shape", "check_health", "measure_noise"]
