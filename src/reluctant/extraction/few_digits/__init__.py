"""One hidden layer from answers of few digits: float32, rounding, noise."""

from reluctant.extraction.few_digits.method import FewDigits

__all__ = ["FewDigits"]
