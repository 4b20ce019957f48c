"""Extraction from labels alone, `FromLabels`, and a network compared by them, `verify_labels`."""

from reluctant.extraction.from_labels.label_agreement import verify_labels
from reluctant.extraction.from_labels.method import FromLabels

__all__ = ["FromLabels", "verify_labels"]
