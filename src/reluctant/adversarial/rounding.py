"""How small a margin may be before rounding decides about its side.

An answer near a boundary is a small difference of large terms, and what rounding leaves unknown of it is a part of
those terms, not of the answer. They grow with the input, and with how steep the target is. A batch of another size adds
them up in another order, and may put so small a margin on the other side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["ANSWER_ROUNDINGS", "DECIDED", "LEAST_EXACT", "OWN_ROUNDINGS", "Limit"]

ANSWER_ROUNDINGS = 2.0  # an answer is a sum of a few numbers of its size
OWN_ROUNDINGS = 8.0  # of all that a network computes on the way to an answer, in units of its size
DECIDED = 8.0  # times the noise: smaller margins say nothing about a side
LEAST_EXACT = "float32"  # formats with fewer digits are added up in this one


@dataclass(frozen=True)
class Limit:
    """Margins that are no larger say nothing about a side.

    least: what noise asks for, wherever the input is. answers: what is unknown of an answer, as a part of it. terms:
    what is unknown of a sum over the inputs, for each unit of their norm.
    """

    least: float
    answers: float
    terms: float

    @classmethod
    def of(cls, number_format: str, slopes: FloatArray, least: float) -> Limit:
        """Of a target that gives its answers in this format, and has these gradients (m, d)."""
        given, added = (unit_roundoff(each) for each in (number_format, LEAST_EXACT))
        return cls.of_sums(ANSWER_ROUNDINGS * given, ANSWER_ROUNDINGS * min(given, added), slopes, least)

    @classmethod
    def of_sums(cls, given: float, added: float, slopes: FloatArray, least: float) -> Limit:
        """Of answers that are off by a part of themselves, and by a part of the terms that are added up to them."""
        return cls(least, given, added * float(np.sqrt(slopes.shape[1]) * np.linalg.norm(slopes, axis=1).max()))

    def at(self, points: FloatArray, answers: FloatArray) -> FloatArray:
        """One (n,) for each of these points (n, d) with these answers (n, m)."""
        of_answers, of_terms = np.abs(answers).max(axis=1), np.linalg.norm(points, axis=1)
        return np.maximum(self.least, DECIDED * np.maximum(self.answers * of_answers, self.terms * of_terms))
