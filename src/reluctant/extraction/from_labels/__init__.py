"""Extraction from labels alone: `FromLabels`."""

from reluctant.extraction.from_labels.method import FromLabels

__all__ = ["FromLabels"]
