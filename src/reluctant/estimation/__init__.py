"""What an attack would cost, for a shape that nobody has run: a model of the method's rows, fitted to measured runs."""

from reluctant.estimation.costs import Estimate, Neighbour, estimate
from reluctant.estimation.model import Range
from reluctant.estimation.trust import Trust

__all__ = ["Estimate", "Neighbour", "Range", "Trust", "estimate"]
