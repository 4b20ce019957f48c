"""Experiments of the papers, each a function that gives a `Finding`: claim, measurement, table, picture, checks."""

from reluctant.experiments.experiment import Experiment
from reluctant.experiments.finding import Check, Finding
from reluctant.experiments.gallery import EXPERIMENTS

__all__ = ["EXPERIMENTS", "Check", "Experiment", "Finding"]
