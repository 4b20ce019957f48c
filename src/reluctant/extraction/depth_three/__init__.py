"""Depth three with at most as many first-layer neurons as inputs: first layer, peeled target, top layers."""

from reluctant.extraction.depth_three.method import DepthThree

__all__ = ["DepthThree"]
