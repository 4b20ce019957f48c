"""Geometry of a piecewise linear function: lines, creases on them, affine pieces. Everything is batched."""

from reluctant.geometry.creases import Creases, LineSearch, Scan
from reluctant.geometry.gradients import Gradients, Question, gradients
from reluctant.geometry.lines import DistanceNoise, Frame, FramedNetwork, Lines, Pieces, Samples
from reluctant.geometry.scan import scan_lines

__all__ = [
    "Creases",
    "DistanceNoise",
    "Frame",
    "FramedNetwork",
    "Gradients",
    "LineSearch",
    "Lines",
    "Pieces",
    "Question",
    "Samples",
    "Scan",
    "gradients",
    "scan_lines",
]
