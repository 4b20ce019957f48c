"""Testing kit: planted networks, targets that misbehave, and the contract of every oracle.

`planted` and `faults` need numpy alone, `contract` needs pytest, `strategies` needs hypothesis.
"""

from reluctant.testing.families import DEGENERATE, WORST_CASE
from reluctant.testing.faults import FAULTS, in_float32, single_precision
from reluctant.testing.methods import METHODS, MethodCase
from reluctant.testing.planted import (
    Labelled,
    labelled,
    largest_true_error,
    planted,
    relative_square_error,
    train_digits,
    trained_digits,
)

__all__ = [
    "DEGENERATE",
    "FAULTS",
    "METHODS",
    "WORST_CASE",
    "Labelled",
    "MethodCase",
    "in_float32",
    "labelled",
    "largest_true_error",
    "planted",
    "relative_square_error",
    "single_precision",
    "train_digits",
    "trained_digits",
]
