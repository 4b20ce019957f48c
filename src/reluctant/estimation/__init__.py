"""What an attack would cost, for a shape that nobody has run: a model of the method's rows, fitted to measured runs."""

from reluctant.estimation.attack_cost import Estimate, Neighbour, Trust, estimate
from reluctant.estimation.cost_model import Range

__all__ = ["Estimate", "Neighbour", "Range", "Trust", "estimate"]
