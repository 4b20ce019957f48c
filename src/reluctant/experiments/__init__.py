"""Experiments of the papers, each a function that gives a `Finding`: table, picture, checks."""

from reluctant.experiments.finding import Check, Finding
from reluctant.experiments.gallery import EXPERIMENTS

__all__ = ["EXPERIMENTS", "Check", "Finding"]
