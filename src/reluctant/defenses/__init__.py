"""Defenses: what an owner may put before a model, as oracles around oracles, each with its cost to honest users."""

from reluctant.defenses.cost import HonestCost, honest_cost
from reluctant.defenses.registry import DEFENSES, defend

__all__ = ["DEFENSES", "HonestCost", "defend", "honest_cost"]
