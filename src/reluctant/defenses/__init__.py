"""Defenses: what an owner may put before a model, as oracles around oracles, each with its cost to honest users."""

from reluctant.defenses.registry import DEFENSES, defend
from reluctant.defenses.utility import HonestCost, honest_cost

__all__ = ["DEFENSES", "HonestCost", "defend", "honest_cost"]
