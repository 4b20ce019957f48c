"""Depth three with at most as many first-layer neurons as inputs: first layer, then the layers above it, peeled."""

from reluctant.extraction.depth_three.first_layer import FirstLayer, find_first_layer
from reluctant.extraction.depth_three.peel import Peeled, peel

__all__ = ["FirstLayer", "Peeled", "find_first_layer", "peel"]
