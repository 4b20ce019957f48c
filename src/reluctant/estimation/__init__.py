"""Estimation: the expected cost of an attack on a shape, by formulas fitted to measured runs."""

from reluctant.estimation.cost import Estimate, Range, estimate

__all__ = ["Estimate", "Range", "estimate"]
