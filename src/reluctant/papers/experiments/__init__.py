"""Experiments of the papers: functions that return a `Finding` (claim, measurement, table, picture, checks)."""

from reluctant.papers.experiments.experiment import Check, Experiment, Finding
from reluctant.papers.experiments.reproduction import EXPERIMENTS

__all__ = ["EXPERIMENTS", "Check", "Experiment", "Finding"]
