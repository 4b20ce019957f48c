"""Drawings: each takes one part of an audit's record and gives a picture with its words, or None without data."""

from reluctant.report.drawings.drawing import Drawing
from reluctant.report.drawings.errors import draw_errors
from reluctant.report.drawings.first_layer import draw_first_layer
from reluctant.report.drawings.flip import draw_flip
from reluctant.report.drawings.leak import draw_leak, draw_leak_queries
from reluctant.report.drawings.line import draw_line
from reluctant.report.drawings.linearity import draw_linearity
from reluctant.report.drawings.plane import draw_plane
from reluctant.report.drawings.stages import draw_stages

__all__ = [
    "Drawing",
    "draw_errors",
    "draw_first_layer",
    "draw_flip",
    "draw_leak",
    "draw_leak_queries",
    "draw_line",
    "draw_linearity",
    "draw_plane",
    "draw_stages",
]
