"""Depth two on a bounded domain: a box, an orthant. Nothing outside is ever asked."""

from reluctant.extraction.bounded.anchor import BOUNDED, Bounded
from reluctant.extraction.bounded.method import recover_inside

__all__ = ["BOUNDED", "Bounded", "recover_inside"]
