"""Defenses: oracles around a model that give less away, each with its cost to honest users."""

from reluctant.defenses.defense import (
    DEFENSES,
    ClippedInputs,
    Decimals,
    Defense,
    Digits,
    GaussianNoise,
    HonestCost,
    LabelsOnly,
    LaplaceNoise,
    NumberFormat,
    Probabilities,
    QueryLimit,
    TopProbabilities,
    defend,
    honest_cost,
)

__all__ = [
    "DEFENSES",
    "ClippedInputs",
    "Decimals",
    "Defense",
    "Digits",
    "GaussianNoise",
    "HonestCost",
    "LabelsOnly",
    "LaplaceNoise",
    "NumberFormat",
    "Probabilities",
    "QueryLimit",
    "TopProbabilities",
    "defend",
    "honest_cost",
]
