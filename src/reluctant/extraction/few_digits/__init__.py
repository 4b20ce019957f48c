"""Few digits: one hidden layer from float32, rounded or noisy answers."""

from reluctant.extraction.few_digits.method import FewDigits

__all__ = ["FewDigits"]
