"""Two hidden layers from answers of few digits: float32, rounding, noise."""

from reluctant.extraction.deep_few_digits.method import FewDigitsDeep

__all__ = ["FewDigitsDeep"]
