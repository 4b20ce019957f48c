"""Health check of a target: what its query interface gives, before any method relies on it."""

from reluctant.health.check import check_health
from reluctant.health.noise import NoiseReading, measure_noise
from reluctant.health.summary import Health, Shape

__all__ = ["Health", "NoiseReading", "Shape", "check_health", "measure_noise"]
