"""Testing kit: planted networks with known answers, targets that misbehave, a contract every oracle keeps.

`planted` and `faults` need numpy alone, `contract` needs pytest, `strategies` needs hypothesis.
"""

from reluctant.testing.degenerate import DEGENERATE
from reluctant.testing.faults import FAULTS, in_float32, single_precision
from reluctant.testing.labelled import Labelled, labelled
from reluctant.testing.methods import METHODS, Method
from reluctant.testing.planted import planted
from reluctant.testing.trained import train_digits, trained_digits
from reluctant.testing.truth import largest_true_error, relative_square_error
from reluctant.testing.worst_case import WORST_CASE

__all__ = [
    "DEGENERATE",
    "FAULTS",
    "METHODS",
    "WORST_CASE",
    "Labelled",
    "Method",
    "in_float32",
    "labelled",
    "largest_true_error",
    "planted",
    "relative_square_error",
    "single_precision",
    "train_digits",
    "trained_digits",
]
