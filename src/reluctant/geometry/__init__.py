"""Geometry of a piecewise linear function: lines, creases on them, affine pieces. Everything is batched."""

from reluctant.geometry.creases import Creases, Scan
from reluctant.geometry.frames import Frame, FramedNetwork
from reluctant.geometry.gradients import Gradients, gradients
from reluctant.geometry.history import LineSearch
from reluctant.geometry.lines import Lines
from reluctant.geometry.noise import DistanceNoise
from reluctant.geometry.samples import Pieces, Samples
from reluctant.geometry.search import scan_lines

__all__ = [
    "Creases",
    "DistanceNoise",
    "Frame",
    "FramedNetwork",
    "Gradients",
    "LineSearch",
    "Lines",
    "Pieces",
    "Samples",
    "Scan",
    "gradients",
    "scan_lines",
]
