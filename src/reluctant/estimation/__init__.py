"""What an attack would cost, for a shape that nobody has run: a formula a method, fitted to measured runs."""

from reluctant.estimation.cost import Estimate, Range, Trust, estimate

__all__ = ["Estimate", "Range", "Trust", "estimate"]
