"""Depth two, any width, exactly, at about one query per parameter; with gradients, about four per neuron."""

from reluctant.extraction.depth_two.jump_lines import JumpLines
from reluctant.extraction.depth_two.method import DepthTwo

__all__ = ["DepthTwo", "JumpLines"]
