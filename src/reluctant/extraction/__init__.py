"""Extraction: the exact network from answers."""

from reluctant.extraction.depth_two import DepthTwo
from reluctant.extraction.driver import extract

__all__ = ["DepthTwo", "extract"]
