"""Depth two, any width, exactly, at about one query per parameter."""

from reluctant.extraction.depth_two.method import DepthTwo

__all__ = ["DepthTwo"]
