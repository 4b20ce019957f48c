"""The interface of a target: the kind, digits, noise and range of its answers, measured once."""

from reluctant.interface.health import Interface, check_health
from reluctant.interface.kinds import Shape
from reluctant.interface.noise import NoiseReading, measure_noise

__all__ = ["Interface", "NoiseReading", "Shape", "check_health", "measure_noise"]
